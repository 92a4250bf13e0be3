import ParleyVocabulary

/// What travels in a media session: one message is the plaintext of one sealed frame.
///
/// | type | message | after the type and the varint number of the request |
/// |---|---|---|
/// | 01 | manifest | media ID, varint offset |
/// | 02 | piece hashes | media ID, varint file, varint first piece, varint count |
/// | 03 | block | media ID, varint file, varint index; for several a varint count |
/// | 04 | have | media ID, varint first piece |
/// | 05 | cancel | nothing; of several a varint count |
/// | 81 | manifest part | varint total, varint offset, bytes to the end |
/// | 82 | piece hashes part | 32 bytes each to the end |
/// | 83 | block data | bytes to the end |
/// | 84 | holding, complete | nothing |
/// | 85 | holding, some | varint pieces in all, varint first, bitmap to the end |
/// | 86 | refused | 1 byte: the reason |
///
/// Requests are pipelined and answered in any order. Each gets one answer, except that a cancelled one may get none. A
/// request for several blocks gets one for each, under its number and those that follow it.
package enum MediaMessage: Equatable, Sendable {
  case request(UInt64, MediaRequest)
  case cancel(UInt64, count: Int = 1)
  case reply(UInt64, MediaReply)
}

package enum MediaRequest: Hashable, Sendable {
  case manifest(MediaID, offset: Int)
  case pieceHashes(MediaID, file: Int, first: Int, count: Int)
  /// `count` blocks in a row, at most `Limit.blocksPerPiece`.
  case block(MediaID, file: Int, index: Int, count: Int = 1)
  /// Which pieces the other side holds, from a piece (a multiple of 8) on. Pieces are counted through all files.
  case have(MediaID, first: Int)

  /// The answers that it gets, under as many numbers.
  package var answerCount: Int { if case .block(_, _, _, let count) = self { count } else { 1 } }

  package var media: MediaID {
    switch self {
    case .manifest(let id, _), .pieceHashes(let id, _, _, _), .block(let id, _, _, _), .have(let id, _): id
    }
  }
}

package enum MediaReply: Equatable, Sendable {
  case manifestPart(total: Int, offset: Int, ArraySlice<UInt8>)
  /// 32 bytes for each piece.
  case pieceHashes(ArraySlice<UInt8>)
  case block(ArraySlice<UInt8>)
  case holdingAll
  /// `bitmap` begins at piece `first` (a multiple of 8), the highest bit of each byte first; bits past `count` are
  /// zero.
  case holding(count: Int, first: Int, bitmap: ArraySlice<UInt8>)
  case refused(MediaRefusal)
}

package enum MediaRefusal: UInt8, Sendable, CaseIterable, CustomStringConvertible {
  /// Not held, no longer shared, or out of range.
  case unknown = 1
  /// The source file is no longer what was shared.
  case changed = 2
  case notAMember = 3
  /// Too many requests at once: ask again later.
  case busy = 4

  package var description: String {
    switch self {
    case .unknown: "it does not hold what was asked for"
    case .changed: "its file changed since it was shared"
    case .notAMember: "it serves this media to members only"
    case .busy: "it has too many requests waiting"
    }
  }
}

extension MediaMessage {
  package static let byteCountMax = 31_900
  package static let manifestPartByteCountMax = 24_000
  package static let pieceHashesPerPartMax = 700
  package static let bitmapByteCountMax = 25_000
  /// A holder of more pieces than this (2⁴⁶ bytes) is malformed.
  package static let pieceCountMax = 1 << 26

  package var encoded: [UInt8] {
    var writer = ByteWriter(reserving: byteCountEstimate)
    write(to: &writer)
    return writer.bytes
  }

  /// Appends the encoding.
  package func append(to bytes: inout [UInt8]) {
    var writer = ByteWriter(takingOver: &bytes)
    write(to: &writer)
    writer.giveBack(to: &bytes)
  }

  private func write(to writer: inout ByteWriter) {
    switch self {
    case .request(let number, let request):
      writer.uint8(request.type)
      writer.varint(number)
      request.encode(to: &writer)
    case .cancel(let number, let count):
      writer.uint8(0x05)
      writer.varint(number)
      if count != 1 { writer.varint(UInt64(count)) }
    case .reply(let number, let reply):
      writer.uint8(reply.type)
      writer.varint(number)
      reply.encode(to: &writer)
    }
  }

