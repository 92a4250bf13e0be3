/// Takes what a terminal sends and makes one line of what was pasted, however many lines it has: terminals mark the
/// beginning and the end of a paste when asked to ("bracketed paste"). No I/O.
struct PasteFilter {
  /// Stands for the end of a line within the one being written.
  static let lineEnd: Character = "␤"
  /// Asks the terminal for the marks, and to leave them out again.
  static let on = "\u{1B}[?2004h"
  static let off = "\u{1B}[?2004l"

  private static let begin = Array("\u{1B}[200~".utf8)
  private static let end = Array("\u{1B}[201~".utf8)

  private var held: [UInt8] = []
  private var isPasting = false
  /// The last was an end of line, which counts once something follows.
  private var isLineEnding = false
  private var wasReturn = false

  /// What to read for this byte.
  mutating func take(_ byte: UInt8) -> [UInt8] {
    let mark = isPasting ? Self.end : Self.begin
    held.append(byte)
    if held == mark {
      held = []
      isPasting.toggle()
      (isLineEnding, wasReturn) = (false, false)
      return []
    }
    return mark.starts(with: held) ? [] : flush()
  }

  /// Nothing follows for now: what looked like the beginning of a mark is none.
  mutating func flush() -> [UInt8] {
    defer { held = [] }
    guard isPasting else { return held }
    return held.flatMap { pasted($0) }
  }

  var isHolding: Bool { !held.isEmpty }

  private mutating func pasted(_ byte: UInt8) -> [UInt8] {
    switch byte {
    case 0x0D, 0x0A:
      let isSecondHalf = byte == 0x0A && wasReturn
      wasReturn = byte == 0x0D
      if isSecondHalf { return [] }
      // The one before has been followed by something now.
      defer { isLineEnding = true }
      return isLineEnding ? Array(String(Self.lineEnd).utf8) : []
    case 0x09, 0x20...0x7E, 0x80...0xFF:
      wasReturn = false
      defer { isLineEnding = false }
      return (isLineEnding ? Array(String(Self.lineEnd).utf8) : []) + [byte == 0x09 ? 0x20 : byte]
    default: return []
    }
  }

  /// The text that a line stands for.
  static func text(of line: String) -> String { line.replacing(String(lineEnd), with: "\n") }
}
