import ParleyVocabulary
import ParleyWire

/// Who is what in an owned channel, and what of what was said counts: a function of the set of acts, whatever order
/// they come in. Holds no clock and no keys; whether a grant is genuine comes with the act.
package struct Governance: Equatable, Sendable {
  package let ownership: ChannelOwnership

  /// Acts of those who ever may have had a right, by place.
  private var heard: [Act.Place: Act] = [:]
  /// Founder, whom one of these made owner or admin, who holds an admin's grant of one of these: nobody else's acts
  /// can count, but their joining.
  package private(set) var candidates: Set<PeerID>
  /// Acts of others, in case they turn out to be one of those.
  private var spare: [PeerID: [Act]] = [:]
  private var spareCount = 0
  /// Whose acts were too many to keep.
  private var unkept: Set<PeerID> = []
  /// Newcomers' `joined`: the grants issued last.
  private var joins: [PeerID: [Act]] = [:]
  private var folded: Fold

  static let sparesPerPeerMax = 64
  static let sparesMax = 4_096
  static let joinsPerPeerMax = 16
  static let joinersMax = 65_536

  package init(_ ownership: ChannelOwnership) {
    self.ownership = ownership
    candidates = [ownership.founder]
    folded = Fold(founder: ownership.founder, acts: [], joins: [:])
  }

  /// What acts have changed.
  package struct Change: Equatable, Sendable {
    /// Of whom entries may count now that did not, or the other way round.
    package var peers: Set<PeerID> = []
    /// Everybody's entries may.
    package var isOfAll = false
    package var isAnnouncement = false
    package var isGeneration = false
    package var isOrganiser = false
    /// Whose acts were let go and are needed now: to be read again from the disk, all of them.
    package var toReload: Set<PeerID> = []
    package var isNothing: Bool { self == Change() }
    package init() {}
  }

  /// Acts that came, in any order, again or not. One fold for all of them.
  package mutating func take(_ acts: [Act]) -> Change {
    var isNews = false
    var change = Change()
    for act in acts { if keep(act, &change) { isNews = true } }
    guard isNews else { return change }
    let before = folded
    folded = Fold(founder: ownership.founder, acts: heard.values.sorted { $0.place < $1.place }, joins: joins)
    change.peers = folded.changedPeers(since: before)
    change.isOfAll = folded.closed != before.closed || folded.eras != before.eras
    change.isAnnouncement = folded.announcement != before.announcement
    change.isGeneration = folded.generations != before.generations
    change.isOrganiser = folded.organiser != before.organiser
    return change
  }

  /// Whether it may change anything.
  private mutating func keep(_ act: Act, _ change: inout Change) -> Bool {
    if case .joined(let grant, let isGenuine) = act.content {
      guard keepJoin(act, grant) else { return false }
      if isGenuine, grant.role == .admin { nominate(act.author, by: grant.inviter, &change) }
      return true
    }
    guard candidates.contains(act.author) else {
      spareAct(act)
      return false
    }
    guard heard.updateValue(act, forKey: act.place) != act else { return false }
    nominate(act, &change)
    return true
  }

  private mutating func keepJoin(_ act: Act, _ grant: Grant) -> Bool {
    guard joins[act.author] != nil || joins.count < Self.joinersMax else { return false }
    var kept = joins[act.author] ?? []
    guard !kept.contains(act) else { return false }
    kept.append(act)
    kept.sort { Self.isWorthMore($0, $1) }
    if kept.count > Self.joinsPerPeerMax, kept.removeLast() == act { return false }
    joins[act.author] = kept
    return true
  }

  /// Genuine ones first, then those issued last, then in order.
  private static func isWorthMore(_ a: Act, _ b: Act) -> Bool {
    guard case .joined(let one, let isOneGenuine) = a.content, case .joined(let other, let isOtherGenuine) = b.content
    else { return false }
    if isOneGenuine != isOtherGenuine { return isOneGenuine }
    return one.issued == other.issued ? a.place < b.place : one.issued > other.issued
  }

  private mutating func spareAct(_ act: Act) {
    let kept = spare[act.author] ?? []
    guard !kept.contains(act) else { return }
    guard kept.count < Self.sparesPerPeerMax, spareCount < Self.sparesMax else {
      if unkept.count < Self.joinersMax { unkept.insert(act.author) }
      return
    }
    spare[act.author, default: []].append(act)
    spareCount += 1
  }

  private mutating func nominate(_ act: Act, _ change: inout Change) {
    guard case .role(let kind) = act.content, kind.role == .owner || kind.role == .admin else { return }
    nominate(kind.target, by: act.author, &change)
  }

  /// Whoever becomes a candidate may make others candidates by what was said before. One after the other, however long
  /// the chain is.
  private mutating func nominate(_ peer: PeerID, by nominator: PeerID, _ change: inout Change) {
    guard candidates.contains(nominator), candidates.insert(peer).inserted else { return }
    var new = [peer]
    while let peer = new.popLast() {
      if unkept.remove(peer) != nil { change.toReload.insert(peer) }
      let acts = spare.removeValue(forKey: peer) ?? []
      spareCount -= acts.count
      for act in acts {
        heard[act.place] = act
        guard case .role(let kind) = act.content, kind.role == .owner || kind.role == .admin,
          candidates.insert(kind.target).inserted
        else { continue }
        new.append(kind.target)
      }
      for (joiner, kept) in joins where !candidates.contains(joiner) {
        let isInvited = kept.contains { act in
          guard case .joined(let grant, isGenuine: true) = act.content else { return false }
          return grant.role == .admin && grant.inviter == peer
        }
        guard isInvited, candidates.insert(joiner).inserted else { continue }
        new.append(joiner)
      }
    }
  }
}

