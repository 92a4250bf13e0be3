import ParleyVocabulary

/// Says who made a generation of an owned channel. Travels signed beside the secret, so that whoever has both can pass
/// them on.
package struct GenerationStatement: Equatable, Sendable {
  package static let context = "generation"
  /// Belongs to no run: signed under the instance 0.
  package static let instance = Instance(0)
  package static let byteCountMax = 32 + 8 + 32

  package let author: PeerID
  package let id: GenerationID

  package init(author: PeerID, id: GenerationID) {
    self.author = author
    self.id = id
  }

  package init(decoding bytes: ArraySlice<UInt8>) throws(WireError) {
    var reader = ByteReader(bytes)
    author = PeerID(try reader.bytes32("author"))
    let number = try reader.varint("generation")
    guard number <= GenerationID.numberMax else { throw .outOfRange(field: "generation", value: number) }
    id = GenerationID(number: number, hash: try reader.bytes32("hash"))
    try reader.finish()
  }

  package var encoded: [UInt8] {
    var out = ByteWriter(reserving: Self.byteCountMax)
    out.bytes32(author.value)
    out.varint(id.number)
    out.bytes32(id.hash)
    return out.bytes
  }
}
