/// What is done to messages: hidden, and folded alike by all who see them. Whether it counts is not the codec's.
package protocol MessageActKind: MessageKind {}

extension MessageActKind {
  package static var isHidden: Bool { true }
}

extension [JSONMember] {
  /// What names the message that an act is on.
  func target() throws(WireError) -> MessageKey { try MessageKey(from: object("target"), in: "target") }

  func bool(_ name: String) throws(WireError) -> Bool {
    guard case .bool(let value) = self[name] else {
      throw .malformed(field: name, reason: self[name] == nil ? "missing" : "neither true nor false")
    }
    return value
  }
}
