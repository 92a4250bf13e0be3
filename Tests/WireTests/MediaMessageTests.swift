import ParleyVocabulary
import ParleyWire
import Testing

private let id = MediaID(bytes: [UInt8](1...32))!

@Suite struct MediaMessageTests {
  private static let messages: [MediaMessage] = [
    .request(0, .manifest(id, offset: 0)), .request(1 << 61, .manifest(id, offset: 24_000)),
    .request(7, .pieceHashes(id, file: 3, first: 700, count: 700)), .request(8, .block(id, file: 0, index: 1 << 30)),
    .request(9, .block(id, file: 2, index: 65, count: 63)), .cancel(9, count: 64),
    .request(9, .have(id, first: 200_000)), .cancel(9),
    .reply(1, .manifestPart(total: 24_001, offset: 1, [UInt8](repeating: 1, count: 24_000)[...])),
    .reply(2, .pieceHashes([UInt8](repeating: 2, count: 22_400)[...])),
    .reply(3, .block([UInt8](repeating: 3, count: 16_384)[...])), .reply(4, .holdingAll),
    .reply(5, .holding(count: 11, first: 0, bitmap: [0xFF, 0xE0])),
    .reply(5, .holding(count: 200_009, first: 200_000, bitmap: [0xFF, 0x80])),
    .reply(5, .holding(count: 0, first: 0, bitmap: [])),
    .reply(5, .holding(count: 200_008, first: 0, bitmap: [UInt8](repeating: 255, count: 25_000)[...])),
    .reply(6, .refused(.changed)),
  ]

  @Test(arguments: messages) func everyMessageComesBackAndFitsAFrame(_ message: MediaMessage) throws {
    #expect(message.encoded.count <= MediaMessage.byteCountMax)
    #expect(try MediaMessage(decoding: message.encoded) == message)
  }

  @Test(arguments: messages) func everyTruncationIsRefusedOrShorter(_ message: MediaMessage) throws {
    let bytes = message.encoded
    for count in 0..<min(bytes.count, 60) {
      if let other = try? MediaMessage(decoding: Array(bytes.prefix(count))) { #expect(other.encoded.count == count) }
    }
  }

  @Test func theseBytesAreTheSpecification() throws {
    #expect(MediaMessage.request(5, .block(id, file: 0, index: 64)).encoded == [3, 5] + id.bytes + [0, 0x40, 0x40])
    #expect(MediaMessage.request(5, .manifest(id, offset: 0)).encoded == [1, 5] + id.bytes + [0])
    #expect(
      MediaMessage.request(5, .pieceHashes(id, file: 1, first: 2, count: 3)).encoded == [2, 5] + id.bytes + [1, 2, 3])
    #expect(MediaMessage.request(5, .have(id, first: 8)).encoded == [4, 5] + id.bytes + [8])
    #expect(MediaMessage.cancel(64).encoded == [5, 0x40, 64])
    #expect(MediaMessage.cancel(64, count: 2).encoded == [5, 0x40, 64, 2])
    #expect(MediaMessage.request(5, .block(id, file: 0, index: 64, count: 3)).encoded.suffix(2) == [0x40, 3])
    #expect(MediaMessage.reply(1, .manifestPart(total: 3, offset: 1, [8, 9])).encoded == [0x81, 1, 3, 1, 8, 9])
    #expect(MediaMessage.reply(1, .block([8, 9])).encoded == [0x83, 1, 8, 9])
    #expect(MediaMessage.reply(1, .holdingAll).encoded == [0x84, 1])
    #expect(MediaMessage.reply(1, .holding(count: 3, first: 0, bitmap: [0xA0])).encoded == [0x85, 1, 3, 0, 0xA0])
    #expect(MediaMessage.reply(1, .refused(.busy)).encoded == [0x86, 1, 4])
  }

  @Test(
    arguments: [
      ([], "media.type: 1 bytes needed, 0 there"), ([0, 1], "media.type: 0 is out of range"),
      ([0x87, 1], "media.type: 135 is out of range"), ([5, 1, 2, 0], "1 bytes too many at the end"),
      ([5, 1, 1], "cancel.count: 1 is out of range"),
      ([3, 1] + id.bytes + [0, 0, 0x40, 65], "block.count: 65 is out of range"),
      ([2, 1] + id.bytes + [0, 0, 0], "pieceHashes.count: 0 is out of range"),
      ([2, 1] + id.bytes + [0, 0, 0x42, 0xBD], "pieceHashes.count: 701 is out of range"),
      (
        [3, 1] + id.bytes + [0] + [UInt8](repeating: 0xFF, count: 8), "block.index: 4611686018427387903 is out of range"
      ),
      ([4, 1] + id.bytes + [3], "have.first: 3 is out of range"),
      ([0x81, 1, 3, 2, 8, 9], "manifestPart.bytes: they reach past the total of 3"),
      ([0x81, 1, 3, 2], "manifestPart.bytes: 1 bytes needed, 0 there"),
      ([0x82, 1] + [UInt8](repeating: 0, count: 33), "pieceHashes.bytes: 33 bytes are no whole number of hashes"),
      ([0x83, 1], "block.bytes: 1 bytes needed, 0 there"),
      ([0x83, 1] + [UInt8](repeating: 0, count: 16_385), "block.bytes: 16385 bytes, at most 16384 allowed"),
      ([0x85, 1, 9, 0, 0xFF], "holding.bitmap: 1 bytes for 9 pieces"),
      ([0x85, 1, 9, 0, 0xFF, 0xC0], "holding.bitmap: bits past the last piece are set"),
      ([0x85, 1, 9, 4, 0xF8], "holding.first: 4 is out of range"), ([0x86, 1, 0], "refused.reason: 0 is out of range"),
    ] as [([UInt8], String)])
  func whatIsWrongIsRefusedWithItsReason(_ bytes: [UInt8], _ reason: String) {
    let error = #expect(throws: WireError.self) { try MediaMessage(decoding: bytes) }
    #expect(error?.description == reason)
  }

  @Test func randomBytesNeverTrap() {
    var dice = SplitMix(state: 11)
    var decoded = 0
    for _ in 0..<20_000 {
      let count = Int(dice.next() % 80)
      var bytes = (0..<count).map { _ in UInt8(truncatingIfNeeded: dice.next()) }
      if count > 0 { bytes[0] = [1, 2, 3, 4, 5, 0x81, 0x82, 0x83, 0x84, 0x85, 0x86][Int(dice.next() % 11)] }
      guard let message = try? MediaMessage(decoding: bytes) else { continue }
      decoded += 1
      #expect(message.encoded == bytes)
    }
    #expect(decoded > 1_000)
  }
}

/// SplitMix64 (Steele, Lea, Flood 2014): the same numbers on every machine.
private struct SplitMix {
  var state: UInt64
  mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var z = state
    z = (z ^ z >> 30) &* 0xBF58_476D_1CE4_E5B9
    z = (z ^ z >> 27) &* 0x94D0_49BB_1331_11EB
    return z ^ z >> 31
  }
}
