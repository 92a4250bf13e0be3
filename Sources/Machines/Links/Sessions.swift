import ParleyVocabulary
import ParleyWire

/// What the links machine knows of one peer.
struct PeerLink: Equatable, Sendable {
  var instance: Instance
  var incarnation: UInt64
  var tcpPort: UInt16 = 0
  /// Shared with us as far as presence or proofs told.
  var channels: Set<ChannelID> = []
  /// Where authenticated presence last came from.
  var candidate: Address?
  /// Where something only this peer could seal last came from.
  var confirmed: Address?
  var live: [ChannelID: ReplayWindow] = [:]
  var direct: [ChannelID: ReplayWindow] = [:]
  /// Of its other runs, the last one last: what was heard of one is not heard again because another came between.
  private var others: [Run] = []
  /// Where the session that stands, or stood last, came from or went: all there is of whom no datagram reaches.
  var reached: Address?
  var session: LinkID?
  var dial: LinkID?
  /// Waits for the session that is being dialled.
  var queue: [SessionMessage] = []
  var queuedByteCount = 0
  var costs = LiveCosts()
  /// When it may be told again under which incarnation it is known.
  var reportAt: Instant?
  /// When it may be asked again at an address it has not spoken from before.
  var askAt: Instant?
  /// Membership waits for the dial's outcome.
  var isChecked = false

  private struct Run: Equatable, Sendable {
    let instance: Instance
    let live: [ChannelID: ReplayWindow]
    let direct: [ChannelID: ReplayWindow]
  }

  private static let otherRunsMax = 4

  init(instance: Instance, incarnation: UInt64) {
    self.instance = instance
    self.incarnation = incarnation
  }

  /// The window of presence and live objects of one of its runs.
  func liveWindow(of instance: Instance, _ channel: ChannelID) -> ReplayWindow {
    let known = instance == self.instance ? live : others.last { $0.instance == instance }?.live
    return known?[channel] ?? ReplayWindow()
  }

  var dialAddress: Address? { (confirmed ?? candidate ?? reached).map { $0.with(port: tcpPort) } }

  mutating func startAgain(as instance: Instance) {
    let earlier = others.firstIndex { $0.instance == instance }.map { others.remove(at: $0) }
    others.append(Run(instance: self.instance, live: live, direct: direct))
    if others.count > Self.otherRunsMax { others.removeFirst() }
    self.instance = instance
    live = earlier?.live ?? [:]
    direct = earlier?.direct ?? [:]
    confirmed = nil
    channels = []
  }
}

struct Session: Equatable, Sendable {
  let peer: PeerID
  let instance: Instance
  let isInitiator: Bool
  var channels: Set<ChannelID>
  var lastHeard: Instant
  var lastUsed: Instant
  var pingSent: Instant?
  /// How long a ping may go unanswered.
  var patience = SessionRule.silence
  /// Another one to the same peer took its place: it is heard out, but not for ever.
  var endsAt: Instant?
}

extension Session {
  init(_ facts: SessionFacts, _ channels: [ChannelID], _ now: Instant) {
    self.init(
      peer: facts.peer, instance: facts.instance, isInitiator: facts.isInitiator, channels: Set(channels),
      lastHeard: now, lastUsed: now)
  }
}

struct Dial: Equatable, Sendable {
  /// Nil when dialled by address alone.
  let peer: PeerID?
}

/// Bounds and times of sessions.
enum SessionRule {
  /// Peers remembered over all channels.
  static let peersMax = 2 * Limit.membersPerChannelMax
  /// Sessions of one peer that are heard out beside the one that stands.
  static let endingMax = 2
  static let queueByteCountMax = 4 << 20
  static let askAddressAgain = Span.seconds(1)
  /// The session to the successor, by whose end a dead host is noticed, is probed when nothing came for so long; every
  /// other one, or in a ring both sides would probe at the same time, so long after that…
  static let quiet = Span.seconds(6)
  static let quietElsewhere = Span.seconds(8)
  /// …and given up after this much silence more: a dead host is known within 15 s, with the probes and the dial that
  /// follow.
  static let silence = Span.seconds(3)
  /// …or this much, when an address has changed.
  static let silenceAfterChange = Span.seconds(1)
  /// Closed when nobody has used it for this long and it is not kept.
  static let idle = Span.seconds(30)
  static let tick = Span.milliseconds(500)
  /// A kept session that was lost is dialled again after this long, and each time after twice as long, up to…
  static let redialFirst = Span.seconds(1)
  static let redialSlowest = Span.seconds(30)
}

