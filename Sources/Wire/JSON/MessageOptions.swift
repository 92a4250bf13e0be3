import ParleyHashing
import ParleyVocabulary

/// What a message of any kind that people see may carry beside its own members.
package struct MessageOptions: Equatable, Sendable {
  /// Of the application; nobody else looks at it. An object, in the order written.
  package var ext: [JSONMember]?
  /// The message that this one answers.
  package var replyTo: MessageKey?

  package static let none = MessageOptions()

  package init(ext: [JSONMember]? = nil, replyTo: MessageKey? = nil) {
    self.ext = ext
    self.replyTo = replyTo
  }

  init(from members: [JSONMember]) throws(WireError) {
    ext = members["ext"] == nil ? nil : try members.object("ext")
    replyTo = members["reply_to"] == nil ? nil : try MessageKey(from: members.object("reply_to"), in: "reply_to")
  }

  package var members: [JSONMember] {
    var members: [JSONMember] = []
    if let ext { members.append(JSONMember("ext", .object(ext))) }
    if let replyTo { members.append(JSONMember("reply_to", replyTo.json)) }
    return members
  }
}

/// What names a message everywhere.
package struct MessageKey: Hashable, Sendable {
  package let sender: PeerID
  package let id: MessageID

  package init(sender: PeerID, id: MessageID) {
    self.sender = sender
    self.id = id
  }

  init(from members: [JSONMember], in field: String) throws(WireError) {
    guard let sender = PeerID(text: try members.string("sender_id")) else {
      throw .malformed(field: field, reason: "its sender_id is not a PeerID")
    }
    guard let id = MessageID(try members.string("message_id")) else {
      throw .malformed(field: field, reason: "its message_id is not 1 to 64 bytes")
    }
    self.init(sender: sender, id: id)
  }

  /// 16 bytes to look the message up by: of a store's rows, nothing travels under it.
  package var digest: [UInt8] { Array(BLAKE2b.hash256(sender.bytes + id.text.utf8).bytes.prefix(16)) }

  var json: JSONValue {
    .object([JSONMember("sender_id", .string(sender.text)), JSONMember("message_id", .string(id.text))])
  }
}
