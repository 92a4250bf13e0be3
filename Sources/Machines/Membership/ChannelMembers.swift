import ParleyVocabulary
import ParleyWire

/// One channel's members and our own place in it.
struct ChannelMembers: Equatable, Sendable {
  struct Hand: Equatable, Sendable {
    let order: OrderKey
    let timestamp: UInt64
    let isRaised: Bool
  }

  let displayName: DisplayName
  private(set) var incarnation: UInt64
  /// When suspicion of us may be answered again, and by how many rumours of others we are still to be moved.
  var refuteAt: Instant?
  var hearsay = RateAllowance(perSecond: MembershipRule.hearsayPerSecond, burst: MembershipRule.hearsayBurst)
  let nonce: UInt64
  let ownStatus: [UInt8]
  let ownStatusHash: UInt64
  private(set) var members: [PeerID: MemberState] = [:]
  private var dues = DueQueue()
  private var strangers = StrangerQueue()
  /// Those told to messaging as present.
  var present: Set<PeerID> = []
  /// Those who went without a goodbye, and when: perhaps it is the network that is in two parts.
  var lost: [PeerID: Instant] = [:]
  /// The newest raise_hand of each log.
  var hands: [LogKey: Hand] = [:]
  var isOwnHandRaised = false
  var typing = TypingState()
  /// Of an owned channel.
  var governance: Governance?
  var digest = HeadsDigest(of: [:])
  var head: UInt64 = 0
  var lamport: UInt64 = 0
  var interval = MembershipRule.lively
  var burstIndex = 0
  var nextBeacon: Instant
  private let me: PeerID
  private let instance: Instance

  init(
    displayName: DisplayName, incarnation: UInt64, nonce: UInt64, me: PeerID, instance: Instance, now: Instant
  ) {
    self.displayName = displayName
    self.incarnation = incarnation
    self.nonce = nonce
    self.me = me
    self.instance = instance
    ownStatus = Self.status(displayName, isOnline: true, me)
    ownStatusHash = Presence.hash(ofStatus: ownStatus)
    nextBeacon = now + MembershipRule.burst[0]
  }

  mutating func raise(to incarnation: UInt64) { self.incarnation = max(self.incarnation, incarnation) }

  func status(isOnline: Bool, _ me: PeerID) -> [UInt8] { Self.status(displayName, isOnline: isOnline, me) }

  private static func status(_ name: DisplayName, isOnline: Bool, _ me: PeerID) -> [UInt8] {
    SchemaMessage(
      sender: Sender(peer: me, displayName: name), messageID: nil, timestamp: nil,
      content: StatusKind(isOnline: isOnline)
    ).encoded
  }

  func ownView(_ me: PeerID) -> MemberView {
    MemberView(
      peer: me, displayName: displayName, isOnline: true, isHandRaised: isOwnHandRaised, run: instance)
  }

  mutating func remember(_ record: MemberRecord, _ now: Instant) {
    put(
      MemberState(
        instance: Instance(0), incarnation: record.incarnation, displayName: record.displayName, phase: .gone,
        lastHeard: now, interval: MembershipRule.quiet, digest: HeadsDigest(of: [:]), isListed: true), record.peer)
  }

  func newMember(_ presence: Presence, _ now: Instant) -> MemberState {
    MemberState(
      instance: presence.instance, incarnation: presence.incarnation, displayName: nil, phase: .gone,
      lastHeard: now, interval: MembershipRule.lively, digest: presence.digest)
  }

  /// A member can sign with as many identities as it likes: when there are too many, one goes that was never listed and
  /// whose presence turned out to be empty.
  mutating func hasRoom(for peer: PeerID) -> Bool {
    guard members[peer] == nil else { return true }
    guard members.count >= Limit.membersPerChannelMax else {
      strangers.add(peer)
      return true
    }
    // Taken out, so that the members can be looked at without a copy.
    var queue = strangers
    strangers = StrangerQueue()
    let victim = queue.next(
      isStranger: { members[$0].map { $0.phase == .gone && !$0.isListed } ?? false }, all: { members.keys.sorted() })
    strangers = queue
    guard let victim else { return false }
    members[victim] = nil
    strangers.add(peer)
    return true
  }

