/// Unpadded base64url (RFC 4648 section 5), as PASETO writes its parts.
package enum Base64URL {
  private static let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".utf8)

  package static func encode(_ bytes: some Sequence<UInt8>) -> String {
    var text: [UInt8] = []
    var buffer: UInt32 = 0
    var bitCount: UInt32 = 0
    for byte in bytes {
      buffer = buffer << 8 | UInt32(byte)
      bitCount += 8
      while bitCount >= 6 {
        bitCount -= 6
        text.append(alphabet[Int(buffer >> bitCount) & 63])
      }
      buffer &= (1 << bitCount) - 1
    }
    if bitCount > 0 { text.append(alphabet[Int(buffer << (6 - bitCount)) & 63]) }
    return String(decoding: text, as: UTF8.self)
  }

  /// Nil for a character outside the alphabet (`=` included), an impossible length, or bits left over that are not
  /// zero: one value has one text.
  package static func decode(_ text: some Sequence<UInt8>) -> [UInt8]? {
    var bytes: [UInt8] = []
    var buffer: UInt32 = 0
    var bitCount: UInt32 = 0
    for character in text {
      let value: UInt8
      switch character {
      case UInt8(ascii: "A")...UInt8(ascii: "Z"): value = character - UInt8(ascii: "A")
      case UInt8(ascii: "a")...UInt8(ascii: "z"): value = character - UInt8(ascii: "a") + 26
      case UInt8(ascii: "0")...UInt8(ascii: "9"): value = character - UInt8(ascii: "0") + 52
      case UInt8(ascii: "-"): value = 62
      case UInt8(ascii: "_"): value = 63
      default: return nil
      }
      buffer = buffer << 6 | UInt32(value)
      bitCount += 6
      if bitCount >= 8 {
        bitCount -= 8
        bytes.append(UInt8(truncatingIfNeeded: buffer >> bitCount))
        buffer &= (1 << bitCount) - 1
      }
    }
    guard bitCount < 6, buffer == 0 else { return nil }
    return bytes
  }
}
