import Parley

/// Attributes of channels, and who is writing in them.
extension Router {
  func broadcast(_ request: Request) async throws -> Reply {
    let draft = try Fields(request, known: Fields.draftNames).draft()
    return .json(.array(try await node.broadcast(draft).map { JSON($0) }), status: 201)
  }

  func typing(_ text: String, _ request: Request) async throws -> Reply {
    let name = try ChannelName(text)
    guard let isTyping = try Fields(request, known: ["typing"]).bool("typing") else {
      throw Problem.badRequest("the body lacks \"typing\": true or false")
    }
    try await node.setTyping(isTyping, in: name)
    return .json(["channel": .string(name.text), "typing": .bool(isTyping)])
  }

  func attributes(_ text: String) async throws -> Reply {
    .json(.array(try await node.attributes(of: try ChannelName(text)).map { JSON($0) }))
  }

  func setAttribute(_ text: String, _ request: Request) async throws -> Reply {
    let name = try ChannelName(text)
    let fields = try Fields(request, known: ["key", "value", "overwrite", "until_leave"])
    let (key, value) = (try fields.required("key"), try fields.required("value"))
    try await node.setAttribute(
      key, to: value, isOverwriting: try fields.bool("overwrite") ?? true,
      isUntilLeave: try fields.bool("until_leave") ?? false, in: name)
    return .json(["channel": .string(name.text), "key": .string(key), "value": .string(value)])
  }

  /// In the query, since a request to delete has no body.
  func removeAttribute(_ text: String, _ request: Request) async throws -> Reply {
    let name = try ChannelName(text)
    func value(_ name: String) -> String? { request.query.first { $0.name == name }?.value }
    guard let key = value("key") else { throw Problem.badRequest("say which one: ?key=KEY") }
    let overwrite = value("overwrite") ?? "true"
    guard ["true", "false"].contains(overwrite) else { throw Problem.badRequest("overwrite must be true or false") }
    try await node.removeAttribute(key, isOverwriting: overwrite == "true", in: name)
    return .json(["channel": .string(name.text), "key": .string(key)])
  }
}

extension Fields {
  /// `group` when it is not said.
  func channelType() throws(Problem) -> ChannelType {
    guard let text = try string("type") else { return .group }
    guard let type = ChannelType(rawValue: text) else { throw .badRequest("\"type\" must be \"group\" or \"room\"") }
    return type
  }
}

extension JSON {
  init(_ outcome: BroadcastOutcome) {
    self = [
      "channel": .string(outcome.channel.text),
      "message_id": outcome.receipt.map { .string($0.id.text) } ?? .null,
      "problem": outcome.error.map { Problem($0).json } ?? .null,
    ]
  }

  init(_ attribute: ChannelAttribute) {
    self = [
      "key": .string(attribute.key), "value": .string(attribute.value), "sender_id": .string(attribute.author.text),
      "timestamp": .string(attribute.timestamp.text), "until_leave": .bool(attribute.isUntilLeave),
    ]
  }

  init(_ change: AttributeChange, in channel: ChannelName) {
    self = [
      "channel": .string(channel.text), "key": .string(change.key), "by": .string(change.by.text),
      "old": change.old.map { .string($0.value) } ?? .null, "value": change.new.map { .string($0.value) } ?? .null,
      "until_leave": .bool(change.new?.isUntilLeave ?? false),
    ]
  }
}

extension RenderedEvent {
  /// Of attributes and of who is writing.
  static func room(_ event: NodeEvent) -> (type: String, data: JSON) {
    switch event {
    case .attributeChanged(let name, let change): return ("attribute", JSON(change, in: name))
    case .typing(let name, let peer, let isTyping):
      let data: JSON = [
        "channel": .string(name.text), "peer_id": .string(peer.text), "typing": .bool(isTyping),
      ]
      return ("typing", data)
    case .messageDropped(let name, let priority, let count):
      let data: JSON = [
        "channel": .string(name.text), "priority": .string(priority.rawValue), "dropped": .count(count),
      ]
      return ("message_dropped", data)
    default: preconditionFailure("asked for these events only")
    }
  }
}