extension LinksMachine {
  mutating func open(_ channel: ChannelID) -> [LinksEffect] {
    channels.insert(channel)
    // Sessions that stand may share it: prove it there.
    return sessions.keys.sorted { $0.value < $1.value }.map { .prove($0, [channel]) }
  }

  mutating func send(_ message: SessionMessage, to peer: PeerID, _ now: Instant) -> [LinksEffect] {
    guard var known = peers[peer] else { return [.tell(.messaging(.sessionFailed(peer)))] }
    if let link = known.session {
      sessions[link]?.lastUsed = now
      return [.sendFrame(link, message)]
    }
    let byteCount = message.encoded.count
    guard known.queuedByteCount + byteCount <= SessionRule.queueByteCountMax else { return [] }
    known.queue.append(message)
    known.queuedByteCount += byteCount
    peers[peer] = known
    return dial(peer, now)
  }

  mutating func dial(_ peer: PeerID, _ now: Instant) -> [LinksEffect] {
    guard var known = peers[peer], known.session == nil, known.dial == nil else { return [] }
    let shared = known.channels.intersection(channels).sorted()
    guard let address = known.dialAddress, address.port != 0, !shared.isEmpty else { return failed(peer, now) }
    let link = LinkID(nextDial)
    nextDial += 2
    known.dial = link
    peers[peer] = known
    dials[link] = Dial(peer: peer)
    return [.dial(link, address, expecting: peer, channels: shared)]
  }

  mutating func keep(_ peer: PeerID?, _ now: Instant) -> [LinksEffect] {
    kept = peer
    redialAt = nil
    redialDelay = SessionRule.redialFirst
    guard let peer else { return [] }
    return dial(peer, now) + [.wake(at: now + SessionRule.tick)]
  }

  mutating func check(_ peer: PeerID, _ now: Instant) -> [LinksEffect] {
    guard var known = peers[peer] else { return [.tell(.membership(.dialFailed(peer)))] }
    known.isChecked = true
    let link = known.session
    known.session = nil
    peers[peer] = known
    // What stands may be dead without our knowing: the check is a new dial. The old one closes without suspicion.
    var effects: [LinksEffect] = []
    if let link {
      sessions[link] = nil
      effects += [.sendFrame(link, .closing), .close(link, afterWrites: false)]
    }
    return effects + dial(peer, now)
  }

  mutating func forgetSession(of peer: PeerID) -> [LinksEffect] {
    guard var known = peers[peer] else { return [] }
    let link = known.session
    known.session = nil
    known.queue = []
    known.queuedByteCount = 0
    peers[peer] = known
    guard let link else { return [] }
    sessions[link] = nil
    return [.close(link, afterWrites: false)]
  }

  /// The session of a run that is over: nothing more is to be learnt from its end.
  mutating func dropSession(_ known: inout PeerLink) -> [LinksEffect] {
    guard let link = known.session, sessions[link]?.instance == known.instance else { return [] }
    known.session = nil
    sessions[link] = nil
    return [.close(link, afterWrites: false)]
  }

