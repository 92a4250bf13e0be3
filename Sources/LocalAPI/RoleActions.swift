import Parley

/// Roles in channels that have an owner.
extension Router {
  /// A year.
  private static let muteSecondsMax = 31_536_000.0

  func role(_ parts: [String], _ request: Request) async throws -> Reply {
    let fields = try Fields(request, known: ["role", "until", "seconds"])
    let word = try fields.required("role")
    let mute = try Self.mute(fields)
    guard mute == .muted(until: nil) || word == "muted" else {
      throw Problem.badRequest("\"until\" and \"seconds\" are for \"muted\"")
    }
    let roles: [String: RoleAssignment] = [
      "owner": .owner, "admin": .admin, "member": .member, "muted": mute, "removed": .removed,
      "banned": .banned,
    ]
    guard let role = roles[word] else {
      throw Problem.badRequest(
        "\"role\" must be \"owner\", \"admin\", \"member\", \"muted\", \"removed\" or \"banned\"")
    }
    let name = try ChannelName(parts[0])
    return Self.reply(name, try await node.setRole(role, of: parts[1], in: name))
  }

  private static func mute(_ fields: Fields) throws(Problem) -> RoleAssignment {
    switch (try fields.string("until"), try fields.seconds("seconds", max: muteSecondsMax)) {
    case (nil, nil): return .muted(until: nil)
    case (let text?, nil):
      guard let until = Timestamp(rfc3339: text) else {
        throw .badRequest("\"until\" must be a time such as \"2030-01-31T12:00:00Z\"")
      }
      return .muted(until: until)
    case (nil, let seconds?): return .mutedFor(seconds: Int(seconds.rounded(.up)))
    default: throw .badRequest("give either \"until\" or \"seconds\"")
    }
  }

  private static func reply(_ name: ChannelName, _ peer: PeerID) -> Reply {
    .json(["channel": .string(name.text), "peer_id": .string(peer.text)])
  }

  func unmute(_ parts: [String]) async throws -> Reply {
    let name = try ChannelName(parts[0])
    return Self.reply(name, try await node.unmute(parts[1], in: name))
  }

  func unban(_ parts: [String]) async throws -> Reply {
    let name = try ChannelName(parts[0])
    return Self.reply(name, try await node.unban(parts[1], in: name))
  }

  func lowerHand(_ parts: [String]) async throws -> Reply {
    let name = try ChannelName(parts[0])
    return Self.reply(name, try await node.lowerHand(of: parts[1], in: name))
  }

  func announcement(_ text: String) async throws -> Reply {
    let name = try ChannelName(text)
    return .json(JSON(try await node.announcement(in: name), in: name))
  }

  func announce(_ text: String, _ request: Request) async throws -> Reply {
    let name = try ChannelName(text)
    try await node.announce(try Fields(request, known: ["body"]).required("body"), in: name)
    return .json(JSON(try await node.announcement(in: name), in: name))
  }

  func close(_ text: String) async throws -> Reply {
    let name = try ChannelName(text)
    try await node.close(name)
    return .json(["channel": .string(name.text)])
  }
}

extension JSON {
  init(_ announcement: Announcement?, in channel: ChannelName) {
    self = [
      "channel": .string(channel.text), "body": announcement.map { .string($0.text) } ?? .null,
      "author": announcement.map { .string($0.author.text) } ?? .null,
      "timestamp": announcement.map { .string($0.timestamp.text) } ?? .null,
    ]
  }

  /// Those of a role, to be put beside others.
  static func members(of role: MemberRole) -> [JSON.Field] {
    var members: [JSON.Field] = [.init("role", .string(role.rank.rawValue)), .init("muted", .bool(role.isMuted))]
    if let until = role.mutedUntil { members.append(.init("muted_until", .string(until.text))) }
    return members
  }
}
