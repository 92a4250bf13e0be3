import ParleyVocabulary

/// `{…,"type":"generation","number":1,"hash":"…"}`: the channel has a new secret. The secret itself goes to each member
/// in a session of its own.
package struct GenerationKind: ActKind {
  package static let type = "generation"
  package static let code: UInt64 = 13
  /// The channel's first secret is that of generation 0, which needs no act.
  package static let numberMax: UInt64 = 0xFFFF_FFFF
  package let number: UInt64
  /// What the generation is named by beside its number: a hash of both and the secret.
  package let hash: Hash32

  package init(number: UInt64, hash: Hash32) {
    precondition((1...Self.numberMax).contains(number), "made here, within what readers take")
    self.number = number
    self.hash = hash
  }
  package init(from members: [JSONMember]) throws(WireError) {
    number = try members.counter("number")
    guard (1...Self.numberMax).contains(number) else { throw .malformed(field: "number", reason: "out of range") }
    let text = try members.string("hash")
    guard text.utf8.count == 52, let bytes = Base32.decode(text), let hash = Hash32(bytes: bytes) else {
      throw .malformed(field: "hash", reason: "not 32 bytes in base32")
    }
    self.hash = hash
  }
  package var members: [JSONMember] {
    [JSONMember("number", .integer(Int64(number))), JSONMember("hash", .string(Base32.encode(hash.bytes)))]
  }
}