  mutating func opened(_ link: LinkID, _ facts: SessionFacts, _ now: Instant) -> [LinksEffect] {
    let dial = dials.removeValue(forKey: link)
    introductions.opened(link, facts.peer, isOurs: facts.peer == me, at: now)
    guard facts.peer != me, hasRoom(for: facts.peer) else { return [.close(link, afterWrites: false)] }
    let (shared, refusals) = admitted(facts, link)
    if shared.isEmpty { return refuseAll(facts.peer, dial, link, refusals, now) }
    var effects = refusals
    var known = peers[facts.peer] ?? PeerLink(instance: facts.instance, incarnation: 0)
    if known.instance != facts.instance {
      claims.remove(facts.peer, known.instance)
      effects += dropSession(&known)
      known.startAgain(as: facts.instance)
    }
    claims.prove(facts.peer, facts.instance)
    known.channels.formUnion(shared)
    if known.dial == link { known.dial = nil }
    known.reached = facts.remote
    if known.tcpPort == 0, facts.isInitiator { known.tcpPort = facts.remote.port }
    if let standing = known.session, let other = sessions[standing], other.instance == facts.instance {
      // Both dialled: the one dialled by the smaller PeerID stays.
      let newIsSmallers = facts.isInitiator == (me < facts.peer)
      let standingIsSmallers = other.isInitiator == (me < facts.peer)
      if standingIsSmallers, !newIsSmallers {
        // Heard to its end all the same: the other side may have written into it before it knew of both.
        peers[facts.peer] = known
        sessions[link] = Session(facts, shared, now)
        return effects + hearOut(link, now) + checked(facts.peer)
      }
      effects += hearOut(standing, now)
    }
    known.session = link
    let queue = known.queue
    known.queue = []
    known.queuedByteCount = 0
    peers[facts.peer] = known
    if kept == facts.peer { redialDelay = SessionRule.redialFirst }
    sessions[link] = Session(facts, shared, now)
    effects += queue.map { .sendFrame(link, $0) }
    let wasIntroduced = dial != nil && dial?.peer == nil
    for channel in shared {
      effects.append(
        .tell(.membership(.sessionOpened(channel, facts.peer, facts.instance, wasIntroduced: wasIntroduced))))
    }
    effects += checked(facts.peer)
    effects += proved(facts.generations, by: facts.peer, in: shared)
    let unproven = channels.subtracting(facts.channels).sorted()
    if !unproven.isEmpty { effects.append(.prove(link, unproven)) }
    return effects + [.wake(at: now + SessionRule.tick)]
  }

  /// Nothing is left that we would share with this peer.
  private mutating func refuseAll(
    _ peer: PeerID, _ dial: Dial?, _ link: LinkID, _ refusals: [LinksEffect], _ now: Instant
  ) -> [LinksEffect] {
    if peers[peer]?.dial == link { peers[peer]!.dial = nil }
    let isWaitedFor = dial?.peer == peer && peers[peer]?.session == nil
    return refusals + [.close(link, afterWrites: true)] + (isWaitedFor ? failed(peer, now) : [])
  }

  /// Whoever opens one session after the other must not make us keep them all.
  private mutating func hearOut(_ link: LinkID, _ now: Instant) -> [LinksEffect] {
    sessions[link]!.endsAt = now + SessionRule.silence
    let peer = sessions[link]!.peer
    let ending = sessions.filter { $1.peer == peer && $1.endsAt != nil }.keys.sorted { $0.value < $1.value }
    let over = ending.dropLast(SessionRule.endingMax)
    for link in over { sessions[link] = nil }
    return [.sendFrame(link, .closing)] + over.map { .close($0, afterWrites: false) }
  }

  /// A member can sign with as many identities as it likes: when there are too many peers, one goes that has shown
  /// nothing but its presence.
  mutating func hasRoom(for peer: PeerID) -> Bool {
    guard peers[peer] == nil, peers.count >= SessionRule.peersMax else { return true }
    // Taken out, so that the peers can be looked at without a copy.
    var queue = strangers
    strangers = StrangerQueue()
    let victim = queue.next(
      isStranger: { peer in
        guard let link = peers[peer] else { return false }
        return link.confirmed == nil && link.session == nil && link.dial == nil && peer != kept
      }, all: { peers.keys.sorted() })
    strangers = queue
    guard let victim else { return false }
    if let known = peers.removeValue(forKey: victim) { claims.remove(victim, known.instance) }
    return true
  }

  private mutating func checked(_ peer: PeerID) -> [LinksEffect] {
    guard peers[peer]?.isChecked == true else { return [] }
    peers[peer]!.isChecked = false
    return [.tell(.membership(.dialSucceeded(peer)))]
  }

