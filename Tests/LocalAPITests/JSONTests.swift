import ParleyLocalAPI
import Testing

@Suite struct JSONTests {
  @Test func valuesSurviveTheirText() throws {
    let value: JSON = [
      "a": [1, -2.5, true, nil, "x\u{1F389}\n\"\\"], "big": .integer(.max), "empty": .object([]), "none": .array([]),
    ]
    #expect(try JSON(parsing: value.text) == value)
    #expect(value["a"]?.array?[0].integer == 1)
    #expect(try JSON(parsing: " [ 1 , 2e0 ] ") == [1, 2.0])
  }

  @Test func everyEscapeIsRead() throws {
    #expect(
      try JSON(parsing: #""\"\\\/\b\f\n\r\t\u00e9\ud83c\udf89""#) == .string("\"\\/\u{8}\u{C}\n\r\t\u{e9}\u{1F389}"))
  }

  @Test func nothingThatIsPrintedMovesACursorOrHidesText() {
    let text = JSON.string("\u{1B}[2J\u{7F}\u{9B}\u{85}\u{202E}\u{200B}\u{2028}\u{E0041}é").text
    #expect(text == #""\u001b[2J\u007f\u009b\u0085\u202e\u200b\u2028\udb40\udc41é""#)
  }

  @Test(arguments: [
    "", " ", "{", "[", "[1", "[1,]", "{\"a\":1,}", "{a:1}", "{\"a\"}", "01", "-", "1.", ".5", "1e", "+1", "NaN",
    "Infinity", "1e999", "tru", "nul", "\"", "\"\\x\"", "\"\\u12\"", "\"\\u12g4\"", "\"a\nb\"", "\"\u{1}\"", "1 2",
    "[]]",
    "\"\\ud800\"", "\"\\udc00\"", "\"\\ud800\\u0041\"", "//", "\u{FEFF}1", "'a'",
  ])
  func malformedTextIsRefused(_ text: String) {
    #expect(throws: JSONError.self) { try JSON(parsing: text) }
  }

  @Test func membersNamedTwiceAreRefused() {
    #expect(throws: JSONError(reason: .duplicateName("a"), offset: 10)) { try JSON(parsing: "{\"a\":1,\"a\":2}") }
    #expect(throws: JSONError.self) { try JSON(parsing: #"{"a":1,"\u0061":2}"#) }
  }

  @Test func nestingStopsAtSixteen() throws {
    func nested(_ depth: Int) -> String {
      String(repeating: "[", count: depth) + String(repeating: "]", count: depth)
    }
    _ = try JSON(parsing: nested(16))
    #expect(throws: JSONError(reason: .tooDeep(depthMax: 16), offset: 16)) { try JSON(parsing: nested(17)) }
    #expect(throws: JSONError.self) { try JSON(parsing: String(repeating: "[", count: 1_000_000)) }
    #expect(throws: JSONError.self) { try JSON(parsing: String(repeating: "{\"a\":", count: 100_000)) }
  }

  @Test(arguments: [
    [0x22, 0xFF, 0x22], [0x22, 0xC0, 0x80, 0x22], [0x22, 0xED, 0xA0, 0x80, 0x22], [0x22, 0xE2, 0x82],
  ])
  func textThatIsNotUTF8IsRefused(_ bytes: [UInt8]) {
    #expect(throws: JSONError(reason: .invalidUTF8, offset: 0)) { try JSON(parsing: bytes) }
  }

  @Test func numbersBeyondInt64BecomeFloatingPoint() throws {
    #expect(try JSON(parsing: "9223372036854775807") == .integer(.max))
    #expect(try JSON(parsing: "9223372036854775808") == .number(9_223_372_036_854_775_808))
    #expect(JSON.count(UInt64.max).number == 18_446_744_073_709_551_616)
  }

  @Test func mutatedTextNeverTraps() {
    let seed = Array(#"{"a":[1,-2.5e3,"\u00e9\ud83c\udf89",{"b":null,"c":true}],"d":"x"}"#.utf8)
    var random = SystemRandomNumberGenerator()
    var refusedCount = 0
    for _ in 0..<20_000 {
      var bytes = seed
      for _ in 0..<Int.random(in: 1...4, using: &random) {
        bytes[Int.random(in: 0..<bytes.count, using: &random)] = UInt8.random(in: 0...255, using: &random)
      }
      do { #expect(try JSON(parsing: JSON(parsing: bytes).text).text.isEmpty == false) } catch { refusedCount += 1 }
    }
    #expect(refusedCount > 10_000)
  }
}
