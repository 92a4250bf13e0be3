import ParleyVocabulary

/// `{…,"type":"joined","grant":"…"}`: the first thing that somebody says who came by an invitation.
package struct JoinedKind: ActKind {
  package static let type = "joined"
  package static let code: UInt64 = 8
  package let grant: Grant

  package init(grant: Grant) { self.grant = grant }
  package init(from members: [JSONMember]) throws(WireError) {
    let text = try members.text("grant", byteCountMax: (Grant.byteCountMax * 8 + 4) / 5)
    guard let bytes = Base32.decode(text), let grant = try? Grant(decoding: bytes[...]) else {
      throw .malformed(field: "grant", reason: "not a grant in base32")
    }
    self.grant = grant
  }
  package var members: [JSONMember] { [JSONMember("grant", .string(Base32.encode(grant.encoded)))] }
}
