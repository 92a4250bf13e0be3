/// Swift source with comments and the text of string literals blanked out, line breaks kept, so that braces and words
/// that remain are code.
struct CodeScanner {
  private let source: [UInt8]
  private var position = 0
  private var code: [UInt8] = []

  static func code(of text: String) -> [UInt8] {
    var scanner = CodeScanner(source: Array(text.utf8))
    scanner.scanCode(untilParenthesis: false)
    return scanner.code
  }

  private init(source: [UInt8]) { self.source = source }

  private func starts(with text: StaticString) -> Bool {
    source[position...].starts(with: UnsafeBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount))
  }

  private mutating func blank(_ count: Int) {
    for byte in source[position..<min(position + count, source.count)] {
      code.append(byte == UInt8(ascii: "\n") ? byte : UInt8(ascii: " "))
    }
    position = min(position + count, source.count)
  }

  /// To the end, or behind the parenthesis that ends an interpolation.
  private mutating func scanCode(untilParenthesis: Bool) {
    var depth = 0
    while position < source.count {
      if starts(with: "//") {
        while position < source.count, source[position] != UInt8(ascii: "\n") { blank(1) }
      } else if starts(with: "/*") {
        scanBlockComment()
      } else if let hashCount = literalHashCount() {
        scanString(hashCount: hashCount)
      } else {
        let byte = source[position]
        if byte == UInt8(ascii: "(") { depth += 1 }
        if byte == UInt8(ascii: ")") { depth -= 1 }
        code.append(byte)
        position += 1
        if untilParenthesis, depth < 0 { return }
      }
    }
  }

  private mutating func scanBlockComment() {
    var depth = 0
    repeat {
      if starts(with: "/*") {
        depth += 1
        blank(2)
      } else if starts(with: "*/") {
        depth -= 1
        blank(2)
      } else {
        blank(1)
      }
    } while depth > 0 && position < source.count
  }

  /// How many `#` stand before the quote that opens a string literal here; nil when none opens.
  private func literalHashCount() -> Int? {
    let hashes = source[position...].prefix { $0 == UInt8(ascii: "#") }.count
    let quote = position + hashes
    return quote < source.count && source[quote] == UInt8(ascii: "\"") ? hashes : nil
  }

  private mutating func scanString(hashCount: Int) {
    let hashes = [UInt8](repeating: UInt8(ascii: "#"), count: hashCount)
    blank(hashCount)
    let quotes = [UInt8](repeating: UInt8(ascii: "\""), count: starts(with: "\"\"\"") ? 3 : 1)
    blank(quotes.count)
    let escape = [UInt8(ascii: "\\")] + hashes
    while position < source.count {
      if source[position...].starts(with: quotes + hashes) {
        blank(quotes.count + hashCount)
        return
      }
      if source[position...].starts(with: escape) {
        blank(escape.count)
        if position < source.count, source[position] == UInt8(ascii: "(") {
          blank(1)
          scanCode(untilParenthesis: true)
          // The closing parenthesis was taken over as code; its opening one was not.
          code[code.count - 1] = UInt8(ascii: " ")
        } else {
          blank(1)
        }
      } else {
        blank(1)
      }
    }
  }
}

/// A function, initializer or computed property with its body's extent.
struct MeasuredFunction: Equatable {
  let name: String
  /// 1 for the first line.
  let line: Int
  let lineCount: Int

  static func all(in text: String) -> [MeasuredFunction] {
    let code = String(decoding: CodeScanner.code(of: text), as: UTF8.self)
    let bytes = Array(code.utf8)
    var found: [MeasuredFunction] = []
    let declaration = /\b(?:func\s+([^\s(<]+)|(init)[?!]?\s*[<(]|(deinit)\b|var\s+(\w+)\s*:[^={}\n]*\{)/
    for match in code.matches(of: declaration) {
      let start = code.utf8.distance(from: code.startIndex, to: match.range.lowerBound)
      let name = match.output.1 ?? match.output.2 ?? match.output.3 ?? match.output.4 ?? ""
      guard let open = bodyStart(bytes, from: start), let close = bodyEnd(bytes, from: open) else { continue }
      let breaks = { (range: Range<Int>) in bytes[range].count { $0 == UInt8(ascii: "\n") } }
      found.append(.init(name: String(name), line: breaks(0..<start) + 1, lineCount: breaks(start..<close) + 1))
    }
    return found
  }

  /// The brace that opens the body; nil for a requirement or a call, which have none.
  private static func bodyStart(_ bytes: [UInt8], from start: Int) -> Int? {
    var depth = 0
    var lineIsBlank = false
    for index in start..<bytes.count {
      switch bytes[index] {
      case UInt8(ascii: "("): depth += 1
      case UInt8(ascii: ")"):
        depth -= 1
        if depth < 0 { return nil }
      case UInt8(ascii: "{") where depth == 0: return index
      case UInt8(ascii: "}") where depth == 0: return nil
      case UInt8(ascii: "\n") where depth == 0:
        if lineIsBlank || startsDeclaration(bytes, from: index + 1) { return nil }
        lineIsBlank = true
        continue
      default: break
      }
      if bytes[index] != UInt8(ascii: " ") { lineIsBlank = false }
    }
    return nil
  }

  private static func startsDeclaration(_ bytes: [UInt8], from start: Int) -> Bool {
    let line = bytes[start...].drop { $0 == UInt8(ascii: " ") }.prefix { $0 != UInt8(ascii: "\n") }
    let words = [
      "func ", "init", "var ", "let ", "case ", "static ", "mutating ", "associatedtype ", "public ", "package ",
      "private ", "fileprivate ", "subscript", "@", "struct ", "enum ", "extension ", "return ", "self.",
    ]
    return words.contains { line.starts(with: $0.utf8) }
  }

  private static func bodyEnd(_ bytes: [UInt8], from open: Int) -> Int? {
    var depth = 0
    for index in open..<bytes.count {
      if bytes[index] == UInt8(ascii: "{") { depth += 1 }
      if bytes[index] == UInt8(ascii: "}") {
        depth -= 1
        if depth == 0 { return index }
      }
    }
    return nil
  }
}
