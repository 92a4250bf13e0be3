/// Thirty-two bytes held inline: the shape of keys and hashes. Compares as an unsigned big-endian number, so the order
/// is that of the bytes.
public struct Bytes32: Hashable, Comparable, Sendable {
  package let words: (UInt64, UInt64, UInt64, UInt64)

  package init(words: (UInt64, UInt64, UInt64, UInt64)) { self.words = words }

  /// Nil unless `bytes` holds exactly 32 bytes.
  public init?(_ bytes: some Collection<UInt8>) {
    let inPlace = bytes.withContiguousStorageIfAvailable { Self(raw: UnsafeRawBufferPointer($0)) }
    guard let value = inPlace ?? ContiguousArray(bytes).withUnsafeBytes({ Self(raw: $0) }) else { return nil }
    self = value
  }

  /// Nil unless `raw` holds exactly 32 bytes. For what is read often: not generic.
  package init?(raw: UnsafeRawBufferPointer) {
    guard raw.count == 32 else { return nil }
    func word(_ offset: Int) -> UInt64 {
      UInt64(bigEndian: raw.loadUnaligned(fromByteOffset: offset, as: UInt64.self))
    }
    words = (word(0), word(8), word(16), word(24))
  }

  public var bytes: [UInt8] {
    [UInt8](unsafeUninitializedCapacity: 32) { buffer, count in
      withUnsafeBytes { UnsafeMutableRawBufferPointer(buffer).copyMemory(from: $0) }
      count = 32
    }
  }

  /// The 32 bytes, for as long as `body` runs.
  package func withUnsafeBytes<Result>(_ body: (UnsafeRawBufferPointer) -> Result) -> Result {
    let bigEndian = (words.0.bigEndian, words.1.bigEndian, words.2.bigEndian, words.3.bigEndian)
    return Swift.withUnsafeBytes(of: bigEndian) { body($0) }
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