  mutating func closed(_ link: LinkID, _ now: Instant) -> [LinksEffect] {
    if let dial = dials.removeValue(forKey: link) {
      introductions.failed(link, at: now)
      guard let peer = dial.peer else { return [] }
      if peers[peer]?.dial == link { peers[peer]!.dial = nil }
      return peers[peer]?.session == nil ? failed(peer, now) : []
    }
    guard let session = sessions.removeValue(forKey: link) else { return [] }
    guard peers[session.peer]?.session == link else { return [] }
    peers[session.peer]!.session = nil
    if session.peer == kept { redialAt = now + redialDelay }
    return [
      .tell(.messaging(.sessionFailed(session.peer))),
      .tell(.membership(.sessionLost(session.peer, session.instance))),
    ]
  }

  private mutating func failed(_ peer: PeerID, _ now: Instant) -> [LinksEffect] {
    if kept == peer { redialAt = now + redialDelay }
    guard var known = peers[peer] else { return [] }
    known.queue = []
    known.queuedByteCount = 0
    let wasChecked = known.isChecked
    known.isChecked = false
    peers[peer] = known
    var effects: [LinksEffect] = [.tell(.messaging(.sessionFailed(peer)))]
    if wasChecked {
      effects.append(.tell(.membership(.dialFailed(peer))))
    } else if kept == peer {
      effects.append(.tell(.membership(.sessionLost(peer, known.instance))))
    }
    return effects
  }

  /// Whether it is alive: with less patience than usual.
  mutating func question(_ link: LinkID, _ now: Instant) -> [LinksEffect] {
    guard var session = sessions[link] else { return [] }
    session.pingSent = now
    session.patience = SessionRule.silenceAfterChange
    sessions[link] = session
    defer { nextPing += 1 }
    return [.sendFrame(link, .ping(nextPing)), .wake(at: now + SessionRule.silenceAfterChange)]
  }

  /// Sessions that are dead are given up within a second, and who is kept is dialled again at once.
  mutating func networkChanged(_ now: Instant) -> [LinksEffect] {
    redialDelay = SessionRule.redialFirst
    if redialAt != nil { redialAt = now }
    let questions = sessions.keys.sorted { $0.value < $1.value }.flatMap { question($0, now) }
    return questions + redialKept(now) + dialIntroductions(now)
  }

  mutating func proved(
    _ proven: [ChannelID], _ generations: [ChannelID: GenerationID], _ link: LinkID
  ) -> [LinksEffect] {
    guard var session = sessions[link] else { return [] }
    let new = Set(proven).intersection(channels).subtracting(session.channels)
      .filter { channel in
        admits(session.peer, to: channel)
          || owned[channel]?.isInvitedAgain(session.peer, holding: generations[channel]) == true
      }
    guard !new.isEmpty else { return [] }
    session.channels.formUnion(new)
    sessions[link] = session
    peers[session.peer]?.channels.formUnion(new)
    // The other side proves it back, unless it was first.
    return [.prove(link, new.sorted())]
      + new.sorted().map {
        .tell(.membership(.sessionOpened($0, session.peer, session.instance, wasIntroduced: false)))
      } + proved(generations, by: session.peer, in: new.sorted())
  }

