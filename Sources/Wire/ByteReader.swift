import ParleyVocabulary

/// Why bytes were refused. Every case names the field.
public enum WireError: Error, Equatable, Sendable, CustomStringConvertible {
  case truncated(field: String, needed: Int, remaining: Int)
  case tooLong(field: String, byteCount: UInt64, byteCountMax: Int)
  case tooMany(field: String, count: UInt64, countMax: Int)
  case trailing(byteCount: Int)
  case outOfRange(field: String, value: UInt64)
  case notUTF8(field: String)
  case malformed(field: String, reason: String)

  public var description: String {
    switch self {
    case .truncated(let field, let needed, let remaining):
      "\(field): \(needed) bytes needed, \(remaining) there"
    case .tooLong(let field, let byteCount, let byteCountMax):
      "\(field): \(byteCount) bytes, at most \(byteCountMax) allowed"
    case .tooMany(let field, let count, let countMax): "\(field): \(count) of them, at most \(countMax) allowed"
    case .trailing(let byteCount): "\(byteCount) bytes too many at the end"
    case .outOfRange(let field, let value): "\(field): \(value) is out of range"
    case .notUTF8(let field): "\(field): not valid UTF-8"
    case .malformed(let field, let reason): "\(field): \(reason)"
    }
  }
}

/// Reads big-endian values off bytes. A read that fails leaves the cursor where it was.
package struct ByteReader: Sendable {
  private let bytes: ArraySlice<UInt8>
  private(set) var position: Int

  package init(_ bytes: [UInt8]) { self.init(bytes[...]) }
  package init(_ bytes: ArraySlice<UInt8>) {
    self.bytes = bytes
    position = bytes.startIndex
  }

  package var remaining: Int { bytes.endIndex - position }
  package var isAtEnd: Bool { remaining == 0 }

  /// Everything not read yet, which stays unread.
  package var rest: ArraySlice<UInt8> { bytes[position...] }

  package mutating func slice(_ count: Int, _ field: String) throws(WireError) -> ArraySlice<UInt8> {
    precondition(count >= 0, "lengths are checked before they are used")
    guard remaining >= count else { throw .truncated(field: field, needed: count, remaining: remaining) }
    defer { position += count }
    return bytes[position..<position + count]
  }

  package mutating func bytes(_ count: Int, _ field: String) throws(WireError) -> [UInt8] {
    Array(try slice(count, field))
  }

  package mutating func uint8(_ field: String) throws(WireError) -> UInt8 { try slice(1, field).first! }
  package mutating func uint16(_ field: String) throws(WireError) -> UInt16 { UInt16(try fixed(2, field)) }
  package mutating func uint32(_ field: String) throws(WireError) -> UInt32 { UInt32(try fixed(4, field)) }
  package mutating func uint64(_ field: String) throws(WireError) -> UInt64 { try fixed(8, field) }
  package mutating func bytes32(_ field: String) throws(WireError) -> Bytes32 {
    try slice(32, field).withUnsafeBytes { Bytes32(raw: $0)! }
  }

  /// A variable-length integer (RFC 9000 section 16), below 2⁶². The shortest form is required: one value has one
  /// encoding.
  package mutating func varint(_ field: String) throws(WireError) -> UInt64 {
    guard let first = rest.first else { throw .truncated(field: field, needed: 1, remaining: 0) }
    let count = 1 << Int(first >> 6)
    let start = position
    let raw = try fixed(count, field)
    let value = raw & (UInt64.max >> UInt64(66 - 8 * count))
    guard count == ByteWriter.varintByteCount(value) else {
      position = start
      throw .malformed(field: field, reason: "not the shortest form of \(value)")
    }
    return value
  }

  /// A varint length and as many bytes, at most `byteCountMax`.
  package mutating func block(_ field: String, byteCountMax: Int) throws(WireError) -> ArraySlice<UInt8> {
    let start = position
    let count = try varint(field)
    guard count <= UInt64(byteCountMax) else {
      position = start
      throw .tooLong(field: field, byteCount: count, byteCountMax: byteCountMax)
    }
    do { return try slice(Int(count), field) } catch {
      position = start
      throw error
    }
  }

  package mutating func text(_ field: String, byteCountMax: Int) throws(WireError) -> String {
    let start = position
    let raw = try block(field, byteCountMax: byteCountMax)
    guard let text = String(validating: raw, as: UTF8.self) else {
      position = start
      throw .notUTF8(field: field)
    }
    return text
  }

  /// A varint count of things, at most `countMax`, each at least `byteCountEach` bytes: refused before any is
  /// allocated.
  package mutating func count(_ field: String, countMax: Int, byteCountEach: Int) throws(WireError) -> Int {
    let start = position
    let count = try varint(field)
    guard count <= UInt64(countMax) else {
      position = start
      throw .tooMany(field: field, count: count, countMax: countMax)
    }
    guard Int(count) * byteCountEach <= remaining else {
      let left = remaining
      position = start
      throw .truncated(field: field, needed: Int(count) * byteCountEach, remaining: left)
    }
    return Int(count)
  }

  /// One byte of flags. Bits without a meaning must be zero: one value, one encoding.
  package mutating func flags(_ field: String, max: UInt8) throws(WireError) -> UInt8 {
    let flags = try uint8(field)
    guard flags <= max else { throw .outOfRange(field: field, value: UInt64(flags)) }
    return flags
  }

  /// Decoders consume exactly.
  package func finish() throws(WireError) {
    guard isAtEnd else { throw .trailing(byteCount: remaining) }
  }

  private mutating func fixed(_ count: Int, _ field: String) throws(WireError) -> UInt64 {
    var value: UInt64 = 0
    for byte in try slice(count, field) { value = value << 8 | UInt64(byte) }
    return value
  }
}
