/// Lower-case unpadded base32 (RFC 4648 section 6), the text form of every identifier.
public enum Base32 {
  private static let alphabet = Array("abcdefghijklmnopqrstuvwxyz234567".utf8)

  public static func encode(_ bytes: some Sequence<UInt8>) -> String {
    var text: [UInt8] = []
    var buffer: UInt32 = 0
    var bitCount = 0
    for byte in bytes {
      buffer = buffer << 8 | UInt32(byte)
      bitCount += 8
      while bitCount >= 5 {
        bitCount -= 5
        text.append(alphabet[Int(buffer >> UInt32(bitCount)) & 31])
      }
      buffer &= (1 << UInt32(bitCount)) - 1
    }
    if bitCount > 0 { text.append(alphabet[Int(buffer << UInt32(5 - bitCount)) & 31]) }
    return String(decoding: text, as: UTF8.self)
  }

  /// Nil for a character outside the alphabet (upper case included), an impossible length, or bits left over that are
  /// not zero: one value has one text.
  public static func decode(_ text: String) -> [UInt8]? {
    var bytes: [UInt8] = []
    var buffer: UInt32 = 0
    var bitCount = 0
    for character in text.utf8 {
      let value: UInt32
      switch character {
      case UInt8(ascii: "a")...UInt8(ascii: "z"): value = UInt32(character - UInt8(ascii: "a"))
      case UInt8(ascii: "2")...UInt8(ascii: "7"): value = UInt32(character - UInt8(ascii: "2")) + 26
      default: return nil
      }
      buffer = buffer << 5 | value
      bitCount += 5
      if bitCount >= 8 {
        bitCount -= 8
        bytes.append(UInt8(truncatingIfNeeded: buffer >> UInt32(bitCount)))
        buffer &= (1 << UInt32(bitCount)) - 1
      }
    }
    guard bitCount < 5, buffer == 0 else { return nil }
    return bytes
  }
}
