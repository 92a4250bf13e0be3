/// Percent-encoding of the parts of an address (RFC 3986 section 2.1).
package enum PercentEncoding {
  /// For one part of a path: everything but the unreserved characters is escaped.
  package static func encoded(_ text: String) -> String {
    let digits = Array("0123456789ABCDEF".unicodeScalars)
    var result = String.UnicodeScalarView()
    for byte in text.utf8 {
      switch byte {
      case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
        UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"), UInt8(ascii: "~"):
        result.append(Unicode.Scalar(byte))
      // A dot is escaped too: clients fold `.` and `..` away.
      default: result += ["%", digits[Int(byte >> 4)], digits[Int(byte & 15)]]
      }
    }
    return String(result)
  }

  package enum Malformed: Error, Equatable, Sendable, CustomStringConvertible {
    case loneSign
    case notText

    package var description: String {
      switch self {
      case .loneSign: "the address holds a % that is not followed by two hexadecimal digits"
      case .notText: "the address is not UTF-8 once percent-decoded, or holds a NUL"
      }
    }
  }

  /// To UTF-8 without NUL.
  package static func decoded(_ text: String) throws(Malformed) -> String {
    var bytes: [UInt8] = []
    let source = Array(text.utf8)
    var index = 0
    while index < source.count {
      guard source[index] == UInt8(ascii: "%") else {
        bytes.append(source[index])
        index += 1
        continue
      }
      guard index + 2 < source.count, let high = source[index + 1].hexDigit, let low = source[index + 2].hexDigit else {
        throw .loneSign
      }
      bytes.append(high << 4 | low)
      index += 3
    }
    guard let decoded = String(validating: bytes, as: UTF8.self), !bytes.contains(0) else { throw .notText }
    return decoded
  }
}
