import ParleyVocabulary

/// Says who made a generation of an owned channel. Travels signed beside the secret, so that whoever has both can pass
/// them on.
package struct GenerationStatement: Equatable, Sendable {
  package static let context = "generation"
  /// Belongs to no run: signed under the instance 0.
  package static let instance = Instance(0)
  package static let excludedMax = 8
  package static let byteCountMax = 32 + 8 + 32 + excludedMax * 32

  package let author: PeerID
  package let id: GenerationID
  /// Who is removed by it. The secret goes round faster than the act that says so, and must not go to them.
  package let excluded: [PeerID]

  package init(author: PeerID, id: GenerationID, excluded: [PeerID] = []) {
    precondition(excluded.count <= Self.excludedMax, "made here, within what readers take")
    self.author = author
    self.id = id
    self.excluded = excluded
  }

  package init(decoding bytes: ArraySlice<UInt8>) throws(WireError) {
    var reader = ByteReader(bytes)
    author = PeerID(try reader.bytes32("author"))
    let number = try reader.varint("generation")
    guard number <= GenerationID.numberMax else { throw .outOfRange(field: "generation", value: number) }
    id = GenerationID(number: number, hash: try reader.bytes32("hash"))
    guard reader.remaining % 32 == 0 else { throw .trailing(byteCount: reader.remaining % 32) }
    let count = reader.remaining / 32
    guard count <= Self.excludedMax else {
      throw .tooMany(field: "excluded", count: UInt64(count), countMax: Self.excludedMax)
    }
    var excluded: [PeerID] = []
    for _ in 0..<count { excluded.append(PeerID(try reader.bytes32("excluded"))) }
    self.excluded = excluded
  }

  package var encoded: [UInt8] {
    var out = ByteWriter(reserving: Self.byteCountMax)
    out.bytes32(author.value)
    out.varint(id.number)
    out.bytes32(id.hash)
    for peer in excluded { out.bytes32(peer.value) }
    return out.bytes
  }
}
