import ParleyHashing
import ParleyVocabulary
import ParleyWire
import Testing

@testable import ParleySealing

@Suite struct MalformedVectorTests {
  @Test func everyOneIsRefusedForItsReason() throws {
    var file = VectorFile("malformed")
    for item in Malformed.all {
      let refusal = item.refusal
      #expect(
        refusal?.reason == item.reason && refusal?.field == item.field, "\(item.name): \(String(describing: refusal))")
      // A long end of one byte is written as that byte and how often it stands there.
      let tail = item.bytes.reversed().prefix { $0 == item.bytes.last }.count
      let isLong = tail > 64
      file.add(
        item.name,
        [
          JSONMember("layout", item.layout), JSONMember("bytes", hex: item.bytes.dropLast(isLong ? tail : 0)),
          JSONMember("tail", isLong ? .array([.integer(Int64(item.bytes.last!)), .integer(Int64(tail))]) : .null),
          JSONMember("reason", item.reason), JSONMember("field", item.field),
        ])
    }
    try file.check()
  }

  /// Datagrams that do not open: to everyone outside they are noise.
  @Test func alteredDatagramsDoNotOpen() throws {
    var file = VectorFile("malformed_datagrams")
    let plaintext = DirectMessage(counter: 1, parts: []).encoded
    let good = try DatagramSealer.seal(
      frames: [7, 0], direct: (Facts.ben.peerID, plaintext), identity: Facts.ana, channel: Facts.kitchen,
      instance: Facts.instance, nonce: Facts.nonce)
    #expect(DatagramSealer.open(good, channel: Facts.kitchen) != nil)
    let longest = good + [UInt8](repeating: 0, count: 1_233 - good.count)
    let cases: [(String, [UInt8], String)] = [
      ("shorter than header and tag", Array(good[..<59]), "header"), ("1,233 bytes", longest, "header"),
      ("another magic", Malformed.replacing(good, at: 1, with: 0x4D), "header"),
      ("version 2", Malformed.replacing(good, at: 2, with: 2), "header"),
      ("reserved byte", Malformed.replacing(good, at: 3, with: 1), "header"),
      ("another instance", Malformed.replacing(good, at: 4, with: 9), "tag"),
      ("another tag", Malformed.replacing(good, at: 12, with: ~good[12]), "tag"),
      ("another nonce", Malformed.replacing(good, at: 43, with: 0), "seal"),
      ("another body", Malformed.replacing(good, at: 44, with: ~good[44]), "seal"),
      ("another Poly1305 tag", Malformed.replacing(good, at: -1, with: ~good.last!), "seal"),
      ("cut by one byte", Array(good.dropLast()), "seal"),
    ]
    for (name, bytes, reason) in cases {
      #expect(DatagramSealer.open(bytes, channel: Facts.kitchen) == nil, "\(name)")
      file.add(
        name, [JSONMember("channel", "kitchen"), JSONMember("bytes", hex: bytes), JSONMember("reason", reason)])
    }
    try file.check()
  }

  /// Whatever byte of whatever encoding turns, the decoder refuses it or gives another value.
  @Test func everyTurnedByteIsRefusedOrSaysSomethingElse() {
    for (layout, golden) in Self.encodings {
      for index in golden.indices {
        for mask in [UInt8(0x01), 0x80, 0xFF] {
          let turned = Malformed.replacing(golden, at: index, with: golden[index] ^ mask)
          let isAnother = Self.value(layout, turned).map { $0 != Self.value(layout, golden) } ?? true
          #expect(isAnother, "\(layout), byte \(index) with \(mask)")
        }
      }
    }
  }

  /// What becomes of every cut and of every turned byte, hashed: two readers that differ in one verdict differ here.
  @Test func verdictsOnEveryChange() throws {
    var file = VectorFile("verdicts")
    let messages = [
      Facts.text, Facts.photo, Facts.file, Facts.handUp, Facts.online,
      Facts.message(RoleKind(target: Facts.ben.peerID, role: .muted, until: 1, heads: Facts.heads), id: "a-2"),
      Facts.message(GenerationKind(number: 1, hash: Hash32(Facts.media.value)), id: "a-3"),
    ].map { ("message", $0) }
    let manifests = try MediaVectorTests.manifests().map { ("manifest", $0.manifest.encoded) }
    let frames = [("frames", DatagramVectorTests.encoded(DatagramVectorTests.bodies[6].frames))]
    for (index, (layout, golden)) in (Self.encodings + manifests + frames + messages).enumerated() {
      var verdicts = ""
      for count in golden.indices { verdicts += Self.verdict(layout, Array(golden[..<count])) }
      for index in golden.indices {
        for mask in [UInt8(0x01), 0x80, 0xFF] {
          verdicts += Self.verdict(layout, Malformed.replacing(golden, at: index, with: golden[index] ^ mask))
        }
      }
      file.add(
        "\(layout) \(index + 1)",
        [
          JSONMember("layout", layout), JSONMember("bytes", hex: golden),
          JSONMember("verdicts", hex: BLAKE2b.hash256(Array(verdicts.utf8)).bytes),
        ])
    }
    try file.check()
  }

  private static func verdict(_ layout: String, _ bytes: [UInt8]) -> String {
    let refusal = Malformed("", layout, bytes, "", "").refusal
    return refusal.map { "\($0.reason) \($0.field)\n" } ?? "taken\n"
  }

  private static var encodings: [(String, [UInt8])] {
    [
      ("presence", Facts.presence(status: Facts.online).encoded), ("presence", Facts.presence(status: []).encoded),
      ("live", Facts.live(Facts.offline, counter: 1).encoded), ("entry", Facts.threeEntry.encoded),
      ("entry", Facts.emptiedEntry), ("grant", Facts.grant.encoded),
      ("direct", DirectMessage(counter: 9, parts: DatagramVectorTests.parts).encoded),
    ] + SessionVectorTests.messages.map { ("session", $0.message.encoded) }
      + MediaVectorTests.messages.map { ("media", $0.message.encoded) }
  }

  /// Nil when it is refused, or of a type to be skipped.
  private static func value(_ layout: String, _ bytes: [UInt8]) -> JSONValue? {
    switch layout {
    case "presence": (try? Presence(decoding: bytes[...]))?.value
    case "live": (try? LiveObject(decoding: bytes[...]))?.value
    case "entry": (try? Entry(decoding: bytes[...]))?.value
    case "grant": (try? Grant(decoding: bytes[...]))?.value
    case "direct": (try? DirectMessage(decoding: bytes))?.value
    case "session": (try? SessionMessage.decode(bytes))?.value
    default: (try? MediaMessage(decoding: bytes))?.value
    }
  }
}

extension WireError {
  var reason: String {
    switch self {
    case .truncated: "truncated"
    case .tooLong: "too_long"
    case .tooMany: "too_many"
    case .trailing: "trailing"
    case .outOfRange: "out_of_range"
    case .notUTF8: "not_utf8"
    case .malformed: "malformed"
    }
  }

  var field: String {
    switch self {
    case .truncated(let field, _, _), .tooLong(let field, _, _), .tooMany(let field, _, _), .outOfRange(let field, _),
      .notUTF8(let field), .malformed(let field, _):
      field
    case .trailing: ""
    }
  }
}
