import ParleyVocabulary
import Testing

@testable import ParleyWire

/// What is read in one pass is read as the parser reads it.
@Suite struct PlainTextTests {
  static let author = PeerID(Bytes32(words: (1, 2, 3, 4)))

  static func written(name: String, body: String, id: String = "abc") throws -> [UInt8] {
    SchemaMessage(
      sender: Sender(peer: author, displayName: try DisplayName(name)), messageID: MessageID(id)!,
      timestamp: "2021-03-12T09:05:16Z", content: TextKind(body: body)
    ).encoded
  }

  /// The same JSON, which a space keeps from being read in one pass.
  static func parsed(_ json: [UInt8]) throws -> SchemaMessage {
    let spaced = Array("{ ".utf8) + json.dropFirst()
    #expect(PlainText(spaced) == nil)
    return try SchemaMessage(decoding: spaced, author: author)
  }

  static func expectAlike(_ json: [UInt8], sourceLocation: SourceLocation = #_sourceLocation) throws {
    let quick = try SchemaMessage(decoding: json, author: author)
    let slow = try parsed(json)
    #expect(quick.sender == slow.sender, sourceLocation: sourceLocation)
    #expect(quick.messageID == slow.messageID, sourceLocation: sourceLocation)
    #expect(quick.timestamp == slow.timestamp, sourceLocation: sourceLocation)
    #expect(quick.content as? TextKind == slow.content as? TextKind, sourceLocation: sourceLocation)
    #expect(quick.encoded == slow.encoded, sourceLocation: sourceLocation)
  }

  @Test(arguments: [
    "Hello World", "", "开会 🎉", "naïve", "é", "e\u{301}", "a/b", "\u{A0}", "\u{E000}", "\u{FFFE}", "\u{200D}",
  ]) func plainTextsAreReadInOnePass(_ body: String) throws {
    let json = try Self.written(name: "Max Müller", body: body)
    #expect(PlainText(json) != nil)
    try Self.expectAlike(json)
  }

  @Test(arguments: ["say \"so\"", "a\\b", "line\nline", "\u{7F}", "\u{80}", "\u{9F}", "\u{1}", "\t"])
  func whatIsEscapedIsLeftToTheParser(_ body: String) throws {
    let json = try Self.written(name: "Max", body: body)
    #expect(PlainText(json) == nil)
    try Self.expectAlike(json)
  }

  @Test func everyCharacterIsReadAlike() throws {
    for value in UInt32(1)...0x2FFF {
      guard let scalar = Unicode.Scalar(value) else { continue }
      try Self.expectAlike(try Self.written(name: "Max", body: "a" + String(scalar) + "b"))
    }
  }

  /// A name that is not in its normal form is shown, and written, in it.
  @Test func namesAreNormalized() throws {
    let json = String(decoding: try Self.written(name: "Max", body: "hi"), as: UTF8.self)
    let odd = Array(json.replacing("Max", with: "e\u{301}").utf8)
    try Self.expectAlike(odd)
    #expect(try SchemaMessage(decoding: odd, author: Self.author).encoded != odd)
  }

  @Test func everyBrokenByteIsTreatedAlike() throws {
    let json = try Self.written(name: "Max", body: "hé 🎉")
    for index in json.indices {
      for flip in [UInt8(0x01), 0x20, 0x80, 0xFF] {
        var broken = json
        broken[index] ^= flip
        let quick = Result { try SchemaMessage(decoding: broken, author: Self.author).encoded }
        let spaced = [broken[0]] + [UInt8(ascii: " ")] + broken.dropFirst()
        let slow = Result { try SchemaMessage(decoding: spaced, author: Self.author).encoded }
        #expect((try? quick.get()) == (try? slow.get()), "byte \(index) with \(flip)")
      }
    }
  }

  @Test func anotherAuthorIsRefused() throws {
    let json = try Self.written(name: "Max", body: "hi")
    #expect(throws: WireError.malformed(field: "sender_id", reason: "not the author that signed")) {
      try SchemaMessage(decoding: json, author: PeerID(Bytes32(words: (1, 2, 3, 5))))
    }
  }
}
