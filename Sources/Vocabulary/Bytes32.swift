/// Thirty-two bytes held inline: the shape of keys and hashes. Compares as an unsigned big-endian number, so the order
/// is that of the bytes.
public struct Bytes32: Hashable, Comparable, Sendable {
  package let words: (UInt64, UInt64, UInt64, UInt64)

  package init(words: (UInt64, UInt64, UInt64, UInt64)) { self.words = words }

  /// Nil unless `bytes` holds exactly 32 bytes.
  public init?(_ bytes: some Collection<UInt8>) {
    guard bytes.count == 32 else { return nil }
    self.init(
      words: bytes.withContiguousStorageIfAvailable(Self.words) ?? Array(bytes).withUnsafeBufferPointer(Self.words))
  }

  private static func words(_ bytes: UnsafeBufferPointer<UInt8>) -> (UInt64, UInt64, UInt64, UInt64) {
    let raw = UnsafeRawBufferPointer(bytes)
    func word(_ index: Int) -> UInt64 {
      UInt64(bigEndian: raw.loadUnaligned(fromByteOffset: index * 8, as: UInt64.self))
    }
    return (word(0), word(1), word(2), word(3))
  }

  public var bytes: [UInt8] {
    [UInt8](unsafeUninitializedCapacity: 32) { buffer, count in
      let raw = UnsafeMutableRawBufferPointer(buffer)
      raw.storeBytes(of: words.0.bigEndian, toByteOffset: 0, as: UInt64.self)
      raw.storeBytes(of: words.1.bigEndian, toByteOffset: 8, as: UInt64.self)
      raw.storeBytes(of: words.2.bigEndian, toByteOffset: 16, as: UInt64.self)
      raw.storeBytes(of: words.3.bigEndian, toByteOffset: 24, as: UInt64.self)
      count = 32
    }
  }

  public static func == (a: Self, b: Self) -> Bool { a.words == b.words }
  public static func < (a: Self, b: Self) -> Bool { a.words < b.words }
  public func hash(into hasher: inout Hasher) {
    hasher.combine(words.0)
    hasher.combine(words.1)
    hasher.combine(words.2)
    hasher.combine(words.3)
  }
}
