import ParleyVocabulary
import ParleyWire
import Testing

/// What a combined message names.
@Suite struct BundleVectorTests {
  static func combine(levels: Int) -> CombineKind {
    CombineKind(
      title: "Lunch", summary: "", compatibleText: "[Lunch]", media: Facts.media, byteCount: 0, levels: levels)
  }

  private static func line(_ content: any MessageKind, _ id: String = "m-1") throws -> SchemaMessage {
    try SchemaMessage(decoding: Facts.message(content, id: id), author: nil)
  }

  private static let media = MediaMembers(id: Facts.media, fileName: "f", byteCount: 1, mimeType: nil)

  /// All kinds that are combined.
  private static func bundles() throws -> [(String, MessageBundle)] {
    let kinds: [any MessageKind] = [
      TextKind(body: "Lunch?\n"), PhotoKind(file: media), VoiceKind(file: media, duration: 7),
      VideoKind(file: media, duration: 0), FileKind(file: media), CustomKind(event: "seat"),
    ]
    let lines = try kinds.enumerated().map { try line($1, "m-\($0)") }
    let person = try SchemaMessage(
      decoding: Facts.message(TextKind(body: "ja"), id: "m-1", from: Facts.benSender), author: nil)
    return [
      ("one text", try MessageBundle([try line(TextKind(body: ""))])), ("every kind", try MessageBundle(lines)),
      ("of another person, with a combined one", try MessageBundle([person, try line(combine(levels: 1))])),
      ("ten levels", try MessageBundle([try line(combine(levels: 2)), try line(combine(levels: 9))])),
    ]
  }

  @Test func bundles() throws {
    var file = VectorFile("bundles")
    for (name, bundle) in try Self.bundles() {
      let again = try MessageBundle(decoding: bundle.encoded, levels: bundle.levels)
      #expect(again.encoded == bundle.encoded && again.levels == bundle.levels, "\(name)")
      file.add(
        name,
        [
          JSONMember("levels", bundle.levels), JSONMember("bundle", String(decoding: bundle.encoded, as: UTF8.self)),
          JSONMember("value", .array(bundle.messages.map { SchemaVectorTests.meaning($0)[0].value })),
        ])
    }
    try file.check()
  }

  /// A writer and a reader take as many, and refuse one more.
  @Test func threeHundredMessagesAndNotOneMore() throws {
    let text = try Self.line(TextKind(body: "x"))
    let most = try MessageBundle(Array(repeating: text, count: 300))
    #expect(try MessageBundle(decoding: most.encoded, levels: 1).messages.count == 300)
    let refusal = WireError.tooMany(field: "messages", count: 301, countMax: 300)
    #expect(throws: refusal) { try MessageBundle(Array(repeating: text, count: 301)) }
    #expect(throws: refusal) { try MessageBundle(decoding: most.encoded + text.encoded + [0x0A], levels: 1) }
    #expect(throws: WireError.malformed(field: "messages", reason: "none")) { try MessageBundle([]) }
  }

  @Test func tenLevelsAndNotOneMore() throws {
    let nine = try MessageBundle([try Self.line(Self.combine(levels: 9))])
    #expect(nine.levels == 10)
    #expect(try MessageBundle(decoding: nine.encoded, levels: 10).levels == 10)
    let ten = try Self.line(Self.combine(levels: 10))
    #expect(throws: WireError.tooMany(field: "levels", count: 11, countMax: 10)) { try MessageBundle([ten]) }
    #expect(throws: WireError.tooMany(field: "levels", count: 11, countMax: 10)) {
      try MessageBundle(decoding: ten.encoded + [0x0A], levels: 10)
    }
    // Announced as less than it is.
    #expect(throws: WireError.tooMany(field: "levels", count: 10, countMax: 9)) {
      try MessageBundle(decoding: nine.encoded, levels: 9)
    }
  }

  @Test func otherKindsAreNotCombined() throws {
    let refusal = WireError.malformed(field: "type", reason: "of a kind that is not combined")
    for content in [LocationKind(latitude: 0, longitude: 0), AnnouncementKind(body: "x")] as [any MessageKind] {
      let message = try Self.line(content)
      #expect(throws: refusal) { try MessageBundle([message]) }
      #expect(throws: refusal) { try MessageBundle(decoding: message.encoded + [0x0A], levels: 1) }
    }
    let hand = try SchemaMessage(decoding: Facts.handUp, author: nil)
    #expect(throws: WireError.malformed(field: "message_id", reason: "missing")) { try MessageBundle([hand]) }
  }
}

extension Malformed {
  static var bundles: [Malformed] {
    let newline: [UInt8] = [0x0A]
    let text = Facts.text + newline
    let place = Facts.message(LocationKind(latitude: 0, longitude: 0), id: "m-1") + newline
    func combine(_ levels: Int) -> [UInt8] {
      Facts.message(BundleVectorTests.combine(levels: levels), id: "m-2") + newline
    }
    let cases: [(String, [UInt8], String, String)] = [
      ("of nothing", [], "malformed", "messages"), ("of an empty line", newline, "malformed", "json"),
      ("with an empty line", text + newline + text, "malformed", "json"),
      ("whose last line has no end", text + Facts.text, "malformed", "bundle"),
      ("of 301 lines", Array(repeating: 0x0A, count: 301), "too_many", "messages"),
      ("of 9,000,301 bytes", Array(repeating: 0x0A, count: 9_000_301), "too_long", "bundle"),
      ("with a place", text + place, "malformed", "type"),
      ("with a hand", text + Facts.handUp + newline, "malformed", "message_id"),
      ("with as many levels as announced", combine(5), "too_many", "levels"),
      ("with eleven levels", combine(10), "too_many", "levels"),
      ("with a message of 30,001 bytes", text + Array(repeating: 0x20, count: 30_001) + newline, "too_long", "message"),
    ]
    return cases.map { Malformed("bundle " + $0, "bundle", $1, $2, $3) }
  }
}
