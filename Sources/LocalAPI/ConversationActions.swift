import Parley

/// What is done to messages. The parts of an address: channel, sender, message ID.
extension Router {
  static let conversationRoutes: [Route] = [
    Route("GET", "v1/channels/*/pins") { router, _, parts in
      .json(.array(try await router.node.pins(in: try ChannelName(parts[0])).map { JSON($0) }))
    },
    Route("POST", "v1/channels/*/read") { router, request, parts in try await router.markRead(parts[0], request) },
    Route("GET", "v1/channels/*/messages/*/*") { router, _, parts in try await router.message(parts) },
    Route("PUT", "v1/channels/*/messages/*/*") { router, request, parts in try await router.edit(parts, request) },
    Route("POST", "v1/channels/*/messages/*/*/recall") { router, _, parts in try await router.recall(parts) },
    Route("PUT", "v1/channels/*/messages/*/*/reaction") { router, request, parts in
      try await router.react(parts, request)
    },
    Route("PUT", "v1/channels/*/messages/*/*/pin") { router, request, parts in try await router.pin(parts, request) },
  ]

  private static func target(_ parts: [String]) throws -> (name: ChannelName, message: MessageReference) {
    guard let sender = PeerID(text: parts[1]), let id = MessageID(parts[2]) else {
      throw Problem.badRequest(
        "a message is named by its sender's ID (52 characters) and its own: …/messages/{sender}/{id}")
    }
    return (try ChannelName(parts[0]), MessageReference(sender: sender, id: id))
  }

  private func reply(_ name: ChannelName, _ reference: MessageReference) async throws -> Reply {
    guard let message = try await node.message(reference, in: name) else { throw ParleyError.noSuchMessage(reference) }
    return .json(JSON(message))
  }

  private func message(_ parts: [String]) async throws -> Reply {
    let (name, reference) = try Self.target(parts)
    return try await reply(name, reference)
  }

  private func recall(_ parts: [String]) async throws -> Reply {
    let (name, reference) = try Self.target(parts)
    try await node.recall(reference, in: name)
    return try await reply(name, reference)
  }

  private func edit(_ parts: [String], _ request: Request) async throws -> Reply {
    let (name, reference) = try Self.target(parts)
    try await node.edit(reference, try Fields(request, known: Fields.editNames).edit(), in: name)
    return try await reply(name, reference)
  }

  private func react(_ parts: [String], _ request: Request) async throws -> Reply {
    let (name, reference) = try Self.target(parts)
    let fields = try Fields(request, known: ["emoji", "on"])
    try await node.react(
      try fields.required("emoji"), to: reference, isOn: try fields.bool("on") ?? true, in: name)
    return try await reply(name, reference)
  }

  private func pin(_ parts: [String], _ request: Request) async throws -> Reply {
    let (name, reference) = try Self.target(parts)
    try await node.pin(reference, isOn: try Fields(request, known: ["on"]).bool("on") ?? true, in: name)
    return try await reply(name, reference)
  }

  private func markRead(_ text: String, _ request: Request) async throws -> Reply {
    let name = try ChannelName(text)
    let references = try Fields(request, known: ["messages"]).references("messages")
    try await node.markRead(references, in: name)
    return .json(["channel": .string(name.text)])
  }
}

extension JSON {
  /// Nil when nothing was done to the message.
  init?(_ state: Message.State) {
    guard state != .untouched else { return nil }
    var members: [JSON.Field] = []
    if let recalled = state.recalled { members.append(.init("recalled", Self.deed(recalled))) }
    if let edited = state.edited {
      members.append(.init("edited", Self.deed(edited).setting("count", to: .count(state.editCount))))
    }
    if !state.reactions.isEmpty {
      let reactions = state.reactions.map { reaction -> JSON in
        ["emoji": .string(reaction.emoji), "peers": .array(reaction.peers.map { .string($0.text) })]
      }
      members.append(.init("reactions", .array(reactions)))
    }
    if let pinned = state.pinned { members.append(.init("pinned", Self.deed(pinned))) }
    if !state.readBy.isEmpty { members.append(.init("read_by", .array(state.readBy.map { Self.deed($0) }))) }
    self = .object(members)
  }

  private static func deed(_ deed: Message.State.Deed) -> JSON {
    ["operator_id": .string(deed.peer.text), "operation_time": .string(deed.at.text)]
  }

  init(_ change: MessageChange) {
    var members: [JSON.Field] = [
      .init("channel", change.channel.map { .string($0.text) } ?? .null), .init("what", .string(change.deed.word)),
      .init("operator_id", .string(change.peer.text)), .init("operation_time", .string(change.at.text)),
    ]
    switch change.deed {
    case .reacted(let emoji, let isOn): members += [.init("emoji", .string(emoji)), .init("on", .bool(isOn))]
    case .pinned(let isOn): members.append(.init("on", .bool(isOn)))
    case .recalled, .edited, .read: break
    }
    members += [
      .init("cursor", .count(change.cursor)), .init("messages", .array(change.messages.map { JSON($0) })),
    ]
    self = .object(members)
  }
}

extension MessageChange.Deed {
  fileprivate var word: String {
    switch self {
    case .recalled: "recalled"
    case .edited: "edited"
    case .reacted: "reacted"
    case .pinned: "pinned"
    case .read: "read"
    }
  }
}
