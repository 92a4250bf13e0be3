import ParleyVocabulary

/// How far somebody has a log: the highest number that is there. Numbers up to `floor` are there no more: too old.
package struct Head: Hashable, Sendable {
  package let key: LogKey
  package let number: UInt64
  package let floor: UInt64
  package init(key: LogKey, number: UInt64, floor: UInt64 = 0) {
    self.key = key
    self.number = number
    self.floor = floor
  }
}

/// Some of the 256 buckets that the logs of a channel are in (`HeadsDigest.bucket`).
package struct BucketSet: Hashable, Sendable {
  package static let byteCount = 32
  package static let all = BucketSet(bytes: [UInt8](repeating: 0xFF, count: byteCount))
  package private(set) var bytes: [UInt8]

  package init(_ buckets: some Sequence<UInt8> = EmptyCollection()) {
    bytes = [UInt8](repeating: 0, count: Self.byteCount)
    for bucket in buckets { insert(bucket) }
  }

  /// Bucket 0 is the lowest bit of the first byte.
  package init(bytes: [UInt8]) {
    precondition(bytes.count == Self.byteCount, "a bit for each of 256 buckets")
    self.bytes = bytes
  }

  package mutating func insert(_ bucket: UInt8) { bytes[Int(bucket >> 3)] |= 1 << (bucket & 7) }
  package func contains(_ bucket: UInt8) -> Bool { bytes[Int(bucket >> 3)] & (1 << (bucket & 7)) != 0 }
}

/// A run of numbers of one log, both ends included.
package struct LogRange: Hashable, Sendable {
  package let key: LogKey
  package let from: UInt64
  package let through: UInt64
  package init(key: LogKey, from: UInt64, through: UInt64) {
    self.key = key
    self.from = from
    self.through = through
  }
}

/// Why a member does not talk to somebody in an owned channel.
package enum ChannelRefusal: UInt8, Equatable, Sendable, CaseIterable {
  case removed = 1
  case banned = 2
  /// No invitation of theirs counts.
  case notAdmitted = 3
}

