import CICU
import CUTF8Proc

/// What a name looks like: two names that share a key cannot be told apart at a glance (Unicode Technical Standard 39,
/// section 4). For comparing on this machine only, as it changes with Unicode's tables; never shown, kept or sent.
package struct Skeleton: Hashable, Sendable {
  /// As it is written, and without case.
  package let keys: [String]

  package init(_ name: String) {
    let bare = Self.bare(name)
    let exact = Self.skeleton(bare)
    let folded = Self.skeleton(bare.lowercased())
    keys = exact == folded ? [exact] : [exact, folded]
  }

  package func resembles(_ other: Skeleton) -> Bool { keys.contains { other.keys.contains($0) } }

  /// Whether characters of different scripts are compared by their looks; without ICU only by their meaning.
  package static var knowsLooks: Bool { parley_icu_is_installed() }

  /// Without what cannot be seen, and with one space where there are several.
  private static func bare(_ name: String) -> String {
    var bare = ""
    var isSpaceDue = false
    for scalar in name.unicodeScalars where !scalar.isTreacherous && !scalar.isControl {
      if scalar.properties.isWhitespace {
        isSpaceDue = true
      } else {
        if isSpaceDue, !bare.isEmpty { bare += " " }
        isSpaceDue = false
        bare.unicodeScalars.append(scalar)
      }
    }
    return bare
  }

  private static func skeleton(_ text: String) -> String {
    if text.utf8.allSatisfy({ $0 < 0x80 }) { return asciiSkeleton(text) }
    return unicodeSkeleton(text)
  }

  /// What ICU says of such names (a test compares), without the four megabytes that ICU takes: few nodes need it.
  static func asciiSkeleton(_ text: String) -> String {
    text.unicodeScalars.reduce(into: "") { skeleton, scalar in
      switch scalar {
      case "0": skeleton += "O"
      case "1", "I", "|": skeleton += "l"
      case "m": skeleton += "rn"
      case "`": skeleton += "'"
      case "\"": skeleton += "''"
      case "%": skeleton += "\u{BA}/\u{2080}"
      default: skeleton.unicodeScalars.append(scalar)
      }
    }
  }

  static func unicodeSkeleton(_ text: String) -> String {
    // Widths and styles of letters are not all among the confusables.
    var text = text.compatible
    let source = Array(text.utf8).map { CChar(bitPattern: $0) }
    var buffer = [CChar](repeating: 0, count: 4 * source.count + 64)
    for _ in 0..<2 {
      let count = Int(parley_icu_skeleton(source, Int32(source.count), &buffer, Int32(buffer.count)))
      guard count >= 0 else { break }
      if count <= buffer.count {
        text = String(decoding: buffer[..<count].map { UInt8(bitPattern: $0) }, as: UTF8.self)
        break
      }
      buffer = [CChar](repeating: 0, count: count)
    }
    return text
  }
}

extension String {
  /// Compatibility forms without their difference (NFKD), by utf8proc.
  fileprivate var compatible: String {
    if utf8.allSatisfy({ $0 < 0x80 }) { return self }
    var result: UnsafeMutablePointer<UInt8>?
    let source = Array(utf8)
    let options = UTF8PROC_STABLE.rawValue | UTF8PROC_DECOMPOSE.rawValue | UTF8PROC_COMPAT.rawValue
    let count = utf8proc_map(source, source.count, &result, utf8proc_option_t(rawValue: options))
    guard count >= 0, let result else { return self }
    defer { free(result) }
    return String(decoding: UnsafeBufferPointer(start: result, count: count), as: UTF8.self)
  }
}
