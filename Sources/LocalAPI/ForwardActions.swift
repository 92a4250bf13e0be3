import Parley

/// Messages said again, put together and taken apart.
extension Router {
  func forward(_ name: String, _ request: Request) async throws -> Reply {
    let fields = try Fields(request, known: ["messages", "to", "to_peer"])
    let name = try ChannelName(name)
    let target: ForwardTarget
    switch (try fields.string("to"), try fields.string("to_peer")) {
    case (let channel?, nil): target = .channel(try ChannelName(channel))
    case (nil, let peer?): target = .peer(peer)
    default: throw Problem.badRequest("give either \"to\", a channel, or \"to_peer\"")
    }
    let ids = try await node.forward(try await references(fields, name), from: name, to: target)
    return .json(["message_ids": .array(ids.map { .string($0.text) })], status: 201)
  }

  func combine(_ name: String, _ request: Request) async throws -> Reply {
    let fields = try Fields(request, known: ["messages", "to", "title", "summary", "compatible_text"])
    let name = try ChannelName(name)
    let target = try fields.string("to").map { try ChannelName($0) }
    let draft = try CombineDraft(
      title: try fields.required("title"), summary: try fields.string("summary") ?? "",
      compatibleText: try fields.string("compatible_text"))
    let receipt = try await node.combine(try await references(fields, name), from: name, to: target, draft)
    return .json(JSON(receipt), status: 201)
  }

  func unpack(_ text: String) async throws -> Reply {
    .json(.array(try await node.unpack(try mediaID(text)).map { JSON($0) }))
  }

  private func references(_ fields: Fields, _ name: ChannelName) async throws -> [MessageReference] {
    let named = try NamedMessages(fields)
    if named.ids.isEmpty { return named.references(found: []) }
    return named.references(found: try await node.references(to: named.ids, in: name))
  }
}

/// Messages that a call names, each by an ID or by an object that says whose it is as well. Apart from what waits for
/// the node: in one function with that, the optimiser of Swift 6.3 crashes.
private struct NamedMessages {
  private var keys: [MessageReference?] = []
  /// Of those of which it is not said whose they are.
  private(set) var ids: [MessageID] = []

  @inline(never) init(_ fields: Fields) throws {
    guard let values = try fields.array("messages") else { throw Problem.badRequest("the body lacks \"messages\"") }
    for value in values {
      if let members = value.members {
        keys.append(try Fields.reference(members, "messages"))
      } else if let text = value.string, let id = MessageID(text) {
        keys.append(nil)
        ids.append(id)
      } else {
        throw Problem.badRequest("\"messages\" must hold message IDs of 1 to 64 bytes")
      }
    }
  }

  /// `found`: for each of `ids`.
  @inline(never) func references(found: [MessageReference]) -> [MessageReference] {
    var next = found.makeIterator()
    return keys.compactMap { $0 ?? next.next() }
  }
}

extension JSON {
  /// As it was written; nothing shows that its sender did.
  package init(_ message: UnpackedMessage) { self = (try? JSON(parsing: message.json)) ?? .null }
}
