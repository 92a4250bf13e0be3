import ParleyActors
import ParleySealing
import ParleyVocabulary
import ParleyWire

/// Channels with an owner.
extension Node {
  /// Makes a channel with a secret that nobody can guess and this node's identity as its owner, and joins it, again at
  /// every start until `leave`. Others come in by invitation. Every call makes another channel: two of one name have
  /// nothing to do with each other. Invitations say whether it is a room.
  ///
  /// Throws `.otherSecret` when this node is in a channel of that name, `.tooManyChannels`, `.profileDamaged`.
  public func create(_ name: ChannelName, as type: ChannelType = .group) async throws(ParleyError) {
    let engine = try await running()
    guard hub.channel(named: name) == nil else { throw .otherSecret(name) }
    let identity = profile.identity
    let founded = ChannelKeys.founded(name: name, by: identity.peerID, type: type)
    let keys = founded.stated { id in
      let object = GenerationStatement(author: identity.peerID, id: id).encoded
      let signature = identity.sign(
        context: GenerationStatement.context, channel: founded.id, log: GenerationStatement.instance, object: object)
      return Signed(signature: signature, object: object).encoded
    }
    try await enterAndKeep(keys, engine)
  }

  /// Draws a new secret for a channel of which this node is the owner or an admin, and hands it to each member in good
  /// standing in a session of its own; they pass it on. Members that are away get it when they come back, within 30
  /// days. Returns the number of the new generation once this node sends under it.
  ///
  /// Throws `.notInChannel`, and `.notPermitted` for those who may not and for channels that nobody owns.
  @discardableResult
  public func rotate(_ name: ChannelName) async throws(ParleyError) -> UInt64 {
    try await rotate(name, refusing: [:])
  }

  /// Those refused do not get it.
  @discardableResult
  func rotate(_ name: ChannelName, refusing refused: [PeerID: ChannelRefusal]) async throws(ParleyError) -> UInt64 {
    let engine = try await running()
    let joined = try channel(name)
    guard let generation = await engine.links.rotate(joined.id, refusing: refused) else {
      throw .notPermitted("only the owner and the admins of an owned channel can change its secret; it is as it was")
    }
    // So that it goes on counting when its maker has the right no more.
    if generation.number > 0 {
      try await act(GenerationKind(number: generation.number, hash: Hash32(generation.hash)), in: joined, engine)
    }
    return generation.number
  }

  /// Joins the channel and keeps it for the next start.
  func enterAndKeep(_ keys: ChannelKeys, _ engine: Engine) async throws(ParleyError) {
    try await enter(keys, engine)
    try await keepKeys(keys, engine)
    await greet(keys.name, engine)
  }

  private func keepKeys(_ keys: ChannelKeys, _ engine: Engine) async throws(ParleyError) {
    // It may have changed already.
    let current = await engine.links.currentKeys(of: keys.id) ?? keys
    // The home may be another node's by now.
    guard self.engine != nil else { throw .stopped }
    do { try profile.saveChannel(current) } catch {
      throw .profileDamaged(path: settings.home, reason: error.description)
    }
  }
}

extension Node {
  /// An act names each generation made here, so that it counts also when this node is no admin any more.
  func stateGenerations(_ engine: Engine) async {
    for await (channel, id) in hub.drawn.stream {
      guard let joined = hub.channels.first(where: { $0.id == channel }) else { continue }
      do {
        try await act(GenerationKind(number: id.number, hash: Hash32(id.hash)), in: joined, engine)
      } catch {
        hub.take(
          .trouble("the new secret of \(joined.name.text.escapedLine) is in use, but was not stated: \(error)"))
      }
    }
  }
}

// MARK: Invitations

/// What an invitation makes of those who come with it.
public enum InvitedRole: String, Sendable, CaseIterable {
  case member, admin
}

/// An invitation to an owned channel. Its link is a secret: whoever has it can join.
public struct InvitationLink: Sendable, Equatable {
  public let channel: ChannelName
  public let role: InvitedRole
  /// Milliseconds since 1970; nil: never.
  public let expires: UInt64?
  /// How many may join with it; nil: any number.
  public let uses: UInt64?
  /// `parley://join/NAME#…`.
  public let link: String
  /// The same for cameras; nil when libqrencode is not installed.
  public let code: QRCode?

  public init(
    channel: ChannelName, role: InvitedRole, expires: UInt64?, uses: UInt64?, link: String, code: QRCode?
  ) {
    self.channel = channel
    self.role = role
    self.expires = expires
    self.uses = uses
    self.link = link
    self.code = code
  }
}

extension Node {
  /// The longest time that an invitation can be given, in seconds: a year.
  public static var invitationSecondsMax: Int { 366 * 86_400 }
  /// The most uses that an invitation can be given.
  public static var invitationUsesMax: Int { 1_000_000 }

