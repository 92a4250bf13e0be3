import Testing

@testable import ParleyVocabulary

@Suite struct RFC3339Tests {
  /// Seconds as `date -u -d TEXT +%s` has them.
  @Test(arguments: [
    ("1970-01-01T00:00:00Z", 0), ("2022-01-01T00:00:00+00:00", 1_640_995_200), ("2000-02-29T23:59:59Z", 951_868_799),
    ("1985-04-12T23:20:50.52Z", 482_196_050), ("1996-12-19T16:39:57-08:00", 851_042_397),
    ("1937-01-01T12:00:27.87+00:20", -1_041_337_173), ("0000-01-01T00:00:00Z", -62_167_219_200),
    ("9999-12-31T23:59:59Z", 253_402_300_799), ("0000-02-29T00:00:00Z", -62_162_121_600),
  ])
  func datesAreRead(_ text: String, _ seconds: Int64) throws {
    let moment = try #require(Timestamp(rfc3339: text))
    #expect(moment.milliseconds.quotientAndRemainder(dividingBy: 1_000).remainder.magnitude < 1_000)
    #expect((Double(moment.milliseconds) / 1_000).rounded(.down) == Double(seconds))
  }

  @Test func fractionsAreCutToMilliseconds() {
    #expect(Timestamp(rfc3339: "1970-01-01T00:00:00.5Z")?.milliseconds == 500)
    #expect(Timestamp(rfc3339: "1970-01-01T00:00:00.05Z")?.milliseconds == 50)
    #expect(Timestamp(rfc3339: "1970-01-01T00:00:00.123456789Z")?.milliseconds == 123)
  }

  @Test(arguments: [
    "", "2022-01-01", "2022-01-01 00:00:00Z", "2022-01-01T00:00:00", "2022-01-01t00:00:00Z", "2022-01-01T00:00:00z",
    "2022-13-01T00:00:00Z", "2022-00-01T00:00:00Z", "2022-02-29T00:00:00Z", "1900-02-29T00:00:00Z",
    "2022-04-31T00:00:00Z", "2022-01-00T00:00:00Z", "2022-01-01T24:00:00Z", "2022-01-01T00:60:00Z",
    "2016-12-31T23:59:60Z", "2022-01-01T00:00:00.Z", "2022-01-01T00:00:00+0000", "2022-01-01T00:00:00+24:00",
    "2022-01-01T00:00:00+00:60", "2022-01-01T00:00:00Z ", " 2022-01-01T00:00:00Z", "+022-01-01T00:00:00Z",
    "2022-1-01T00:00:00ZZ", "２０22-01-01T00:00Z", "2022-01-01T00:00:00Z\n",
    "2022-01-01T00:00:00.000000000000000000000000Z",
  ])
  func everythingElseIsRefused(_ text: String) { #expect(Timestamp(rfc3339: text) == nil) }

  @Test func whatIsWrittenIsRead() {
    for day in stride(from: Int64(-719_528), through: 2_932_896, by: 97) {
      let moment = Timestamp(milliseconds: (day * 86_400 + day & 0xFFFF) * 1_000)
      #expect(Timestamp(rfc3339: moment.text) == moment)
    }
  }
}

@Suite struct Base64URLTests {
  /// RFC 4648 section 10, without padding, and the two characters that differ from base64.
  @Test func knownTexts() {
    let texts = ["": "", "f": "Zg", "fo": "Zm8", "foo": "Zm9v", "foob": "Zm9vYg", "fooba": "Zm9vYmE"]
    for (plain, encoded) in texts {
      #expect(Base64URL.encode(plain.utf8) == encoded)
      #expect(Base64URL.decode(encoded.utf8) == Array(plain.utf8))
    }
    #expect(Base64URL.encode([0xFB, 0xFF]) == "-_8")
  }

  @Test func oneValueHasOneText() {
    for text in ["A", "Zh", "Zg==", "Zm8=", "Zm9v ", "+/8", "Zm9vYmF"] { #expect(Base64URL.decode(text.utf8) == nil) }
  }
}
