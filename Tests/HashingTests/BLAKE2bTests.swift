import ParleyHashing
import ParleyVocabulary
import Testing

/// Values of Python's hashlib.blake2b.
@Suite struct BLAKE2bTests {
  private static let ofABC = "bddd813c634239723171ef3fee98579b94964e3bb1cb3e427262c8c068d52319"

  @Test func hash256IsOfThePartsJoined() {
    #expect(BLAKE2b.hash256(Array("abc".utf8)).bytes.hex == Self.ofABC)
    #expect(BLAKE2b.hash256([], Array("a".utf8), [], Array("bc".utf8)).bytes.hex == Self.ofABC)
  }

  @Test func keyedAndShort() {
    let key = Array(UInt8(0)..<32)
    #expect(BLAKE2b.hash(Array("parley".utf8), byteCount: 16, key: key).hex == "ee04de57f518772725e2566e7b8cf056")
  }

  @Test func aStreamIsTheSameWhereverItIsCut() {
    let bytes = (0..<1_000).map { UInt8(truncatingIfNeeded: $0 &* 7) }
    let whole = BLAKE2b.hash256(bytes).bytes
    for cut in [0, 1, 127, 128, 129, 999, 1_000] {
      var stream = BLAKE2b.Stream(byteCount: 32)
      stream.update(Array(bytes[..<cut]))
      stream.update(Array(bytes[cut...]))
      #expect(stream.finish() == whole)
    }
  }
}

extension Collection<UInt8> {
  var hex: String { map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined() }
}