  /// Beacons come often again, and slow down from there.
  mutating func becomeLively(_ now: Instant) {
    interval = max(MembershipRule.lively, MembershipRule.perMember * members.count)
    nextBeacon = min(nextBeacon, now + interval)
  }

  /// One on either side of a cut is enough: of whoever hears it, all learn of the others.
  private var isCaller: Bool { present.allSatisfy { me < $0 } }

  /// Nil when nobody is missed, or others call.
  func calling(_ now: Instant) -> Span? {
    guard let since = lost.values.max(), isCaller else { return nil }
    let share = Span(microseconds: (now - since).microseconds / Int64(MembershipRule.callingShare))
    return max(MembershipRule.calling, share)
  }

  mutating func noteLost(_ peer: PeerID, _ now: Instant) {
    lost[peer] = now
    if let calling = calling(now) { nextBeacon = min(nextBeacon, now + calling) }
  }

  /// A cut may have healed: who hears the one shall hear the others soon.
  mutating func noteReturn(_ peer: PeerID, _ now: Instant, _ jitter: inout Jitter) {
    guard lost.removeValue(forKey: peer) != nil else { return }
    let soon = jitter.span(.milliseconds(0), MembershipRule.returnPerMember * members.count)
    nextBeacon = min(nextBeacon, now + .milliseconds(100) + soon)
  }

  /// All change keys at nearly the same moment: they speak one after the other.
  mutating func noteKeys(_ now: Instant, _ jitter: inout Jitter) {
    let span = min(MembershipRule.keysPerMember * members.count, MembershipRule.keysMax)
    nextBeacon = min(nextBeacon, now + jitter.span(.milliseconds(0), span))
  }

  /// As after joining.
  mutating func callOut(_ now: Instant) {
    burstIndex = 0
    nextBeacon = now + MembershipRule.burst[0]
  }

  mutating func scheduleBeacon(_ now: Instant, _ jitter: inout Jitter) {
    if burstIndex < MembershipRule.burst.count {
      nextBeacon = now + MembershipRule.burst[burstIndex]
      burstIndex += 1
      return
    }
    let floor = max(MembershipRule.lively, MembershipRule.perMember * present.count)
    nextBeacon = now + jitter.span(.init(microseconds: interval.microseconds * 9 / 10), interval)
    if let calling = calling(now) {
      nextBeacon = min(nextBeacon, now + jitter.span(.init(microseconds: calling.microseconds * 9 / 10), calling))
    }
    let slower = Span(microseconds: interval.microseconds * 3 / 2)
    interval = max(floor, min(slower, max(MembershipRule.quiet, floor)))
  }

  mutating func noteHand(_ entry: Entry, isRaised: Bool) {
    // Of several in one entry, which share its place, the last counts.
    if let known = hands[entry.key], known.order > entry.order { return }
    hands[entry.key] = Hand(order: entry.order, timestamp: entry.timestamp, isRaised: isRaised)
    refreshHand(of: entry.key.author)
  }

  /// A hand is that of one run: those of earlier ones are down, ours and everybody's.
  mutating func refreshHand(of author: PeerID) {
    if author == me {
      isOwnHandRaised = isHandRaised(LogKey(author: me, log: instance))
    } else if var member = members[author], member.isPresent {
      member.isHandRaised = isHandRaised(LogKey(author: author, log: member.instance))
      put(member, author)
    }
  }

  /// Where the hand of a member's running log stands in the shared order.
  func handOrder(of author: PeerID) -> OrderKey? {
    let log = author == me ? instance : members[author]?.instance
    return log.flatMap { hands[LogKey(author: author, log: $0)]?.order }
  }

