import ParleyVocabulary

/// `{…,"type":"organiser","key":"…"}`: messages need a token that this key signed; without `key` none is needed.
package struct OrganiserKind: ActKind {
  package static let type = "organiser"
  package static let code: UInt64 = 15
  package let key: PeerID?

  package init(key: PeerID?) { self.key = key }
  package init(from members: [JSONMember]) throws(WireError) {
    guard let text = try members.optionalString("key") else {
      key = nil
      return
    }
    guard let key = PeerID(text: text) else { throw .malformed(field: "key", reason: "not a key in base32") }
    self.key = key
  }
  package var members: [JSONMember] { key.map { [JSONMember("key", .string($0.text))] } ?? [] }
}
