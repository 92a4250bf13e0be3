/// `{"sender":{…},"body":"true","type":"typing"}`: a live object, never kept. Its author is writing, or not any more.
package struct TypingKind: MessageKind {
  package static let type = "typing"
  package static let code: UInt64 = 26
  package static let needsMessageID = false
  package static let isLive = true
  package static let typePlace = TypePlace.last
  package let isTyping: Bool

  package init(isTyping: Bool) { self.isTyping = isTyping }
  package init(from members: [JSONMember]) throws(WireError) { isTyping = try members.booleanText("body") }
  package var members: [JSONMember] { [JSONMember("body", .string(isTyping ? "true" : "false"))] }
}
