import Parley

/// The header `Range` of RFC 9110, section 14: one range of bytes. Others (several ranges, other units, nonsense) are
/// ignored, as the RFC allows: then everything comes.
enum ByteRangeHeader {
  static func range(_ header: String?) -> ByteRange {
    guard let header, header.lowercased().hasPrefix("bytes=") else { return .all }
    let parts = header.dropFirst(6).split(separator: "-", omittingEmptySubsequences: false)
    guard parts.count == 2 else { return .all }
    let (first, last) = (trimmed(parts[0]), trimmed(parts[1]))
    switch (number(first), number(last)) {
    case (nil, let count?) where first.isEmpty: return .last(count)
    case (let start?, nil) where last.isEmpty: return .from(start)
    case (let start?, let end?) where start <= end: return .bytes(start..<(end == .max ? end : end + 1))
    default: return .all
    }
  }

  private static func trimmed(_ text: Substring) -> Substring {
    text.drop { $0 == " " }.prefix { $0 != " " }
  }

  private static func number(_ text: Substring) -> UInt64? {
    guard !text.isEmpty, text.utf8.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }) else {
      return nil
    }
    return UInt64(text)
  }
}
