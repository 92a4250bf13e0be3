import ParleyVocabulary

/// Appends big-endian values.
package struct ByteWriter: Sendable {
  package private(set) var bytes: [UInt8] = []

  package init(reserving byteCount: Int = 0) { bytes.reserveCapacity(byteCount) }

  /// Goes on behind these bytes, and leaves none, until they are given back.
  package init(takingOver bytes: inout [UInt8]) { swap(&self.bytes, &bytes) }
  package mutating func giveBack(to bytes: inout [UInt8]) { swap(&self.bytes, &bytes) }

  package mutating func uint8(_ value: UInt8) { bytes.append(value) }
  package mutating func uint16(_ value: UInt16) { fixed(UInt64(value), 2) }
  package mutating func uint32(_ value: UInt32) { fixed(UInt64(value), 4) }
  package mutating func uint64(_ value: UInt64) { fixed(value, 8) }
  package mutating func raw(_ value: some Sequence<UInt8>) { bytes.append(contentsOf: value) }
  package mutating func bytes32(_ value: Bytes32) { value.withUnsafeBytes { bytes.append(contentsOf: $0) } }

  /// RFC 9000 section 16.
  package mutating func varint(_ value: UInt64) {
    precondition(value <= Limit.counterMax, "counters are below 2^62")
    let count = Self.varintByteCount(value)
    fixed(value | UInt64(count.trailingZeroBitCount) << UInt64(8 * count - 2), count)
  }

  package mutating func block(_ value: some Collection<UInt8>) {
    varint(UInt64(value.count))
    bytes.append(contentsOf: value)
  }

  package mutating func text(_ value: String) { block(Array(value.utf8)) }

  package static func varintByteCount(_ value: UInt64) -> Int {
    switch value {
    case ..<(1 << 6): 1
    case ..<(1 << 14): 2
    case ..<(1 << 30): 4
    default: 8
    }
  }

  private mutating func fixed(_ value: UInt64, _ count: Int) {
    for shift in stride(from: 8 * (count - 1), through: 0, by: -8) {
      bytes.append(UInt8(truncatingIfNeeded: value >> UInt64(shift)))
    }
  }
}
