/// Thirty-two bytes held inline: the shape of keys and hashes. Compares as an unsigned big-endian number, so the order
/// is that of the bytes.
public struct Bytes32: Hashable, Comparable, Sendable {
  package let words: (UInt64, UInt64, UInt64, UInt64)

  package init(words: (UInt64, UInt64, UInt64, UInt64)) { self.words = words }

  /// Nil unless `bytes` holds exactly 32 bytes.
  public init?(_ bytes: some Collection<UInt8>) {
    guard bytes.count == 32 else { return nil }
    var words: [UInt64] = [0, 0, 0, 0]
    var index = 0
    for byte in bytes {
      words[index >> 3] = words[index >> 3] << 8 | UInt64(byte)
      index += 1
    }
    self.words = (words[0], words[1], words[2], words[3])
  }

  public var bytes: [UInt8] {
    [UInt8](unsafeUninitializedCapacity: 32) { buffer, count in
      var index = 0
      for word in [words.0, words.1, words.2, words.3] {
        for shift in stride(from: 56, through: 0, by: -8) {
          buffer[index] = UInt8(truncatingIfNeeded: word >> UInt64(shift))
          index += 1
        }
      }
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
