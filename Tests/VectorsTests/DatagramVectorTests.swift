import ParleyHashing
import ParleyVocabulary
import ParleyWire
import Testing

@testable import ParleySealing

@Suite struct DatagramVectorTests {
  @Test func objects() throws {
    var file = VectorFile("objects")
    func add(_ name: String, _ layout: String, _ bytes: [UInt8], _ value: JSONValue) {
      file.add(name, [JSONMember("layout", layout), JSONMember("bytes", hex: bytes), JSONMember("value", value)])
    }
    let full = Facts.presence(status: Facts.online)
    let brief = Facts.presence(status: [], wantsAcknowledgement: true)
    for (name, presence) in [("presence, full", full), ("presence, brief, asking", brief)] {
      #expect(try Presence(decoding: presence.encoded[...]) == presence)
      add(name, "presence", presence.encoded, presence.value)
    }
    for (counter, json) in [(UInt64(63), Facts.online), (16_384, Facts.offline)] {
      let live = Facts.live(json, counter: counter)
      #expect(try LiveObject(decoding: live.encoded[...]) == live)
      add("live \(counter)", "live", live.encoded, live.value)
    }
    for (name, entry) in [
      ("entry, one message", Facts.plainEntry), ("entry, three messages", Facts.threeEntry),
      ("entry, hidden", Facts.handEntry), ("entry, an act", Facts.joinedEntry),
      ("entry, unknown kind", Facts.unknownEntry),
    ] {
      #expect(try Entry(decoding: entry.encoded[...]) == entry)
      add(name, "entry", entry.encoded, entry.value)
    }
    let emptied = try Entry(decoding: Facts.emptiedEntry[...])
    #expect(emptied.encoded == Facts.emptiedEntry && emptied.items[0].body == nil)
    add("entry, body gone", "entry", Facts.emptiedEntry, emptied.value)
    for (name, grant) in [("grant, all limits", Facts.grant), ("grant of an admin, no limits", Facts.adminGrant)] {
      #expect(try Grant(decoding: grant.encoded[...]) == grant)
      add(name, "grant", grant.encoded, grant.value)
    }
    let direct = DirectMessage(counter: 64, parts: Self.parts)
    #expect(try DirectMessage(decoding: direct.encoded) == direct)
    add("direct message", "direct", direct.encoded, direct.value)
    let silent = DirectMessage(counter: 0, parts: [])
    add("direct message, empty", "direct", silent.encoded, silent.value)
    // A part of a type that no version has yet is skipped.
    add("direct message, unknown part", "direct", [5, 0x40, 0x7B, 2, 1, 2], DirectMessage(counter: 5, parts: []).value)
    try file.check()
  }

  static let parts: [DirectMessage.Part] = [
    .probe(nonce: 0x3132_3334_3536_3738), .echo(nonce: 1), .acknowledge(log: Facts.instance, number: 16_383),
    .holding([Facts.media, Facts.otherMedia]), .holding([]),
  ]

  static let bodies: [(name: String, frames: [DatagramFrame])] = [
    ("presence", [.presence(Facts.sign(Presence.context, Facts.presence(status: Facts.online).encoded))]),
    ("live", [.live(Facts.sign(LiveObject.context, Facts.live(Facts.offline, counter: 2).encoded))]),
    ("entry", [.entry(Facts.plainEntry.encoded)]),
    ("suspect", [.suspect(Facts.ben.peerID, incarnation: 1 << 30)]),
    ("who has", [.whoHas([Facts.media, Facts.otherMedia])]), ("who has, nothing", [.whoHas([])]),
    ("live fragment", [.liveFragment(EntryFragment(group: 1 << 63, index: 39, count: 40, bytes: [0]))]),
    (
      "several",
      [
        .presence(Facts.sign(Presence.context, Facts.presence(status: []).encoded)),
        .suspect(Facts.ben.peerID, incarnation: 0), .whoHas([Facts.media]),
      ]
    ),
    ("nothing", []),
  ]

  static func encoded(_ frames: [DatagramFrame]) -> [UInt8] {
    var out = ByteWriter()
    for frame in frames { frame.write(to: &out) }
    return out.bytes
  }

  @Test func frames() throws {
    var file = VectorFile("frames")
    func add(_ name: String, _ bytes: [UInt8], _ frames: [DatagramFrame]) throws {
      #expect(try DatagramFrame.decodeAll(bytes) == frames)
      file.add(
        name, [JSONMember("bytes", hex: bytes), JSONMember("value", .array(frames.map(\.value)))])
    }
    for (name, frames) in Self.bodies { try add(name, Self.encoded(frames), frames) }
    let known = DatagramFrame.suspect(Facts.ben.peerID, incarnation: 5)
    try add("unknown type before a known one", [0x40, 0x40, 3, 1, 2, 3] + Self.encoded([known]), [known])
    try file.check()
  }

  /// Parts of 1,159 bytes, as every sender cuts them.
  @Test func fragments() throws {
    var file = VectorFile("fragments")
    let whole = Facts.longEntry.encoded
    let group = BLAKE2b.hash256(whole).bytes.prefix(8).reduce(0) { $0 << 8 | UInt64($1) }
    let count = (whole.count + 1_158) / 1_159
    #expect(count == 3)
    let parts = (0..<count).map { index in
      EntryFragment(
        group: group, index: index, count: count,
        bytes: Array(whole[index * 1_159..<min((index + 1) * 1_159, whole.count)]))
    }
    for part in parts { #expect(Self.encoded([.fragment(part)]).count <= DatagramSealer.framesByteCountMax) }
    file.add(
      "entry of \(whole.count) bytes",
      [
        JSONMember("entry", hex: whole),
        JSONMember("fragments", .array(parts.map { .string($0.encoded.hex) })),
        JSONMember("value", .array(parts.map(\.value))),
      ])
    try file.check()
  }

  @Test func datagrams() throws {
    var file = VectorFile("datagrams")
    let plaintext = DirectMessage(counter: 65, parts: Self.parts).encoded
    let shortest = DirectMessage(counter: 1, parts: [.echo(nonce: 0x2122_2324_2526_2728)]).encoded
    var cases = Self.bodies.map { (name: $0.name, frames: $0.frames, direct: [UInt8]?.none) }
    cases.append(("direct alone, long", [], plaintext))
    cases.append(("direct alone, short", [], shortest))
    cases.append(("presence and direct", Self.bodies[0].frames, plaintext))
    for (index, item) in cases.enumerated() {
      let nonce = Facts.nonce.map { $0 &+ UInt8(index) }
      let sealed = try DatagramSealer.seal(
        frames: Self.encoded(item.frames), direct: item.direct.map { (Facts.ben.peerID, $0) }, identity: Facts.ana,
        channel: Facts.kitchen, instance: Facts.instance, nonce: nonce)
      let body = try #require(DatagramSealer.open(sealed, channel: Facts.kitchen))
      file.add(
        item.name,
        [
          JSONMember("channel", "kitchen"), JSONMember("sender_seed", hex: [UInt8](repeating: 1, count: 32)),
          JSONMember("receiver_seed", hex: [UInt8](repeating: 2, count: 32)),
          JSONMember("instance", bits: Facts.instance.value), JSONMember("nonce", hex: nonce),
          JSONMember("datagram", hex: sealed), JSONMember("body", hex: body),
          JSONMember("direct", item.direct.map { .string($0.hex) } ?? .null),
          JSONMember("frames", .array(try DatagramFrame.decodeAll(body).map(\.value))),
        ])
    }
    try file.check()
  }
}