  /// At least what it takes, encoded, and not much more.
  package var byteCountEstimate: Int {
    if case .reply(_, let reply) = self { return 32 + reply.payloadByteCount }
    return 80
  }

  package init(decoding bytes: [UInt8]) throws(WireError) { try self.init(decoding: bytes[...]) }

  /// Slices in the result share the memory of `bytes`.
  package init(decoding bytes: ArraySlice<UInt8>) throws(WireError) {
    guard bytes.count <= Self.byteCountMax else {
      throw .tooLong(field: "media", byteCount: UInt64(bytes.count), byteCountMax: Self.byteCountMax)
    }
    var reader = ByteReader(bytes)
    let type = try reader.uint8("media.type")
    let number = try reader.varint("media.number")
    switch type {
    case 0x01...0x04:
      let request = try MediaRequest(type: type, from: &reader)
      // The last answer has a number, too.
      guard number <= Limit.counterMax - UInt64(request.answerCount - 1) else {
        throw .outOfRange(field: "media.number", value: number)
      }
      self = .request(number, request)
    case 0x05: self = .cancel(number, count: try reader.count("cancel.count"))
    case 0x81...0x86: self = .reply(number, try MediaReply(type: type, from: &reader))
    default: throw .outOfRange(field: "media.type", value: UInt64(type))
    }
    try reader.finish()
  }
}

extension MediaRequest {
  fileprivate var type: UInt8 {
    switch self {
    case .manifest: 0x01
    case .pieceHashes: 0x02
    case .block: 0x03
    case .have: 0x04
    }
  }

  fileprivate func encode(to writer: inout ByteWriter) {
    writer.bytes32(media.value)
    switch self {
    case .manifest(_, let offset): writer.varint(UInt64(offset))
    case .pieceHashes(_, let file, let first, let count):
      writer.varint(UInt64(file))
      writer.varint(UInt64(first))
      writer.varint(UInt64(count))
    case .block(_, let file, let index, let count):
      writer.varint(UInt64(file))
      writer.varint(UInt64(index))
      if count != 1 { writer.varint(UInt64(count)) }
    case .have(_, let first): writer.varint(UInt64(first))
    }
  }

  fileprivate init(type: UInt8, from reader: inout ByteReader) throws(WireError) {
    let id = MediaID(try reader.bytes32("media.id"))
    switch type {
    case 0x01:
      self = .manifest(id, offset: try reader.int("manifest.offset", max: Limit.manifestByteCountMax))
    case 0x02:
      let file = try reader.int("pieceHashes.file", max: MediaManifest.fileCountMax)
      let first = try reader.int("pieceHashes.first", max: MediaMessage.pieceCountMax)
      let count = try reader.int("pieceHashes.count", max: MediaMessage.pieceHashesPerPartMax)
      guard count > 0 else { throw .outOfRange(field: "pieceHashes.count", value: 0) }
      self = .pieceHashes(id, file: file, first: first, count: count)
    case 0x03:
      let file = try reader.int("block.file", max: MediaManifest.fileCountMax)
      let index = try reader.int("block.index", max: MediaMessage.pieceCountMax * Limit.blocksPerPiece)
      self = .block(id, file: file, index: index, count: try reader.count("block.count"))
    default:
      let first = try reader.int("have.first", max: MediaMessage.pieceCountMax)
      guard first % 8 == 0 else { throw .outOfRange(field: "have.first", value: UInt64(first)) }
      self = .have(id, first: first)
    }
  }
}

extension MediaReply {
  fileprivate var type: UInt8 {
    switch self {
    case .manifestPart: 0x81
    case .pieceHashes: 0x82
    case .block: 0x83
    case .holdingAll: 0x84
    case .holding: 0x85
    case .refused: 0x86
    }
  }

  /// What the answer weighs on a connection, give or take its few bytes of header.
  package var payloadByteCount: Int {
    switch self {
    case .manifestPart(_, _, let bytes), .pieceHashes(let bytes), .block(let bytes), .holding(_, _, let bytes):
      bytes.count
    case .holdingAll, .refused: 1
    }
  }

