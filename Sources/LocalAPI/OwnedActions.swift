import Parley

/// Channels with an owner.
extension Router {
  func create(_ request: Request) async throws -> Reply {
    let fields = try Fields(request, known: ["name", "type"])
    let name = try ChannelName(try fields.required("name"))
    let type = try fields.channelType()
    try await node.create(name, as: type)
    return .json(
      ["name": .string(name.text), "type": .string(type.rawValue), "owner": .string(await node.peerID.text)],
      status: 201)
  }

  func joinByInvitation(_ request: Request) async throws -> Reply {
    let fields = try Fields(request, known: ["link", "wait"])
    let link = try fields.required("link")
    let wait = try fields.seconds("wait", max: Self.waitSecondsMax) ?? 0
    let events = await node.events(bufferingCount: 64)
    let name = try await node.join(invitation: link)
    if wait > 0 { await waitForCompany(in: name, seconds: wait, events: events) }
    return await joined(name, isOpen: false)
  }

  func invite(_ name: String, _ request: Request) async throws -> Reply {
    let fields = try Fields(request, known: ["role", "expires_after", "uses"])
    guard let role = InvitedRole(rawValue: try fields.string("role") ?? "member") else {
      throw Problem.badRequest("\"role\" must be \"member\" or \"admin\"")
    }
    let invitation = try await node.invite(
      to: try ChannelName(name), as: role, expiringAfter: try fields.count("expires_after"),
      uses: try fields.count("uses"))
    return .json(JSON(invitation), status: 201)
  }

  func rotate(_ name: String) async throws -> Reply {
    let name = try ChannelName(name)
    return .json(["channel": .string(name.text), "generation": .count(try await node.rotate(name))])
  }
}

extension JSON {
  /// A row of the code is a text of its half blocks.
  init(_ invitation: InvitationLink) {
    self = [
      "channel": .string(invitation.channel.text), "link": .string(invitation.link),
      "role": .string(invitation.role.rawValue),
      "expires": invitation.expires.map { .integer(Int64(clamping: $0)) } ?? .null,
      "uses": invitation.uses.map { .count($0) } ?? .null,
      "code": invitation.code.map { .array($0.halfBlocks.map { .string($0) }) } ?? .null,
      "svg": invitation.code.map { .string($0.svg) } ?? .null,
    ]
  }
}