  /// Makes an invitation to an owned channel. Whoever has its link can read what is said there from then on, until the
  /// next `rotate`, and is a member with the right to speak as long as the invitation counts.
  ///
  /// `seconds` (1 to 31,622,400) until it expires, nil: never. `uses` (1 to 1,000,000) newcomers may come with it, nil:
  /// any number. Throws `.notInChannel`, `.badSetting`, `.notPermitted` where nobody owns the channel, and
  /// `.notAllowed` and `.excluded` for those who may not: members invite nobody, admins members only, the owner admins,
  /// too.
  public func invite(
    to name: ChannelName, as role: InvitedRole = .member, expiringAfter seconds: Int? = nil, uses: Int? = nil
  ) async throws(ParleyError) -> InvitationLink {
    let engine = try await running()
    let joined = try channel(name)
    try Self.check(seconds, "seconds until an invitation expires", 1...Self.invitationSecondsMax)
    try Self.check(uses, "uses of an invitation", 1...Self.invitationUsesMax)
    let keys = await engine.links.currentKeys(of: joined.id)
    guard let keys, let ownership = keys.ownership else {
      throw .notPermitted(
        "\(name.text.escapedLine) has no owner, so there are no invitations to it: tell others its "
          + (joined.isOpen ? "name" : "passphrase"))
    }
    try check(.invite(role == .admin ? .admin : .member), on: nil, in: joined)
    let now = SystemClock.wallMilliseconds()
    var grant = Grant(
      inviter: peerID, inviteID: Sealing.randomBytes(Grant.inviteIDByteCount), role: role == .admin ? .admin : .member,
      issued: now, expires: seconds.map { now + UInt64($0) * 1_000 } ?? 0, uses: UInt64(uses ?? 0))
    grant.signature = profile.identity.sign(
      context: Grant.context, channel: keys.id, log: Grant.log, object: grant.signedPart)
    let invitation = Invitation(
      name: name, ownership: ownership, generation: keys.newest.id.number,
      secret: keys.newest.withSecret { Bytes32(raw: $0)! }, grant: grant)
    return InvitationLink(
      channel: name, role: role, expires: grant.expires == 0 ? nil : grant.expires,
      uses: grant.uses == 0 ? nil : grant.uses, link: invitation.link, code: QRCode(invitation.linkInCapitals))
  }

  private static func check(_ value: Int?, _ field: String, _ allowed: ClosedRange<Int>) throws(ParleyError) {
    guard let value, !allowed.contains(value) else { return }
    throw .badSetting(field, value: value, allowed: allowed)
  }

  /// Joins an owned channel by an invitation's link, and again at every start until `leave`. Returns its name.
  ///
  /// Throws `.badInvitation` for a link that was altered or has expired by this node's clock, `.otherSecret` when this
  /// node is in another channel of that name, `.tooManyChannels`, `.profileDamaged`. Whether the invitation still
  /// counts when it is used up, or its inviter has lost the right, the members say: see `NodeEvent.refused`.
  @discardableResult
  public func join(invitation text: String) async throws(ParleyError) -> ChannelName {
    let engine = try await running()
    let invitation: Invitation
    do { invitation = try Invitation(link: text) } catch { throw .badInvitation(error.description) }
    let keys = ChannelKeys.owned(
      name: invitation.name, ownership: invitation.ownership, number: invitation.generation,
      secret: SecretBytes(invitation.secret.bytes))
    try Self.check(invitation.grant, in: keys.id)
    if let joined = hub.channel(named: invitation.name) {
      guard joined.id == keys.id else { throw .otherSecret(invitation.name) }
    } else {
      try await enter(keys, engine)
    }
    try await keepKeys(keys, engine)
    let joined = try channel(invitation.name)
    // The first thing that is said; once it counts, it need not be said again.
    if hub.rulebook.governance(of: keys.id)?.standing(of: peerID).isGood == false {
      try await act(JoinedKind(grant: invitation.grant), in: joined, engine)
    }
    await greet(invitation.name, engine)
    return invitation.name
  }

  /// What can be seen of an invitation before anything is joined.
  private static func check(_ grant: Grant, in channel: ChannelID) throws(ParleyError) {
    let isGenuine = Signature.verify(
      grant.signature, by: grant.inviter, context: Grant.context, channel: channel, log: Grant.log,
      object: grant.signedPart)
    guard isGenuine else { throw .badInvitation(InvitationError.altered.description) }
    let now = SystemClock.wallMilliseconds()
    // Clocks differ: members have the last word.
    guard grant.expires == 0 || now <= grant.expires + 300_000 else {
      let time = Timestamp(milliseconds: Int64(clamping: grant.expires)).text
      throw .badInvitation("the invitation expired at \(time), by this machine's clock: ask for another")
    }
  }
}
