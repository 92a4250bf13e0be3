/// `{…,"type":"token","token":"v4.public.…"}`: the organiser's word for its author. What it says is checked elsewhere.
package struct TokenKind: ActKind {
  package static let type = "token"
  package static let code: UInt64 = 14
  package static let byteCountMax = 4_096
  package let token: String

  package init(token: String) {
    precondition((1...Self.byteCountMax).contains(token.utf8.count), "its size was checked where it was taken")
    self.token = token
  }
  package init(from members: [JSONMember]) throws(WireError) {
    token = try members.text("token", byteCountMax: Self.byteCountMax)
    guard !token.isEmpty else { throw .malformed(field: "token", reason: "empty") }
  }
  package var members: [JSONMember] { [JSONMember("token", .string(token))] }
}
