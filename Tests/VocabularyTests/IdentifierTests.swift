import Testing

/// The disk and the wire compare bytes; a dictionary that did not took one message for another.
@Test func messageIDsAreTheSameWhenTheirBytesAre() throws {
  let composed = try #require(MessageID("caf\u{E9}"))
  let decomposed = try #require(MessageID("cafe\u{301}"))
  #expect(composed.text == decomposed.text)
  #expect(composed != decomposed)
  #expect(Set([composed, decomposed, composed]).count == 2)
  #expect((composed < decomposed) != (decomposed < composed))
}

import ParleyVocabulary

@Suite struct IdentifierTests {
  /// RFC 4648 section 10, in lower case and without padding.
  @Test(arguments: [
    ("", ""), ("f", "my"), ("fo", "mzxq"), ("foo", "mzxw6"), ("foob", "mzxw6yq"), ("fooba", "mzxw6ytb"),
    ("foobar", "mzxw6ytboi"),
  ])
  func base32MatchesTheStandard(_ plain: String, _ text: String) {
    #expect(Base32.encode(plain.utf8) == text)
    #expect(Base32.decode(text) == Array(plain.utf8))
  }

  @Test(arguments: ["MY", "m", "mz1q", "mzx", "my======", "mz"])
  func base32RefusesWhatIsNotOneValuesOnlyText(_ text: String) { #expect(Base32.decode(text) == nil) }

  @Test func peerIDsKeepTheOrderOfTheirBytes() {
    let low = PeerID(bytes: [UInt8](repeating: 0, count: 31) + [1])!
    let high = PeerID(bytes: [1] + [UInt8](repeating: 0, count: 31))!
    #expect(low < high)
    #expect(PeerID(text: high.text) == high)
    #expect(high.text.utf8.count == 52)
    #expect(PeerID(bytes: high.bytes) == high)
  }

  @Test(arguments: [
    (0, "1970-01-01T00:00:00Z"), (1_615_539_916_000, "2021-03-12T09:05:16Z"), (-1, "1969-12-31T23:59:59Z"),
    (951_782_400_000, "2000-02-29T00:00:00Z"), (253_402_300_799_999, "9999-12-31T23:59:59Z"),
  ])
  func timestampsReadAsTheSchemaWritesThem(_ milliseconds: Int64, _ text: String) {
    #expect(Timestamp(milliseconds: milliseconds).text == text)
  }
}
