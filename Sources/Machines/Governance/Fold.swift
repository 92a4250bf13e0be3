import ParleyVocabulary
import ParleyWire

/// The result of all acts. In four steps, each of which needs only the ones before: who owned the channel when; what
/// the owners said about people, and so who is an admin; what admins said about those who are none; who came in by an
/// invitation.
struct Fold: Equatable, Sendable {
  private(set) var eras: Eras
  private(set) var verdicts: [PeerID: Verdict] = [:]
  /// What comes behind it counts no more, but the owner's.
  private(set) var closed: Act.Place?
  private(set) var announcement: Act?
  private(set) var generations: [UInt64: Set<Hash32>] = [:]
  private(set) var organiser: PeerID?
  /// Where these two took effect.
  private var announcedAt: Act.Place?
  private var organisedAt: Act.Place?

  /// `acts`: in order; of whoever may ever have had a right.
  init(founder: PeerID, acts: [Act], joins: [PeerID: [Act]]) {
    var transfers: [PeerID: [Eras.Handover]] = [:]
    for act in acts { if let handover = Eras.Handover(act) { transfers[act.author, default: []].append(handover) } }
    eras = Eras(founder: founder, transfers: transfers)
    verdicts[founder, default: Verdict()].isFounder = true
    let owners = takeOwnersActs(acts)
    let eras = eras
    admit(joins, as: .admin) { eras.owner(at: $0) == $1 }
    takeAdminsActs(acts.filter { !owners.contains($0.place) })
    let rights = self
    admit(joins, as: .member) { eras.owner(at: $0) == $1 || rights.wasAdmin($1, at: $0) }
  }

  // MARK: What owners said

  /// The places of all of them.
  private mutating func takeOwnersActs(_ acts: [Act]) -> Set<Act.Place> {
    var places: Set<Act.Place> = []
    for act in acts {
      guard let era = eras.era(of: act.place.order) else { continue }
      places.insert(act.place)
      // Whatever Lamport time it has, it comes before what the next owner says.
      let place = era.end.map { min(act.place, $0.place) } ?? act.place
      switch act.content {
      case .role(let kind):
        if kind.target != era.owner, kind.role != .owner { put(kind, act.timestamp, place) }
      case .close: closed = min(closed ?? act.place, act.place)
      case .organiser(let key):
        guard organisedAt.map({ $0 <= place }) ?? true else { break }
        organiser = key
        organisedAt = place
      default: takePrivileged(act, at: place)
      }
    }
    for era in eras.eras {
      if let from = era.from {
        put(StandingAct(effect: .owner, place: from, timestamp: 0, heads: nil), era.owner)
      }
      guard let end = era.end else { continue }
      put(
        StandingAct(effect: .admin, place: end.place, timestamp: end.timestamp, heads: endHeads(end), isHandover: true),
        era.owner)
    }
    sortActs()
    return places
  }

  /// Of the former owner's own log the transfer itself is the last.
  private func endHeads(_ end: Eras.Handover) -> ActHeads {
    var numbers = Dictionary(uniqueKeysWithValues: end.heads.heads.map { ($0.log, $0.number) })
    numbers[end.place.order.log] = end.place.order.number
    return ActHeads(numbers)
  }

  private mutating func put(_ kind: RoleKind, _ timestamp: UInt64, _ place: Act.Place) {
    let effect: StandingAct.Effect
    switch kind.role {
    case .owner: return
    case .admin: effect = .admin
    case .member: effect = .member
    case .muted: effect = .muted(until: kind.until)
    case .removed: effect = .removed
    case .banned: effect = .banned
    }
    put(StandingAct(effect: effect, place: place, timestamp: timestamp, heads: kind.heads), kind.target)
  }

  private mutating func put(_ act: StandingAct, _ target: PeerID) {
    switch act.effect {
    case .muted: verdicts[target, default: Verdict()].mutes.append(act)
    case .admin, .member, .owner:
      // The former owner is not unmuted by handing over: he was not muted.
      if !act.isHandover { verdicts[target, default: Verdict()].mutes.append(act) }
      verdicts[target, default: Verdict()].ranks.append(act)
    case .removed, .banned: verdicts[target, default: Verdict()].ranks.append(act)
    }
  }

