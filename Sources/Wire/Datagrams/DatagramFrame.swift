import ParleyVocabulary

/// What stands in a sealed datagram's body: frames of (type, length, bytes). Unknown types are skipped.
package enum DatagramFrame: Equatable, Sendable {
  /// A signed `Presence`.
  case presence(Signed)
  /// A signed `LiveObject`.
  case live(Signed)
  /// An encoded `Entry`, with its own signature inside.
  case entry([UInt8])
  /// A part of an encoded entry that does not fit one datagram.
  case fragment(EntryFragment)
  /// Sealed once more, for one member only; holds a `DirectMessage`.
  case direct([UInt8])
  /// The sender suspects that this member, in this incarnation, has gone.
  case suspect(PeerID, incarnation: UInt64)
  /// Who has all of these? Holders answer directly.
  case whoHas([MediaID])
  /// A part of a signed `LiveObject` that does not fit one datagram.
  case liveFragment(EntryFragment)

  package static let directType: UInt64 = 5
  static let whoHasCountMax = 32

  package func write(to out: inout ByteWriter) {
    switch self {
    case .presence(let signed): Self.write(1, signed.encoded, to: &out)
    case .live(let signed): Self.write(2, signed.encoded, to: &out)
    case .entry(let bytes): Self.write(3, bytes, to: &out)
    case .fragment(let fragment): Self.write(4, fragment.encoded, to: &out)
    case .direct(let sealed): Self.write(Self.directType, sealed, to: &out)
    case .suspect(let peer, let incarnation):
      var inner = ByteWriter(reserving: 40)
      inner.bytes32(peer.value)
      inner.varint(incarnation)
      Self.write(6, inner.bytes, to: &out)
    case .whoHas(let media):
      precondition(media.count <= Self.whoHasCountMax, "a datagram asks for 32 media at most")
      Self.write(7, media.flatMap(\.bytes), to: &out)
    case .liveFragment(let fragment): Self.write(8, fragment.encoded, to: &out)
    }
  }

  private static func write(_ type: UInt64, _ bytes: [UInt8], to out: inout ByteWriter) {
    out.varint(type)
    out.block(bytes)
  }

  /// The frames of a body. One malformed frame refuses the datagram: whoever sealed it knows the format.
  package static func decodeAll(_ body: [UInt8]) throws(WireError) -> [DatagramFrame] {
    var reader = ByteReader(body)
    var frames: [DatagramFrame] = []
    while !reader.isAtEnd {
      let type = try reader.varint("frame type")
      let bytes = try reader.block("frame", byteCountMax: Limit.datagramByteCountMax)
      if let frame = try decode(type, bytes) { frames.append(frame) }
    }
    return frames
  }

  private static func decode(_ type: UInt64, _ bytes: ArraySlice<UInt8>) throws(WireError) -> DatagramFrame? {
    switch type {
    case 1: return .presence(try Signed(decoding: bytes))
    case 2: return .live(try Signed(decoding: bytes))
    case 3: return .entry(Array(bytes))
    case 4: return .fragment(try EntryFragment(decoding: bytes))
    case directType: return .direct(Array(bytes))
    case 6:
      var reader = ByteReader(bytes)
      let peer = PeerID(try reader.bytes32("suspect"))
      let incarnation = try reader.varint("incarnation")
      try reader.finish()
      return .suspect(peer, incarnation: incarnation)
    case 7: return .whoHas(try mediaIDs(bytes))
    case 8: return .liveFragment(try EntryFragment(decoding: bytes))
    default: return nil
    }
  }

  static func mediaIDs(_ bytes: ArraySlice<UInt8>) throws(WireError) -> [MediaID] {
    guard bytes.count % 32 == 0, bytes.count / 32 <= whoHasCountMax else {
      throw .malformed(field: "media IDs", reason: "not 0 to 32 of 32 bytes")
    }
    return stride(from: bytes.startIndex, to: bytes.endIndex, by: 32).map { MediaID(bytes: bytes[$0..<$0 + 32])! }
  }
}

/// One of the numbered parts of an encoded entry.
package struct EntryFragment: Equatable, Sendable {
  package static let countMax = 40
  /// Names the entry among those of its sender: first 8 bytes of BLAKE2b-256 of the whole.
  package let group: UInt64
  package let index: Int
  package let count: Int
  package let bytes: [UInt8]

  package init(group: UInt64, index: Int, count: Int, bytes: [UInt8]) {
    precondition(index < count && count <= Self.countMax, "fragments are numbered below their count")
    self.group = group
    self.index = index
    self.count = count
    self.bytes = bytes
  }

  package var encoded: [UInt8] {
    var out = ByteWriter(reserving: 12 + bytes.count)
    out.uint64(group)
    out.uint8(UInt8(index))
    out.uint8(UInt8(count))
    out.raw(bytes)
    return out.bytes
  }

  init(decoding slice: ArraySlice<UInt8>) throws(WireError) {
    var reader = ByteReader(slice)
    group = try reader.uint64("fragment group")
    index = Int(try reader.uint8("fragment index"))
    count = Int(try reader.uint8("fragment count"))
    guard count <= Self.countMax, index < count else {
      throw .outOfRange(field: "fragment index", value: UInt64(index))
    }
    bytes = Array(reader.rest)
    guard !bytes.isEmpty else { throw .truncated(field: "fragment", needed: 1, remaining: 0) }
  }
}

/// What one member tells another in a datagram, sealed under their pairwise key: needs no signature.
package struct DirectMessage: Equatable, Sendable {
  package enum Part: Equatable, Sendable {
    /// Are you there? Echo this.
    case probe(nonce: UInt64)
    /// An echo of a probe or of a presence's nonce.
    case echo(nonce: UInt64)
    /// I have everything of your log up to this number, on disk.
    case acknowledge(log: Instance, number: UInt64)
    /// I hold all of these and serve them.
    case holding([MediaID])
  }

  /// Rises within the sender's instance.
  package let counter: UInt64
  package let parts: [Part]

  package init(counter: UInt64, parts: [Part]) {
    self.counter = counter
    self.parts = parts
  }

  package var encoded: [UInt8] {
    var out = ByteWriter(reserving: 64)
    out.varint(counter)
    for part in parts {
      var inner = ByteWriter(reserving: 20)
      let type: UInt64
      switch part {
      case .probe(let nonce):
        type = 1
        inner.uint64(nonce)
      case .echo(let nonce):
        type = 2
        inner.uint64(nonce)
      case .acknowledge(let log, let number):
        type = 3
        inner.uint64(log.value)
        inner.varint(number)
      case .holding(let media):
        type = 4
        for id in media.prefix(DatagramFrame.whoHasCountMax) { inner.bytes32(id.value) }
      }
      out.varint(type)
      out.block(inner.bytes)
    }
    return out.bytes
  }

  package init(decoding bytes: [UInt8]) throws(WireError) {
    var reader = ByteReader(bytes)
    counter = try reader.varint("counter")
    var parts: [Part] = []
    while !reader.isAtEnd {
      let type = try reader.varint("part type")
      var inner = ByteReader(try reader.block("part", byteCountMax: Limit.datagramByteCountMax))
      switch type {
      case 1: parts.append(.probe(nonce: try inner.uint64("nonce")))
      case 2: parts.append(.echo(nonce: try inner.uint64("nonce")))
      case 3:
        parts.append(
          .acknowledge(log: Instance(try inner.uint64("log")), number: try inner.varint("number")))
      case 4:
        parts.append(.holding(try DatagramFrame.mediaIDs(inner.rest)))
        continue
      default: continue
      }
      try inner.finish()
    }
    self.parts = parts
  }
}