  fileprivate func encode(to writer: inout ByteWriter) {
    switch self {
    case .manifestPart(let total, let offset, let bytes):
      writer.varint(UInt64(total))
      writer.varint(UInt64(offset))
      writer.raw(bytes)
    case .pieceHashes(let bytes), .block(let bytes): writer.raw(bytes)
    case .holdingAll: break
    case .holding(let count, let first, let bitmap):
      writer.varint(UInt64(count))
      writer.varint(UInt64(first))
      writer.raw(bitmap)
    case .refused(let reason): writer.uint8(reason.rawValue)
    }
  }

  fileprivate init(type: UInt8, from reader: inout ByteReader) throws(WireError) {
    switch type {
    case 0x81:
      let total = try reader.int("manifestPart.total", max: Limit.manifestByteCountMax)
      let offset = try reader.int("manifestPart.offset", max: total)
      let bytes = try reader.tail("manifestPart.bytes", 1...MediaMessage.manifestPartByteCountMax)
      guard bytes.count <= total - offset else {
        throw .malformed(field: "manifestPart.bytes", reason: "they reach past the total of \(total)")
      }
      self = .manifestPart(total: total, offset: offset, bytes)
    case 0x82:
      let bytes = try reader.tail("pieceHashes.bytes", 32...32 * MediaMessage.pieceHashesPerPartMax)
      guard bytes.count % 32 == 0 else {
        throw .malformed(field: "pieceHashes.bytes", reason: "\(bytes.count) bytes are no whole number of hashes")
      }
      self = .pieceHashes(bytes)
    case 0x83: self = .block(try reader.tail("block.bytes", 1...Limit.mediaBlockByteCount))
    case 0x84: self = .holdingAll
    case 0x85: self = try Self.holding(from: &reader)
    default:
      let code = try reader.uint8("refused.reason")
      guard let reason = MediaRefusal(rawValue: code) else {
        throw .outOfRange(field: "refused.reason", value: UInt64(code))
      }
      self = .refused(reason)
    }
  }

  private static func holding(from reader: inout ByteReader) throws(WireError) -> MediaReply {
    let count = try reader.int("holding.count", max: MediaMessage.pieceCountMax)
    let first = try reader.int("holding.first", max: count)
    guard first % 8 == 0 else { throw .outOfRange(field: "holding.first", value: UInt64(first)) }
    let bitmap = try reader.tail("holding.bitmap", 0...MediaMessage.bitmapByteCountMax)
    let bitCount = min(count - first, MediaMessage.bitmapByteCountMax * 8)
    guard bitmap.count == (bitCount + 7) / 8 else {
      throw .malformed(field: "holding.bitmap", reason: "\(bitmap.count) bytes for \(bitCount) pieces")
    }
    if bitCount % 8 != 0, let last = bitmap.last, last & (0xFF >> UInt8(bitCount % 8)) != 0 {
      throw .malformed(field: "holding.bitmap", reason: "bits past the last piece are set")
    }
    return .holding(count: count, first: first, bitmap: bitmap)
  }
}

extension ByteReader {
  fileprivate mutating func int(_ field: String, max: Int) throws(WireError) -> Int {
    let value = try varint(field)
    guard value <= UInt64(max) else { throw .outOfRange(field: field, value: value) }
    return Int(value)
  }

  /// Of blocks, or of numbers; 1 has no byte.
  fileprivate mutating func count(_ field: String) throws(WireError) -> Int {
    guard remaining > 0 else { return 1 }
    let count = try int(field, max: Limit.blocksPerPiece)
    guard count > 1 else { throw .outOfRange(field: field, value: UInt64(count)) }
    return count
  }

  fileprivate mutating func tail(_ field: String, _ bounds: ClosedRange<Int>) throws(WireError) -> ArraySlice<UInt8> {
    guard remaining <= bounds.upperBound else {
      throw .tooLong(field: field, byteCount: UInt64(remaining), byteCountMax: bounds.upperBound)
    }
    guard remaining >= bounds.lowerBound else {
      throw .truncated(field: field, needed: bounds.lowerBound, remaining: remaining)
    }
    return try slice(remaining, field)
  }
}
