extension String {
  /// For people's eyes on one line: control characters, separators and characters that hide or reorder text are shown
  /// as `\u{…}`, so no text from the network can move a cursor, ring, forge a line or turn its neighbours around.
  /// Zero-width joiners stay inside emoji and scripts that need them.
  public var escapedLine: String { escaped(keepingLineBreaks: false) }

  /// Like `escapedLine`, but line feeds stay.
  public var escapedText: String { escaped(keepingLineBreaks: true) }

  private func escaped(keepingLineBreaks: Bool) -> String {
    if utf8.allSatisfy({ $0 >= 0x20 && $0 < 0x7F }) { return self }
    var result = ""
    var previous: Unicode.Scalar?
    for scalar in unicodeScalars {
      if scalar == "\n", keepingLineBreaks {
        result.unicodeScalars.append(scalar)
      } else if scalar.isControl || (scalar.isTreacherous && !scalar.joins(after: previous)) {
        result += "\\u{\(String(scalar.value, radix: 16))}"
      } else {
        result.unicodeScalars.append(scalar)
      }
      previous = scalar
    }
    return result
  }

  /// Columns on a terminal, for text without control characters.
  public var columnCount: Int { unicodeScalars.reduce(0) { $0 + $1.columnCount } }
}

extension Unicode.Scalar {
  /// Whether this is a zero-width joiner or non-joiner, or an emoji tag, right after something it can join.
  fileprivate func joins(after previous: Unicode.Scalar?) -> Bool {
    guard let previous, !previous.isControl, !previous.properties.isWhitespace else { return false }
    return (value == 0x200D || value == 0x200C || (0xE0020...0xE007F).contains(value)) && previous.value > 0x7F
      && previous != self
  }
}