  private mutating func sortActs() {
    for peer in verdicts.keys {
      Self.sort(&verdicts[peer]!.ranks)
      Self.sort(&verdicts[peer]!.mutes)
    }
  }

  /// Acts came by their own places, of which some were moved: those then stay as they came.
  private static func sort(_ acts: inout [StandingAct]) {
    guard acts.count > 1 else { return }
    acts = acts.enumerated().sorted { ($0.element.place, $0.offset) < ($1.element.place, $1.offset) }.map(\.element)
  }

  /// Of owners and admins alike.
  private mutating func takePrivileged(_ act: Act, at place: Act.Place) {
    switch act.content {
    case .announcement:
      guard announcedAt.map({ $0 <= place }) ?? true else { break }
      announcement = act
      announcedAt = place
    case .generation(let number, let hash): generations[number, default: []].insert(hash)
    case .lowerHand(let kind): verdicts[kind.target, default: Verdict()].lowered.append(kind.heads)
    case .joined, .role, .close, .organiser: break
    }
  }

  // MARK: What admins said

  private mutating func takeAdminsActs(_ acts: [Act]) {
    // What admins say makes nobody an admin: rights are looked up in what owners said alone.
    let rights = self
    for act in acts where rights.isAdmins(act.place.order) {
      switch act.content {
      case .role(let kind):
        guard kind.role != .owner, kind.role != .admin, kind.target != act.author,
          rights.isPlain(kind.target, for: act.place)
        else { continue }
        put(kind, act.timestamp, act.place)
      case .lowerHand(let kind):
        if kind.target == act.author || rights.isPlain(kind.target, for: act.place) {
          takePrivileged(act, at: act.place)
        }
      default: takePrivileged(act, at: act.place)
      }
    }
    sortActs()
  }

  func isModerators(_ order: OrderKey) -> Bool { eras.isOwners(order) || isAdmins(order) }

  private func isAdmins(_ order: OrderKey) -> Bool {
    guard let verdict = verdicts[order.author] else { return false }
    guard let last = verdict.ranks.last(where: { $0.governsRank(order) }) else {
      return verdict.joins.contains { $0.grant.role == .admin && $0.governs(order) }
    }
    if last.effect == .removed {
      return verdict.answers(last).contains { $0.grant.role == .admin && $0.governs(order) }
    }
    return last.effect.isRank
  }

  /// By order alone, for grants, which have no number.
  private func wasAdmin(_ peer: PeerID, at place: Act.Place) -> Bool {
    guard let verdict = verdicts[peer] else { return false }
    // Only owners' acts give and take a rank; those of admins are never on one who has it.
    guard let last = verdict.ranks.last(where: { $0.place < place }) else {
      return verdict.joins.contains { $0.grant.role == .admin && $0.place < place }
    }
    if last.effect == .removed {
      return verdict.answers(last).contains { $0.grant.role == .admin && $0.place < place }
    }
    return last.effect.isRank
  }

  /// Whether an admin may act on somebody there: not while the target has a rank, and not before it had one, lest
  /// something backdated reach it.
  private func isPlain(_ target: PeerID, for place: Act.Place) -> Bool {
    guard let verdict = verdicts[target] else { return true }
    if verdict.isFounder, verdict.ranks.isEmpty { return false }
    guard let last = verdict.ranks.last else { return !verdict.joinedAsAdmin }
    if last.effect.isRank { return false }
    if last.effect == .removed, verdict.answers(last).contains(where: { $0.grant.role == .admin }) { return false }
    let lastRank = verdict.ranks.lastIndex { $0.effect.isRank }
    if lastRank == nil, !verdict.joinedAsAdmin { return true }
    return verdict.ranks[lastRank.map { $0 + 1 } ?? 0].place < place
  }

  // MARK: Who came in

