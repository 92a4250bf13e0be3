/// `{"sender":{…},"message_id":"…","timestamp":"…","type":"text","body":"Hello World"}`
package struct TextKind: MessageKind {
  package static let type = "text"
  package static let code: UInt64 = 3
  package let body: String

  package init(body: String) { self.body = body }
  package init(from members: [JSONMember]) throws(WireError) { body = try members.string("body") }
  package var members: [JSONMember] { [JSONMember("body", .string(body))] }
}
