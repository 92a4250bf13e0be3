import Testing

import ParleyVocabulary

@Suite struct NameTests {
  @Test func namesAreNormalizedAndBounded() throws {
    #expect(try ChannelName("e\u{301}cole").text == "\u{e9}cole")
    #expect(try DisplayName(String(repeating: "я", count: 32)).text.utf8.count == 64)
    #expect(throws: NameError.tooLong(byteCount: 66, byteCountMax: 64)) {
      try DisplayName(String(repeating: "я", count: 33))
    }
    #expect(throws: NameError.empty) { try ChannelName("") }
    #expect(throws: NameError.empty) { try ChannelName(" \u{200B}") }
    #expect(throws: NameError.controlCharacter(codePoint: 0x1B)) { try ChannelName("a\u{1B}[2J") }
    #expect(throws: NameError.controlCharacter(codePoint: 0x9B)) { try ChannelName("a\u{9B}2J") }
  }

  @Test(arguments: [
    ("a\u{1B}[2Jb", "a\\u{1b}[2Jb"), ("x\u{202E}gpj.exe", "x\\u{202e}gpj.exe"), ("a\nb", "a\\u{a}b"),
    ("\u{9B}31m", "\\u{9b}31m"), ("👩‍🚀", "👩‍🚀"), ("开会 🎉", "开会 🎉"), ("a\u{200D}b", "a\\u{200d}b"), ("مرحبا", "مرحبا"),
  ])
  func whatIsShownCannotMoveACursor(_ raw: String, _ shown: String) { #expect(raw.escapedLine == shown) }

  @Test(arguments: [
    ("../x", "x"), ("/etc/x", "x"), ("a\\..\\x", "x"), (".", "file"), ("..", "file"), ("", "file"), ("a\0b", "a_b"),
    ("a\nb", "a_b"), ("\u{1B}[2J", "_[2J"), ("x\u{202E}gpj.exe", "x_gpj.exe"), ("CON", "_CON"), ("con.txt", "_con.txt"),
    ("COM1", "_COM1"), ("COMB", "COMB"), ("x.", "x"), ("x. .", "x"), (".bashrc", "_bashrc"), ("🎉.png", "🎉.png"),
    ("e\u{301}", "\u{e9}"), ("\u{e9}", "\u{e9}"), ("a:b", "a_b"), ("x/", "x"),
    ("../\u{301}x", "\u{301}x"), ("a\\\u{200D}b", "\u{200D}b"),
  ])
  func receivedFileNamesAreSafeAndRecognisable(_ raw: String, _ safe: String) {
    #expect(SafeFileName(received: raw).text.unicodeScalars.elementsEqual(safe.unicodeScalars))
  }

  @Test func longFileNamesKeepTheirExtension() {
    let name = SafeFileName(received: String(repeating: "я", count: 255) + ".jpeg").text
    #expect(name.utf8.count <= 255 && name.utf8.count > 250 && name.hasSuffix("я.jpeg"))
    #expect(SafeFileName(received: name).numbered(12).utf8.count <= 255)
    #expect(SafeFileName(received: "a.txt").numbered(2) == "a (2).txt")
  }
}