  private struct Invite: Hashable {
    let inviter: PeerID
    let id: [UInt8]
  }

  /// Those whom an owner or admin has confirmed come first, so that nobody who was let in is pushed out by somebody
  /// who backdates; then the order decides.
  private mutating func admit(
    _ joins: [PeerID: [Act]], as role: Grant.Role, hadRight: (Act.Place, PeerID) -> Bool
  ) {
    var byInvite: [Invite: [Join]] = [:]
    var refusals: [PeerID: (Act.Place, JoinRefusal)] = [:]
    func refuse(_ act: Act, _ reason: JoinRefusal) {
      if let known = refusals[act.author], known.0 < act.place { return }
      refusals[act.author] = (act.place, reason)
    }
    for case let act in joins.values.joined() {
      guard case .joined(let grant, let isGenuine) = act.content, grant.role == role else { continue }
      if !isGenuine {
        refuse(act, .altered)
      } else if grant.expires != 0, act.timestamp > grant.expires {
        refuse(act, .expired)
      } else if !hadRight(act.place, grant.inviter) {
        refuse(act, .inviterHadNoRight)
      } else {
        byInvite[Invite(inviter: grant.inviter, id: grant.inviteID), default: []]
          .append(Join(place: act.place, grant: grant))
      }
    }
    for joins in byInvite.values {
      for join in admitted(joins, else: { refuse(Act(place: $0.place, timestamp: 0, content: .close), .usedUp) }) {
        verdicts[join.place.order.author, default: Verdict()].joins.append(join)
      }
    }
    for (peer, refusal) in refusals { verdicts[peer, default: Verdict()].refusal = refusal.1 }
    for peer in verdicts.keys { verdicts[peer]!.joins.sort { $0.place < $1.place } }
  }

  private func admitted(_ joins: [Join], else refuse: (Join) -> Void) -> [Join] {
    let sorted = joins.map { (join: $0, isConfirmed: isConfirmed($0.place.order.author)) }
      .sorted { $0.isConfirmed == $1.isConfirmed ? $0.join.place < $1.join.place : $0.isConfirmed }
    var counted: Set<PeerID> = []
    var admitted: [Join] = []
    for (join, _) in sorted {
      let author = join.place.order.author
      if !counted.contains(author), join.grant.uses != 0, UInt64(counted.count) >= join.grant.uses {
        refuse(join)
        continue
      }
      counted.insert(author)
      admitted.append(join)
    }
    return admitted
  }

  private func isConfirmed(_ peer: PeerID) -> Bool {
    verdicts[peer]?.ranks.contains { $0.effect == .admin || $0.effect == .member } ?? false
  }

  // MARK: What counts

  func voidReason(_ entry: EntryFacts) -> VoidReason? {
    let order = entry.order
    if eras.isOwners(order) { return nil }
    guard let verdict = verdicts[order.author] else { return .notAdmitted(.noInvitation) }
    if let reason = exclusion(order, verdict) { return reason }
    if let closed, closed.order < order { return .closed }
    guard !entry.isHidden, let mute = verdict.mutes.last(where: { $0.governs(order) }),
      case .muted(let until) = mute.effect, until.map({ entry.timestamp < $0 }) ?? true
    else { return nil }
    return .muted(until: until)
  }

  private func exclusion(_ order: OrderKey, _ verdict: Verdict) -> VoidReason? {
    guard let last = verdict.ranks.last(where: { $0.governs(order) }) else {
      return verdict.isFounder || !verdict.joins.isEmpty ? nil : .notAdmitted(verdict.refusal)
    }
    switch last.effect {
    case .banned: return .banned
    case .removed: return verdict.answers(last).contains { $0.governs(order) } ? nil : .removed
    case .owner, .admin, .member, .muted: return nil
    }
  }

  func changedPeers(since before: Fold) -> Set<PeerID> {
    var peers = Set(verdicts.keys.filter { verdicts[$0] != before.verdicts[$0] })
    for peer in before.verdicts.keys where verdicts[peer] == nil { peers.insert(peer) }
    return peers
  }
}