// MARK: Questions

extension Governance {
  package var owner: PeerID { folded.eras.owner }
  package var isClosed: Bool { folded.closed != nil }
  /// What the owner or an admin announced last; nil when nothing, or taken away.
  package var announcement: (body: String, author: PeerID, timestamp: UInt64)? {
    guard let act = folded.announcement, case .announcement(let body) = act.content, !body.isEmpty else { return nil }
    return (body, act.author, act.timestamp)
  }
  /// Whose tokens messages need.
  package var organiser: PeerID? { folded.organiser }
  /// The newest generation that counts; nil for the first one, which needs no act.
  package var generation: (number: UInt64, hash: Hash32)? {
    folded.generations.max { $0.key < $1.key }.map { ($0.key, $0.value.min()!) }
  }
  /// Of several the lowest.
  package func hash(ofGeneration number: UInt64) -> Hash32? { folded.generations[number]?.min() }
  /// All that acts state which count.
  package var statedGenerations: [UInt64: Set<Hash32>] { folded.generations }

  /// All of whom something is known.
  package var peers: Set<PeerID> { Set(folded.verdicts.keys) }

  /// A mute that has run out is for the caller to see, who has a clock.
  package func standing(of peer: PeerID) -> Standing {
    if peer == owner { return .owner }
    let verdict = folded.verdicts[peer] ?? Verdict()
    let isAdmin: Bool
    switch verdict.ranks.last {
    case nil:
      guard !verdict.joins.isEmpty else { return .notAdmitted(verdict.refusal) }
      isAdmin = verdict.joinedAsAdmin
    case .some(let last):
      switch last.effect {
      case .banned: return .banned
      case .removed:
        let answers = verdict.answers(last)
        guard !answers.isEmpty else { return .removed }
        isAdmin = answers.contains { $0.grant.role == .admin }
      default: isAdmin = last.effect.isRank
      }
    }
    if isAdmin { return .admin }
    guard case .muted(let until) = verdict.mutes.last?.effect else { return .member }
    return .muted(until: until)
  }

  /// The mute on somebody, of whatever rank: until when; nil inside when it must be lifted.
  package func mute(of peer: PeerID) -> (until: UInt64?, isMuted: Bool) {
    guard case .muted(let until) = folded.verdicts[peer]?.mutes.last?.effect else { return (nil, false) }
    return (until, true)
  }

  /// Why an entry does not count; nil when it does.
  package func voidReason(_ entry: EntryFacts) -> VoidReason? {
    folded.voidReason(entry)
  }

  /// Whether its author was owner or admin there.
  package func isModerators(_ order: OrderKey) -> Bool { folded.isModerators(order) }

  /// Whether a hand raised there has been lowered by somebody who may.
  package func isHandLowered(_ order: OrderKey) -> Bool {
    folded.verdicts[order.author]?.lowered.contains { !$0.isBelow(order) } ?? false
  }

  /// Why what is said now would not count; `now`: milliseconds since 1970.
  package func troubleSaying(_ peer: PeerID, isHidden: Bool, at now: UInt64) -> VoidReason? {
    switch standing(of: peer) {
    case .owner: return nil
    case .removed: return .removed
    case .banned: return .banned
    case .notAdmitted(let refusal): return .notAdmitted(refusal)
    case .admin, .member, .muted: break
    }
    if isClosed { return .closed }
    let mute = mute(of: peer)
    guard !isHidden, mute.isMuted, mute.until.map({ now < $0 }) ?? true else { return nil }
    return .muted(until: mute.until)
  }

  /// Why an act said now would be void; nil when it would count.
  package func mayAct(_ actor: PeerID, _ deed: Deed, on target: PeerID? = nil) -> ActRefusal? {
    let own = standing(of: actor)
    guard own.isGood else { return troubleSaying(actor, isHidden: true, at: 0).map { .excluded($0) } ?? .notAdmin }
    guard own.isPrivileged else { return .notAdmin }
    switch deed {
    case .close, .setOrganiser, .role(.owner), .role(.admin), .invite(.admin): if own != .owner { return .notOwner }
    default: break
    }
    if isClosed, own != .owner { return .closed }
    guard let target else { return nil }
    switch deed {
    case .role:
      if target == actor { return .targetIsSelf }
    default: if target == actor { return nil }
    }
    if target == owner { return .targetIsOwner }
    if own != .owner, standing(of: target) == .admin { return .targetIsAdmin }
    return nil
  }
}