  mutating func received(_ message: SessionMessage, _ link: LinkID, _ now: Instant) -> [LinksEffect] {
    guard var session = sessions[link] else { return [] }
    session.lastHeard = now
    session.pingSent = nil
    session.patience = SessionRule.silence
    switch message {
    case .ping, .pong: break
    default: session.lastUsed = now
    }
    sessions[link] = session
    let peer = session.peer
    switch message {
    case .ping(let nonce): return [.sendFrame(link, .pong(nonce))]
    // It says that the process lives, not in which channels: of those only beacons, echoes and handshakes tell.
    case .pong, .prove: return []
    case .closing:
      sessions[link] = nil
      if peers[peer]?.session == link { peers[peer]!.session = nil }
      if peer == kept, peers[peer]?.session == nil { redialAt = now + SessionRule.redialFirst }
      return [.close(link, afterWrites: true)]
    case .presence(let channel, let signed):
      guard session.channels.contains(channel), let presence = try? Presence(decoding: signed.object[...]),
        presence.author == peer, presence.instance == session.instance
      else { return [] }
      return [.verify(channel, .presence(presence, signed), from: nil)]
    case .live(let channel, let signed):
      guard session.channels.contains(channel), let live = try? LiveObject(decoding: signed.object[...]),
        live.author == peer, live.instance == session.instance
      else { return [] }
      return [.verify(channel, .live(live, signed), from: nil)]
    case .heads(let channel, _, _, _, _), .summary(let channel, _), .want(let channel, _, _),
      .entries(let channel, _, _, _):
      guard session.channels.contains(channel), channels.contains(channel) else { return [] }
      return [.tell(.messaging(.sessionMessage(peer, message)))]
    case .direct(let channel, let parts):
      guard session.channels.contains(channel), channels.contains(channel) else { return [] }
      return Self.passOn(parts, channel, peer)
    case .generation(let channel, let signed, let secret):
      guard session.channels.contains(channel), channels.contains(channel) else { return [] }
      return received(signed, secret, channel, from: peer)
    case .refused(let channel, let reason):
      return refused(channel, reason, by: peer, link)
    case .peerMessage, .peerStored: return [.tell(.messaging(.sessionMessage(peer, message)))]
    case .livePeerMessage(_, let json):
      if let excess = peers[peer]?.costs.liveExcess(byteCount: json.count, limits, at: now) {
        return session.channels.min().map { report($0, peer, excess, now) } ?? []
      }
      return [.tell(.messaging(.sessionMessage(peer, message)))]
    }
  }

  /// Whoever watches its successor goes on watching it after the session broke and the suspicion was refuted.
  private mutating func redialKept(_ now: Instant) -> [LinksEffect] {
    guard let peer = kept, let at = redialAt, at <= now else { return [] }
    redialAt = nil
    guard peers[peer]?.session == nil else { return [] }
    redialDelay = min(redialDelay * 2, SessionRule.redialSlowest)
    return dial(peer, now)
  }

  /// Probes quiet sessions, gives up silent ones, closes idle ones, and asks to be woken while there are any.
  mutating func tick(_ now: Instant) -> [LinksEffect] {
    var effects: [LinksEffect] = []
    for link in sessions.keys.sorted(by: { $0.value < $1.value }) {
      var session = sessions[link]!
      if let sent = session.pingSent, now - sent >= session.patience {
        effects.append(.close(link, afterWrites: false))
        effects += closed(link, now)
        continue
      }
      let isOurs = peers[session.peer]?.session == link
      if !isOurs, now - session.lastHeard >= SessionRule.silence || session.endsAt.map({ $0 <= now }) ?? false {
        // It was to be closed by the other side.
        effects.append(.close(link, afterWrites: true))
        sessions[link] = nil
        continue
      }
      if session.isInitiator, session.peer != kept, !introductions.names(session.peer),
        now - session.lastUsed >= SessionRule.idle
      {
        effects += [.sendFrame(link, .closing), .close(link, afterWrites: true)]
        sessions[link] = nil
        if peers[session.peer]?.session == link { peers[session.peer]!.session = nil }
        continue
      }
      if session.pingSent == nil, now - session.lastHeard >= quiet(session.peer) {
        session.pingSent = now
        sessions[link] = session
        effects.append(.sendFrame(link, .ping(nextPing)))
        nextPing += 1
      }
    }
    effects +=
      redialKept(now) + dialIntroductions(now) + callLagging(now) + recall(now)
      + rotateOnSchedule(now)
    if let due = nextTick(now) { effects.append(.wake(at: due)) }
    return effects
  }

  private func quiet(_ peer: PeerID) -> Span {
    peer == kept ? SessionRule.quiet : SessionRule.quietElsewhere
  }

  /// An idle node shall sleep: while every session is in order, nothing is due before one has been quiet for too long.
  private func nextTick(_ now: Instant) -> Instant? {
    let soon = now + SessionRule.tick
    if redialAt != nil || !introductions.isEmpty { return soon }
    var due = sessions.map { link, session -> Instant in
      guard peers[session.peer]?.session == link, session.endsAt == nil else { return soon }
      if let sent = session.pingSent { return sent + session.patience }
      return session.lastHeard + quiet(session.peer)
    }.min()
    if let call = nextCall { due = due.map { min($0, call) } ?? call }
    return due.map { max($0, now + .milliseconds(50)) }
  }
}
