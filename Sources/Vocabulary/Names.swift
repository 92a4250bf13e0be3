import CUTF8Proc

/// Why a name was refused.
public enum NameError: Error, Equatable, Sendable, CustomStringConvertible {
  case empty
  case tooLong(byteCount: Int, byteCountMax: Int)
  case controlCharacter(codePoint: UInt32)

  public var description: String {
    switch self {
    case .empty: "a name must hold at least one visible character"
    case .tooLong(let byteCount, let byteCountMax):
      "the name is \(byteCount) bytes of UTF-8; at most \(byteCountMax) are allowed: shorten it"
    case .controlCharacter(let codePoint):
      "the name holds the control character U+\(String(codePoint, radix: 16, uppercase: true)): remove it"
    }
  }
}

/// A channel's name: 1 to 64 bytes of UTF-8 after NFC, no control characters.
public struct ChannelName: Hashable, Comparable, Sendable, CustomStringConvertible {
  public let text: String
  public init(_ text: String) throws(NameError) {
    self.text = try checkedName(text, byteCountMax: Limit.channelNameByteCountMax)
  }
  public var description: String { text }
  public static func < (a: Self, b: Self) -> Bool { a.text < b.text }
}

/// A person's name as they wish to be shown: 1 to 64 bytes of UTF-8 after NFC, no control characters. Decoration only:
/// two members may share one.
public struct DisplayName: Hashable, Sendable, CustomStringConvertible {
  public let text: String
  public init(_ text: String) throws(NameError) {
    self.text = try checkedName(text, byteCountMax: Limit.displayNameByteCountMax)
  }
  public var description: String { text }
}

private func checkedName(_ text: String, byteCountMax: Int) throws(NameError) -> String {
  // A first, loose bound keeps the normaliser from working on megabytes; NFC may grow a text threefold at most.
  guard text.utf8.count <= byteCountMax * 4 else {
    throw .tooLong(byteCount: text.utf8.count, byteCountMax: byteCountMax)
  }
  for scalar in text.unicodeScalars where scalar.isControl { throw .controlCharacter(codePoint: scalar.value) }
  let normal = text.nfc
  guard normal.unicodeScalars.contains(where: { !$0.isBlank }) else { throw .empty }
  guard normal.utf8.count <= byteCountMax else {
    throw .tooLong(byteCount: normal.utf8.count, byteCountMax: byteCountMax)
  }
  return normal
}

extension String {
  /// Normalization Form C (UAX #15), by utf8proc.
  package var nfc: String {
    if utf8.allSatisfy({ $0 < 0x80 }) { return self }
    var result: UnsafeMutablePointer<UInt8>?
    let source = Array(utf8)
    let count = utf8proc_map(
      source, source.count, &result, utf8proc_option_t(rawValue: UTF8PROC_STABLE.rawValue | UTF8PROC_COMPOSE.rawValue))
    guard count >= 0, let result else { return self }
    defer { free(result) }
    return String(decoding: UnsafeBufferPointer(start: result, count: count), as: UTF8.self)
  }
}

extension Unicode.Scalar {
  /// General category Cc: U+0000–001F and U+007F–009F.
  package var isControl: Bool { value < 0x20 || (0x7F...0x9F).contains(value) }

  /// Invisible or able to reorder or hide the text around it: format characters (Cf), line and paragraph separators,
  /// private use, surrogates and unassigned code points, variation selectors and fillers.
  package var isTreacherous: Bool {
    switch utf8proc_category(Int32(bitPattern: value)) {
    case UTF8PROC_CATEGORY_CF, UTF8PROC_CATEGORY_ZL, UTF8PROC_CATEGORY_ZP, UTF8PROC_CATEGORY_CO,
      UTF8PROC_CATEGORY_CS, UTF8PROC_CATEGORY_CN:
      true
    default: [0x115F, 0x1160, 0x3164, 0xFFA0, 0x2800].contains(value)
    }
  }

  package var isBlank: Bool {
    properties.isWhitespace || isTreacherous
  }

  /// Columns a terminal gives it: 0, 1 or 2.
  package var columnCount: Int { max(0, Int(utf8proc_charwidth(Int32(bitPattern: value)))) }
}
