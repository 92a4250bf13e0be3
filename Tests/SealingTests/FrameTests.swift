import ParleyVocabulary
import Testing

@testable import ParleySealing

@Suite struct FrameTests {
  private let sealer: FrameSealer
  private var opener: FrameOpener

  init() {
    let key = [UInt8](repeating: 5, count: 32)
    (sealer, opener) = key.withUnsafeBytes {
      (
        FrameSealer(NoiseCipher(suite: .chaChaPoly, key: $0)),
        FrameOpener(NoiseCipher(suite: .chaChaPoly, key: $0))
      )
    }
  }

  @Test mutating func payloadsOfEveryLengthPass() throws {
    let longest = [UInt8](repeating: 8, count: FrameSealer.payloadByteCountMax)
    var stream: [UInt8] = []
    for payload in [[], [1], longest, Array("hello".utf8)] { try sealer.seal(payload, appendingTo: &stream) }
    #expect(stream.count == 2 + 16 + 3 + 16 + 32_002 + 2 + 16 + 5)
    opener.append(stream)
    #expect(try opener.next() == [])
    #expect(try opener.next() == [1])
    #expect(try opener.next() == longest)
    #expect(try opener.next() == Array("hello".utf8))
    #expect(try opener.next() == nil)
    #expect(opener.waitingByteCount == 0)
  }

  @Test(arguments: [1, 2, 3, 17, 100, 4_096])
  mutating func piecesOfAnySizeAreJoined(_ pieceByteCount: Int) throws {
    let payloads = (0..<40).map { [UInt8](repeating: UInt8($0), count: $0 * 13) }
    var stream: [UInt8] = []
    for payload in payloads {
      try payload.withUnsafeBytes { try sealer.seal($0, appendingTo: &stream) }
    }
    var opened: [[UInt8]] = []
    for start in stride(from: 0, to: stream.count, by: pieceByteCount) {
      opener.append(Array(stream[start..<min(start + pieceByteCount, stream.count)]))
      while let payload = try opener.next() { opened.append(payload) }
      #expect(opener.waitingByteCount < 2 + 39 * 13 + 16)
    }
    #expect(opened == payloads)
  }

  /// However the stream is cut: the same payloads, and what waits is less than a frame.
  @Test(arguments: [1, 2, 3, 17, 100, 4_096, 1 << 20])
  mutating func framesAreOpenedTogether(_ pieceByteCount: Int) throws {
    let payloads = (0..<40).map { [UInt8](repeating: UInt8($0), count: $0 * 13) }
    var stream: [UInt8] = []
    for payload in payloads { try sealer.seal(appendingTo: &stream) { $0 += payload } }
    // What came with the end of the handshake.
    opener.append(Array(stream[..<50]))
    var opened: [ArraySlice<UInt8>] = []
    for start in stride(from: 50, to: stream.count, by: pieceByteCount) {
      let (more, failure) = opener.openAll(Array(stream[start..<min(start + pieceByteCount, stream.count)]))
      #expect(failure == nil)
      opened += more
      #expect(opener.waitingByteCount < 2 + 39 * 13 + 16)
    }
    #expect(opened.map { Array($0) } == payloads)
    #expect(opener.waitingByteCount == 0)
  }

  @Test mutating func whatIsBeforeARefusedFrameIsOpened() throws {
    let stream = try sealer.seal([1]) + sealer.seal([2]) + sealer.seal([3]).flipping(bit: 40) + sealer.seal([4])
    let (payloads, failure) = opener.openAll(stream)
    #expect(payloads == [[1], [2]])
    #expect(failure == .notAuthentic)
    let again = opener.openAll(try sealer.seal([5]))
    #expect(again.payloads.isEmpty)
    #expect(again.failure == .notAuthentic)
    #expect(throws: FrameError.notAuthentic) { try opener.next() }
  }

  @Test(arguments: [0, 15, 32_001, 65_535])
  mutating func wrongLengthsAreRefusedTogether(_ byteCount: Int) throws {
    let stream = try sealer.seal([1]) + [UInt8(byteCount >> 8), UInt8(byteCount & 0xFF)]
    let (payloads, failure) = opener.openAll(stream)
    #expect(payloads == [[1]])
    let expected: FrameError =
      byteCount < 16
      ? .tooShort(byteCount: byteCount, byteCountMin: 16) : .tooLong(byteCount: byteCount, byteCountMax: 32_000)
    #expect(failure == expected)
  }

  @Test func whatIsTooLongIsNotSealedInPlaceEither() throws {
    var stream: [UInt8] = [7]
    #expect(throws: FrameError.tooLong(byteCount: 32_001, byteCountMax: 32_000)) {
      try sealer.seal(appendingTo: &stream) { $0 += [UInt8](repeating: 0, count: FrameSealer.payloadByteCountMax + 1) }
    }
    #expect(stream == [7])
  }

  @Test func longerPayloadsAreNotSealed() throws {
    let tooLong = [UInt8](repeating: 0, count: FrameSealer.payloadByteCountMax + 1)
    var stream: [UInt8] = [7]
    #expect(throws: FrameError.tooLong(byteCount: 32_001, byteCountMax: 32_000)) {
      try sealer.seal(tooLong, appendingTo: &stream)
    }
    #expect(stream == [7])
  }

  @Test(arguments: 0..<16)
  mutating func lengthsBelowTheTagAreRefused(_ byteCount: Int) {
    let error = FrameError.tooShort(byteCount: byteCount, byteCountMin: 16)
    opener.append([0, UInt8(byteCount)])
    #expect(throws: error) { try opener.next() }
    opener.append([0, 16])
    #expect(throws: error) { try opener.next() }
  }

  @Test(arguments: [32_001, 32_768, 65_535])
  mutating func lengthsAboveTheLimitAreRefusedAtOnce(_ byteCount: Int) {
    opener.append([UInt8(byteCount >> 8), UInt8(byteCount & 0xFF)])
    #expect(throws: FrameError.tooLong(byteCount: byteCount, byteCountMax: 32_000)) { try opener.next() }
  }

  @Test func everyTurnedBitIsRefused() throws {
    let frame = try sealer.seal([1, 2, 3])
    for bit in 0..<frame.count * 8 {
      var opener = opener
      // Behind it, enough for a length that grew.
      opener.append(frame.flipping(bit: bit) + [UInt8](repeating: 0, count: 40_000))
      #expect(throws: FrameError.self) { try opener.next() }
    }
  }

  @Test mutating func repeatedAndMissingFramesAreRefused() throws {
    let first = try sealer.seal([1])
    let second = try sealer.seal([2])
    var skipping = opener
    skipping.append(second)
    #expect(throws: FrameError.notAuthentic) { try skipping.next() }
    opener.append(first + first)
    #expect(try opener.next() == [1])
    #expect(throws: FrameError.notAuthentic) { try opener.next() }
  }
}