/// What travels in a chat session, one message a sealed payload. Unknown types are skipped.
package enum SessionMessage: Equatable, Sendable {
  /// All heads of a channel in these buckets, in as many parts as they take; `isLast` ends them. `answerWanted`: send
  /// yours of the same.
  case heads(ChannelID, BucketSet, [Head], isLast: Bool, answerWanted: Bool)
  /// Send me these, as far as you have them.
  case want(ChannelID, request: UInt64, [LogRange])
  /// Encoded entries; `isLast` when the request has been answered as far as it will be. Request 0: unasked.
  case entries(ChannelID, request: UInt64, [[UInt8]], isLast: Bool)
  case peerMessage(MessageID, json: [UInt8])
  /// Stored, on disk.
  case peerStored(MessageID)
  case ping(UInt64)
  case pong(UInt64)
  /// Proofs for channels joined since the handshake (see `SessionProof`).
  case prove([Bytes32])
  /// A signed `Presence` or `LiveObject` for whom multicast does not reach.
  case presence(ChannelID, Signed)
  case live(ChannelID, Signed)
  /// The end is meant: no suspicion.
  case closing
  /// What would be a direct datagram, for whom datagrams do not reach.
  case direct(ChannelID, [DirectMessage.Part])
  /// The digest of each bucket that holds something: answer with *heads* of those in which you differ.
  case summary(ChannelID, [UInt8: HeadsDigest])
  /// A generation of an owned channel: its statement and its secret. Only to members in good standing.
  case generation(ChannelID, Signed, secret: Bytes32)
  /// Nothing more of this channel is said to you in this session.
  case refused(ChannelID, ChannelRefusal)
  /// A peer message for whoever is there now: it does not wait for anybody.
  case livePeerMessage(MessageID, json: [UInt8])

  package static let headsCountMax = 500
  package static let rangesCountMax = 256

  package var encoded: [UInt8] {
    var out = ByteWriter(reserving: 256)
    switch self {
    case .heads(let channel, let buckets, let heads, let isLast, let answerWanted):
      out.uint8(1)
      out.bytes32(channel.value)
      out.uint8((isLast ? 1 : 0) | (answerWanted ? 2 : 0) | (buckets == .all ? 0 : 4))
      if buckets != .all { out.raw(buckets.bytes) }
      out.varint(UInt64(heads.count))
      for head in heads {
        Self.write(head.key, to: &out)
        out.varint(head.number)
        out.varint(head.floor)
      }
    case .want(let channel, let request, let ranges):
      out.uint8(2)
      out.bytes32(channel.value)
      out.varint(request)
      out.varint(UInt64(ranges.count))
      for range in ranges {
        Self.write(range.key, to: &out)
        out.varint(range.from)
        out.varint(range.through)
      }
    case .entries(let channel, let request, let entries, let isLast):
      out.uint8(3)
      out.bytes32(channel.value)
      out.varint(request)
      out.uint8(isLast ? 1 : 0)
      for entry in entries { out.block(entry) }
    case .peerMessage(let id, let json):
      out.uint8(4)
      out.text(id.text)
      out.block(json)
    case .peerStored(let id):
      out.uint8(5)
      out.text(id.text)
    case .ping(let nonce):
      out.uint8(6)
      out.uint64(nonce)
    case .pong(let nonce):
      out.uint8(7)
      out.uint64(nonce)
    case .prove(let proofs):
      out.uint8(8)
      for proof in proofs { out.bytes32(proof) }
    case .presence(let channel, let signed):
      out.uint8(9)
      out.bytes32(channel.value)
      out.raw(signed.encoded)
    case .live(let channel, let signed):
      out.uint8(10)
      out.bytes32(channel.value)
      out.raw(signed.encoded)
    case .closing: out.uint8(11)
    case .direct(let channel, let parts):
      out.uint8(12)
      out.bytes32(channel.value)
      out.raw(DirectMessage(counter: 0, parts: parts).encoded)
    case .summary(let channel, let digests):
      out.uint8(13)
      out.bytes32(channel.value)
      for (bucket, digest) in digests.sorted(by: { $0.key < $1.key }) {
        out.uint8(bucket)
        out.raw(digest.bytes)
      }
    case .generation, .refused, .livePeerMessage: writeLater(to: &out)
    }
    return out.bytes
  }

  /// Of types that came later: owned channels, and what is for whoever is there.
  private func writeLater(to out: inout ByteWriter) {
    switch self {
    case .generation(let channel, let signed, let secret):
      out.uint8(14)
      out.bytes32(channel.value)
      out.bytes32(secret)
      out.raw(signed.encoded)
    case .refused(let channel, let reason):
      out.uint8(15)
      out.bytes32(channel.value)
      out.uint8(reason.rawValue)
    case .livePeerMessage(let id, let json):
      out.uint8(16)
      out.text(id.text)
      out.block(json)
    default: preconditionFailure("only these are left")
    }
  }

  /// Bytes of an `entries` message beside the entries themselves, and beside each.
  package static let entriesOverheadByteCount = 1 + 32 + 8 + 1
  package static let entryOverheadByteCount = 4

  /// Nil for a type this version does not know.
  package static func decode(_ bytes: [UInt8]) throws(WireError) -> SessionMessage? {
    var reader = ByteReader(bytes)
    let message: SessionMessage
    switch try reader.uint8("message type") {
    case 1: message = try decodeHeads(&reader)
    case 2: message = try decodeWant(&reader)
    case 3: message = try decodeEntries(&reader)
    case 4: message = .peerMessage(try messageID(&reader), json: try json(&reader))
    case 5: message = .peerStored(try messageID(&reader))
    case 6: message = .ping(try reader.uint64("nonce"))
    case 7: message = .pong(try reader.uint64("nonce"))
    case 8:
      var proofs: [Bytes32] = []
      while !reader.isAtEnd { proofs.append(try reader.bytes32("proof")) }
      guard proofs.count <= Limit.channelsPerNodeMax else {
        throw .tooMany(field: "proofs", count: UInt64(proofs.count), countMax: Limit.channelsPerNodeMax)
      }
      message = .prove(proofs)
    case 9, 10:
      let channel = ChannelID(try reader.bytes32("channel"))
      let signed = try Signed(decoding: reader.rest)
      return bytes[0] == 9 ? .presence(channel, signed) : .live(channel, signed)
    case 11: message = .closing
    case 12:
      let channel = ChannelID(try reader.bytes32("channel"))
      let direct = try DirectMessage(decoding: Array(reader.rest))
      // A session repeats nothing, so there is nothing to count.
      guard direct.counter == 0 else { throw .outOfRange(field: "counter", value: direct.counter) }
      return .direct(channel, direct.parts)
    case 13: message = try decodeSummary(&reader)
    case 14:
      let channel = ChannelID(try reader.bytes32("channel"))
      let secret = try reader.bytes32("secret")
      let signed = try Signed(decoding: reader.rest)
      _ = try GenerationStatement(decoding: signed.object[...])
      return .generation(channel, signed, secret: secret)
    case 15:
      let channel = ChannelID(try reader.bytes32("channel"))
      let value = try reader.uint8("reason")
      guard let reason = ChannelRefusal(rawValue: value) else {
        throw .outOfRange(field: "reason", value: UInt64(value))
      }
      message = .refused(channel, reason)
    case 16: message = .livePeerMessage(try messageID(&reader), json: try json(&reader))
    default: return nil
    }
    try reader.finish()
    return message
  }

  private static func write(_ key: LogKey, to out: inout ByteWriter) {
    out.bytes32(key.author.value)
    out.uint64(key.log.value)
  }

  private static func logKey(_ reader: inout ByteReader) throws(WireError) -> LogKey {
    LogKey(author: PeerID(try reader.bytes32("author")), log: Instance(try reader.uint64("log")))
  }

  private static func messageID(_ reader: inout ByteReader) throws(WireError) -> MessageID {
    let text = try reader.text("message ID", byteCountMax: Limit.messageIDByteCountMax)
    guard let id = MessageID(text) else { throw .malformed(field: "message ID", reason: "empty or with controls") }
    return id
  }

  private static func json(_ reader: inout ByteReader) throws(WireError) -> [UInt8] {
    Array(try reader.block("json", byteCountMax: Limit.messageByteCountMax))
  }

  private static func decodeHeads(_ reader: inout ByteReader) throws(WireError) -> SessionMessage {
    let channel = ChannelID(try reader.bytes32("channel"))
    let flags = try reader.flags("flags", max: 7)
    let buckets =
      flags & 4 == 0 ? BucketSet.all : BucketSet(bytes: try reader.bytes(BucketSet.byteCount, "buckets"))
    let count = try reader.count("heads", countMax: headsCountMax, byteCountEach: 42)
    var heads: [Head] = []
    for _ in 0..<count {
      let head = Head(
        key: try logKey(&reader), number: try reader.varint("number"), floor: try reader.varint("floor"))
      guard head.floor <= head.number else { throw .outOfRange(field: "floor", value: head.floor) }
      heads.append(head)
    }
    return .heads(channel, buckets, heads, isLast: flags & 1 != 0, answerWanted: flags & 2 != 0)
  }

  private static func decodeSummary(_ reader: inout ByteReader) throws(WireError) -> SessionMessage {
    let channel = ChannelID(try reader.bytes32("channel"))
    var digests: [UInt8: HeadsDigest] = [:]
    var last: UInt8?
    while !reader.isAtEnd {
      let bucket = try reader.uint8("bucket")
      if let last, bucket <= last { throw .malformed(field: "bucket", reason: "not rising") }
      last = bucket
      digests[bucket] = HeadsDigest(try reader.bytes(HeadsDigest.byteCount, "digest"))
    }
    return .summary(channel, digests)
  }

  private static func decodeWant(_ reader: inout ByteReader) throws(WireError) -> SessionMessage {
    let channel = ChannelID(try reader.bytes32("channel"))
    let request = try reader.varint("request")
    let count = try reader.count("ranges", countMax: rangesCountMax, byteCountEach: 42)
    var ranges: [LogRange] = []
    for _ in 0..<count {
      let key = try logKey(&reader)
      let from = try reader.varint("from")
      let through = try reader.varint("through")
      guard from > 0, from <= through else { throw .outOfRange(field: "from", value: from) }
      ranges.append(LogRange(key: key, from: from, through: through))
    }
    return .want(channel, request: request, ranges)
  }

  private static func decodeEntries(_ reader: inout ByteReader) throws(WireError) -> SessionMessage {
    let channel = ChannelID(try reader.bytes32("channel"))
    let request = try reader.varint("request")
    let isLast = try reader.flags("flags", max: 1) == 1
    var entries: [[UInt8]] = []
    while !reader.isAtEnd {
      entries.append(Array(try reader.block("entry", byteCountMax: Limit.entryByteCountMax)))
    }
    return .entries(channel, request: request, entries, isLast: isLast)
  }
}
