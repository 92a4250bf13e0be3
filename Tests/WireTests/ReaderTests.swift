import ParleyVocabulary
import Testing

@testable import ParleyWire

@Suite struct ReaderTests {
  private static let author = PeerID(bytes: [UInt8](repeating: 7, count: 32))!
  private static let key = LogKey(author: author, log: Instance(9))
  private static let channel = ChannelID(Bytes32([UInt8](repeating: 3, count: 32))!)

  @Test(arguments: [0, 63, 64, 16_383, 16_384, 1 << 30 - 1, 1 << 30, Limit.counterMax] as [UInt64])
  func varintsComeBackInTheirOneForm(_ value: UInt64) throws {
    var out = ByteWriter()
    out.varint(value)
    #expect(out.bytes.count == ByteWriter.varintByteCount(value))
    var reader = ByteReader(out.bytes)
    #expect(try reader.varint("value") == value)
    try reader.finish()
  }

  @Test func aLongerFormThanNeededIsRefused() {
    for bytes: [UInt8] in [[0x40, 0x3F], [0x80, 0, 0x3F, 0xFF], [0xC0, 0, 0, 0, 0x3F, 0xFF, 0xFF, 0xFF]] {
      var reader = ByteReader(bytes)
      #expect(throws: WireError.self) { try reader.varint("value") }
    }
  }

  /// Whatever fails, the same bytes can be read again another way.
  @Test func aReadThatFailsLeavesTheCursor() throws {
    let bytes: [UInt8] = [0x05, 1, 2, 3]
    var reader = ByteReader(bytes)
    #expect(throws: WireError.truncated(field: "block", needed: 5, remaining: 3)) {
      try reader.block("block", byteCountMax: 10)
    }
    #expect(throws: WireError.tooLong(field: "block", byteCount: 5, byteCountMax: 4)) {
      try reader.block("block", byteCountMax: 4)
    }
    #expect(throws: WireError.tooMany(field: "things", count: 5, countMax: 4)) {
      try reader.count("things", countMax: 4, byteCountEach: 0)
    }
    #expect(throws: WireError.truncated(field: "word", needed: 8, remaining: 4)) { try reader.uint64("word") }
    #expect(throws: WireError.trailing(byteCount: 4)) { try reader.finish() }
    #expect(try reader.bytes(4, "all") == bytes)
    try reader.finish()
  }

  private static let messages: [SessionMessage] = [
    .heads(channel, .all, [Head(key: key, number: 70, floor: 3)], isLast: true, answerWanted: true),
    .heads(channel, BucketSet([0, 9, 255]), [], isLast: true, answerWanted: false),
    .summary(channel, [0: HeadsDigest(of: [key: 1]), 255: HeadsDigest(of: [key: 2])]),
    .want(channel, request: 5, [LogRange(key: key, from: 2, through: 900)]),
    .entries(channel, request: 5, [[1, 2, 3], [4]], isLast: false),
    .peerMessage(MessageID("m-1")!, json: Array("{}".utf8)), .peerStored(MessageID("m-1")!), .ping(3), .pong(4),
    .prove([Bytes32([UInt8](repeating: 1, count: 32))!]), .closing,
    .direct(channel, [.probe(nonce: 1), .acknowledge(log: Instance(2), number: 3)]),
  ]

  @Test(arguments: messages.indices)
  func sessionMessagesComeBack(_ index: Int) throws {
    let message = Self.messages[index]
    #expect(try SessionMessage.decode(message.encoded) == message)
  }

  /// Cut anywhere, a message is refused, or is another whole message: never this one, and never a trap.
  @Test(arguments: messages.indices)
  func aCutMessageIsNotTheWholeOne(_ index: Int) {
    let message = Self.messages[index]
    let bytes = message.encoded
    for count in bytes.indices {
      let cut = try? SessionMessage.decode(Array(bytes[..<count]))
      #expect(cut ?? nil != message)
    }
  }

  @Test func whatIsHeldAboveAHoleIsInTheDigest() {
    let heads = [Self.key: UInt64(4)]
    let plain = HeadsDigest(of: heads)
    func digest(_ beyond: [Range<UInt64>]) -> HeadsDigest {
      HeadsDigest(of: [HeadsDigest.Holding(key: Self.key, head: 4, beyond: RangeSet(beyond))])
    }
    #expect(digest([]) == plain)
    #expect(digest([6..<7]) != plain)
    #expect(digest([6..<7, 8..<9]) != digest([6..<7]))
    #expect(digest([6..<9]) != digest([6..<7, 8..<9]))
  }

  @Test func aSetOfBucketsHoldsWhatWasPutIn() {
    let buckets = BucketSet([0, 7, 8, 255])
    #expect((UInt8.min...UInt8.max).filter { buckets.contains($0) } == [0, 7, 8, 255])
    #expect(BucketSet(UInt8.min...UInt8.max) == .all)
  }

  /// The exact texts of the schema's examples.
  @Test func theSchemaIsWrittenAsItsExamplesShowIt() throws {
    let max = Sender(peer: Self.author, displayName: try DisplayName("Max"))
    let sender = #""sender":{"display_name":"Max","sender_id":"\#(Self.author.text)"}"#
    func text(_ content: any MessageKind, isNamed: Bool) -> String {
      let message = SchemaMessage(
        sender: max, messageID: isNamed ? MessageID("m")! : nil, timestamp: isNamed ? "2021-03-12T09:05:16Z" : nil,
        content: content)
      return String(decoding: message.encoded, as: UTF8.self)
    }
    let named = #""message_id":"m","timestamp":"2021-03-12T09:05:16Z""#
    #expect(
      text(TextKind(body: "Hello World"), isNamed: true)
        == "{\(sender),\(named),\"type\":\"text\",\"body\":\"Hello World\"}")
    #expect(text(StatusKind(isOnline: true), isNamed: false) == "{\(sender),\"body\":\"online\",\"type\":\"status\"}")
    #expect(
      text(RaiseHandKind(isRaised: true), isNamed: false) == "{\"type\":\"raise_hand\",\(sender),\"body\":\"true\"}")
  }
}