  func isHandRaised(_ key: LogKey) -> Bool {
    guard let hand = hands[key], hand.isRaised else { return false }
    guard let governance else { return true }
    // Whoever is out has none, whatever it raised before.
    guard governance.standing(of: key.author).isGood else { return false }
    let facts = EntryFacts(order: hand.order, timestamp: hand.timestamp, isHidden: true)
    return governance.voidReason(facts) == nil && !governance.isHandLowered(hand.order)
  }

  mutating func put(_ member: MemberState, _ peer: PeerID) {
    var member = member
    if let due = member.dueAt, member.queuedAt.map({ due < $0 }) ?? true {
      member.queuedAt = due
      dues.add(.init(at: due, peer: peer))
    }
    members[peer] = member
    // Whoever names shorter and shorter intervals leaves entries behind that stand for nothing.
    if dues.count > 2 * members.count + 64 {
      dues = DueQueue()
      for (peer, member) in members { member.queuedAt.map { dues.add(.init(at: $0, peer: peer)) } }
    }
  }

  /// When something here is due.
  mutating func nextDue() -> Instant {
    while let first = dues.first, !isDue(first) { requeueFirst() }
    let due = dues.first.map { min($0.at, nextBeacon) } ?? nextBeacon
    return typing.until.values.min().map { min($0, due) } ?? due
  }

  /// Whose turn it is, in order.
  mutating func takeDue(_ now: Instant) -> [PeerID] {
    var peers: [PeerID] = []
    while let first = dues.first, first.at <= now {
      if isDue(first) {
        members[first.peer]!.queuedAt = nil
        _ = dues.removeFirst()
        peers.append(first.peer)
      } else {
        requeueFirst()
      }
    }
    return peers.sorted()
  }

  private func isDue(_ entry: DueQueue.Entry) -> Bool {
    guard let member = members[entry.peer], member.queuedAt == entry.at else { return false }
    return member.dueAt == entry.at
  }

  /// What stands first is over, or stands for a later moment.
  private mutating func requeueFirst() {
    let entry = dues.removeFirst()
    guard var member = members[entry.peer], member.queuedAt == entry.at else { return }
    member.queuedAt = nil
    put(member, entry.peer)
  }
}

extension MemberState {
  /// When silence becomes suspicious.
  var silentAt: Instant { lastHeard + interval * 2 + MembershipRule.grace }

  mutating func startAgain(as presence: Presence) {
    instance = presence.instance
    phase = .gone
    isHandRaised = false
    statusHash = 0
    counter = 0
    goodbye = 0
  }

  mutating func take(_ presence: Presence, _ peer: PeerID, _ now: Instant) {
    incarnation = presence.incarnation
    counter = presence.counter
    lastHeard = now
    // An interval of years would keep a crashed member present for years.
    interval = min(.milliseconds(Int(clamping: min(presence.intervalMilliseconds, 3_600_000))), .seconds(600))
    digest = presence.digest
    head = presence.head
    lamport = presence.lamport
    theirNonce = presence.nonce
    guard !presence.status.isEmpty, presence.statusHash != statusHash,
      let message = try? SchemaMessage(decoding: presence.status, author: peer),
      let status = message.content as? StatusKind, status.isOnline
    else { return }
    displayName = message.sender.displayName
    statusHash = presence.statusHash
  }
}

/// What messaging needs of a presence.
package struct PresenceFacts: Equatable, Sendable {
  package let digest: HeadsDigest
  package let head: UInt64
  package let lamport: UInt64
  package let wantsAcknowledgement: Bool

  package init(digest: HeadsDigest, head: UInt64, lamport: UInt64, wantsAcknowledgement: Bool = false) {
    self.digest = digest
    self.head = head
    self.lamport = lamport
    self.wantsAcknowledgement = wantsAcknowledgement
  }

  init(_ presence: Presence) {
    self.init(
      digest: presence.digest, head: presence.head, lamport: presence.lamport,
      wantsAcknowledgement: presence.wantsAcknowledgement)
  }
}
