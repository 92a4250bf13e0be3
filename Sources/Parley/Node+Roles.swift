import ParleyActors
import ParleyMachines
import ParleySealing
import ParleyVocabulary
import ParleyWire

/// Owner, admins and members of channels that have an owner. Every member computes from what is said here, and from
/// nothing else, who is what; what does not count is kept and shown to nobody.
extension Node {
  /// Makes somebody something. `peer` as for `tell`; the full ID also of somebody never met. What the target said so
  /// far, as far as this node has it, is not touched. Removing and banning somebody also changes the channel's key.
  ///
  /// The owner may do everything; admins may make members, mute, remove and ban whoever is not owner or admin. Throws
  /// `.notAllowed`, `.noSuchPeer`, `.ambiguousPeer`, `.notInChannel`, `.queueFull`.
  @discardableResult
  public func setRole(
    _ role: RoleAssignment, of peer: String, in name: ChannelName
  ) async throws(ParleyError) -> PeerID {
    let engine = try await running()
    let joined = try channel(name)
    let target = try await target(peer, engine)
    try await setRole(role, of: target, in: joined, engine)
    return target
  }

  private func setRole(
    _ role: RoleAssignment, of target: PeerID, in joined: Hub.Joined, _ engine: Engine
  ) async throws(ParleyError) {
    let (kind, until) = role.kind
    try check(.role(kind), on: target, in: joined)
    let whose = kind == .owner ? peerID : target
    let heads = try await heads(of: whose, in: joined, engine)
    try await act(RoleKind(target: target, role: kind, until: until, heads: heads), in: joined, engine)
    // What is said from here on is not for them.
    if kind == .removed || kind == .banned {
      try await rotate(joined.name, refusing: [target: kind == .banned ? .banned : .removed])
    }
  }

  /// Lifts a mute; an admin stays one. Throws as `setRole`, and `.notAllowed` with `.notMuted`.
  @discardableResult
  public func unmute(_ peer: String, in name: ChannelName) async throws(ParleyError) -> PeerID {
    let engine = try await running()
    let joined = try channel(name)
    let target = try await target(peer, engine)
    guard let role = hub.rulebook.governance(of: joined.id)?.role(of: target) else {
      throw .notAllowed(name, .noOwner)
    }
    guard role.isMuted else { throw .notAllowed(name, .notMuted) }
    try await setRole(role.rank == .admin ? .admin : .member, of: target, in: joined, engine)
    return target
  }

  /// Lets somebody in again who was removed or banned. Throws as `setRole`, and `.notAllowed` with `.notBanned`.
  @discardableResult
  public func unban(_ peer: String, in name: ChannelName) async throws(ParleyError) -> PeerID {
    let engine = try await running()
    let joined = try channel(name)
    let target = try await target(peer, engine)
    guard let role = hub.rulebook.governance(of: joined.id)?.role(of: target) else {
      throw .notAllowed(name, .noOwner)
    }
    guard role.rank == .removed || role.rank == .banned else { throw .notAllowed(name, .notBanned) }
    try await setRole(.member, of: target, in: joined, engine)
    return target
  }

  /// Takes somebody's hand down; it can be raised again. Owner and admins. Throws as `setRole`.
  @discardableResult
  public func lowerHand(of peer: String, in name: ChannelName) async throws(ParleyError) -> PeerID {
    let engine = try await running()
    let joined = try channel(name)
    let target = try await target(peer, engine)
    try check(.lowerHand, on: target, in: joined)
    let heads = try await heads(of: target, in: joined, engine)
    try await act(LowerHandKind(target: target, heads: heads), in: joined, engine)
    return target
  }

  /// Puts a text over the channel, in place of the last one; an empty one takes it away. Owner and admins. Throws
  /// `.announcementTooLong` (2,048 bytes of UTF-8), `.notAllowed`, `.notInChannel`, `.queueFull`.
  public func announce(_ text: String, in name: ChannelName) async throws(ParleyError) {
    let engine = try await running()
    let joined = try channel(name)
    guard text.utf8.count <= AnnouncementKind.bodyByteCountMax else {
      throw .announcementTooLong(byteCount: text.utf8.count, byteCountMax: AnnouncementKind.bodyByteCountMax)
    }
    try check(.announce, on: nil, in: joined)
    try await act(AnnouncementKind(body: text), in: joined, engine)
  }

  /// What stands over the channel; nil when nothing does. Throws `.notInChannel`.
  public func announcement(in name: ChannelName) async throws(ParleyError) -> Announcement? {
    hub.rulebook.governance(of: try channel(name).id)?.announcement.map { Announcement($0) }
  }

  /// Ends the channel for everybody but its owner: what others say from then on counts for nobody. It cannot be opened
  /// again. Throws `.notAllowed`, `.notInChannel`, `.queueFull`.
  public func close(_ name: ChannelName) async throws(ParleyError) {
    let engine = try await running()
    let joined = try channel(name)
    try check(.close, on: nil, in: joined)
    try await act(CloseKind(), in: joined, engine)
  }

  /// What this node is in the channel; nil where there is no owner. Throws `.notInChannel`.
  public func role(in name: ChannelName) async throws(ParleyError) -> MemberRole? {
    hub.rulebook.governance(of: try channel(name).id)?.role(of: peerID)
  }

  // MARK: Acts

  /// Also this node's own ID, of which is said what it may not.
  private func target(_ text: String, _ engine: Engine) async throws(ParleyError) -> PeerID {
    if text.filter({ $0 != "-" }).lowercased() == peerID.text { return peerID }
    return try await find(text, engine, isBlockedToo: true).peer
  }

  func check(_ deed: Deed, on target: PeerID?, in joined: Hub.Joined) throws(ParleyError) {
    guard let governance = hub.rulebook.governance(of: joined.id) else { throw .notAllowed(joined.name, .noOwner) }
    guard let refusal = governance.mayAct(peerID, deed, on: target) else { return }
    if case .excluded(let reason) = refusal { throw .excluded(joined.name, Exclusion(reason)) }
    throw .notAllowed(joined.name, RoleRefusal(refusal))
  }

  /// What this node has of somebody's logs, up to where a Lamport time is far ahead of the channel's.
  private func heads(
    of peer: PeerID, in joined: Hub.Joined, _ engine: Engine
  ) async throws(ParleyError) -> ActHeads {
    let lamport = await engine.messaging.lamport(in: joined.id)
    do {
      return ActHeads(try await engine.store.heads(of: peer, in: joined.id, lamportMax: lamport))
    } catch {
      throw .profileDamaged(path: settings.home, reason: error.description)
    }
  }

  /// On the disk and on the wire when it returns.
  func act(_ content: some ActKind, in joined: Hub.Joined, _ engine: Engine) async throws(ParleyError) {
    let json = try checked(message(content, Sealing.randomMessageID()))
    let answer = await engine.messaging.submit(
      joined.id, kind: KindRegistry.code(of: content.type), isHidden: true, json: json)
    _ = try Self.stored(answer, joined.name)
  }
}

extension RoleAssignment {
  fileprivate var kind: (RoleKind.Role, until: UInt64?) {
    switch self {
    case .owner: (.owner, nil)
    case .admin: (.admin, nil)
    case .member: (.member, nil)
    case .muted(let until): (.muted, until.map { UInt64(clamping: max(0, $0.milliseconds)) })
    case .mutedFor(let seconds):
      (.muted, SystemClock.wallMilliseconds() + UInt64(max(1, min(seconds, 31_536_000))) * 1_000)
    case .removed: (.removed, nil)
    case .banned: (.banned, nil)
    }
  }
}
