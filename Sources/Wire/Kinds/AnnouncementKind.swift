/// `{…,"type":"announcement","body":"…"}`: what stands over the channel until there is another; empty takes it away.
package struct AnnouncementKind: ActKind {
  package static let type = "announcement"
  package static let code: UInt64 = 11
  package static let bodyByteCountMax = 2_048
  /// 0 to 2,048 bytes; hostile until escaped.
  package let body: String

  package init(body: String) {
    precondition(body.utf8.count <= Self.bodyByteCountMax, "its size was checked where it was said")
    self.body = body
  }
  package init(from members: [JSONMember]) throws(WireError) {
    body = try members.text("body", byteCountMax: Self.bodyByteCountMax)
  }
  package var members: [JSONMember] { [JSONMember("body", .string(body))] }
}
