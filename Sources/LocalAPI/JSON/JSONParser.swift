import Parley

/// Why a text is not JSON that is taken here, and at which byte.
package struct JSONError: Error, Equatable, Sendable, CustomStringConvertible {
  package enum Reason: Equatable, Sendable {
    case invalidUTF8, unexpectedEnd, trailingText, duplicateName(String), tooDeep(depthMax: Int), badNumber, badEscape
    case loneSurrogate, controlCharacterInString
    case unexpected(UInt8)
  }
  package let reason: Reason
  package let offset: Int

  package init(reason: Reason, offset: Int) {
    self.reason = reason
    self.offset = offset
  }

  package var description: String {
    let what =
      switch reason {
      case .invalidUTF8: "the text is not UTF-8"
      case .unexpectedEnd: "the text ends too early"
      case .trailingText: "something follows the value"
      case .duplicateName(let name): "the member \"\(name.escapedLine)\" is there twice"
      case .tooDeep(let depthMax): "values are nested more than \(depthMax) deep"
      case .badNumber: "a number is malformed or too large"
      case .badEscape: "an escape after \\ is malformed"
      case .loneSurrogate: "an escape holds half of a surrogate pair"
      case .controlCharacterInString: "a string holds a raw control character"
      case .unexpected(let byte):
        "unexpected \(Unicode.Scalar(byte).isASCII ? String(Unicode.Scalar(byte)).escapedLine : "byte")"
      }
    return "\(what) (at byte \(offset))"
  }
}

extension JSON {
  /// Reads exactly one value. Refused: invalid UTF-8, a member named twice, nesting above 16, lone surrogates, anything
  /// after the value. Whole numbers that fit are `.integer`, others `.number`; a number beyond a Double is refused.
  package init(parsing bytes: some Sequence<UInt8>) throws(JSONError) {
    var parser = JSONParser(bytes: Array(bytes))
    self = try parser.parse()
  }

  package init(parsing text: String) throws(JSONError) { try self.init(parsing: text.utf8) }
}

private struct JSONParser {
  let bytes: [UInt8]
  var offset = 0

  init(bytes: [UInt8]) { self.bytes = bytes }

  mutating func parse() throws(JSONError) -> JSON {
    // Only strings may hold bytes above 0x7F, so checking them where they stand would do; checking all of it first
    // lets the strings be decoded without looking again.
    guard String(validating: bytes, as: UTF8.self) != nil else { throw failure(.invalidUTF8) }
    let value = try value(depth: 0)
    skipSpace()
    guard offset == bytes.count else { throw failure(.trailingText) }
    return value
  }

  private func failure(_ reason: JSONError.Reason) -> JSONError { JSONError(reason: reason, offset: offset) }

  private mutating func skipSpace() {
    while offset < bytes.count {
      switch bytes[offset] {
      case 0x20, 0x09, 0x0A, 0x0D: offset += 1
      default: return
      }
    }
  }

  private func peek() throws(JSONError) -> UInt8 {
    guard offset < bytes.count else { throw failure(.unexpectedEnd) }
    return bytes[offset]
  }

  private mutating func take(_ character: Unicode.Scalar) throws(JSONError) {
    let byte = try peek()
    guard byte == UInt8(ascii: character) else { throw failure(.unexpected(byte)) }
    offset += 1
  }

  private mutating func takeIf(_ character: Unicode.Scalar) -> Bool {
    guard offset < bytes.count, bytes[offset] == UInt8(ascii: character) else { return false }
    offset += 1
    return true
  }

  private mutating func value(depth: Int) throws(JSONError) -> JSON {
    skipSpace()
    switch try peek() {
    case UInt8(ascii: "{"): return try object(depth: depth)
    case UInt8(ascii: "["): return try array(depth: depth)
    case UInt8(ascii: "\""): return .string(try string())
    case UInt8(ascii: "t"): return try word("true", .bool(true))
    case UInt8(ascii: "f"): return try word("false", .bool(false))
    case UInt8(ascii: "n"): return try word("null", .null)
    case UInt8(ascii: "-"), UInt8(ascii: "0")...UInt8(ascii: "9"): return try number()
    case let byte: throw failure(.unexpected(byte))
    }
  }

  private mutating func word(_ word: String, _ value: JSON) throws(JSONError) -> JSON {
    for scalar in word.unicodeScalars { try take(scalar) }
    return value
  }

  private mutating func object(depth: Int) throws(JSONError) -> JSON {
    guard depth < Limit.jsonDepthMax else { throw failure(.tooDeep(depthMax: Limit.jsonDepthMax)) }
    try take("{")
    var members: [JSON.Field] = []
    var names: Set<String> = []
    skipSpace()
    if takeIf("}") { return .object([]) }
    while true {
      skipSpace()
      let name = try string()
      guard names.insert(name).inserted else { throw failure(.duplicateName(name)) }
      skipSpace()
      try take(":")
      members.append(.init(name, try value(depth: depth + 1)))
      skipSpace()
      if takeIf(",") { continue }
      try take("}")
      return .object(members)
    }
  }

  private mutating func array(depth: Int) throws(JSONError) -> JSON {
    guard depth < Limit.jsonDepthMax else { throw failure(.tooDeep(depthMax: Limit.jsonDepthMax)) }
    try take("[")
    var values: [JSON] = []
    skipSpace()
    if takeIf("]") { return .array([]) }
    while true {
      values.append(try value(depth: depth + 1))
      skipSpace()
      if takeIf(",") { continue }
      try take("]")
      return .array(values)
    }
  }

  private mutating func number() throws(JSONError) -> JSON {
    let start = offset
    _ = takeIf("-")
    if !takeIf("0") { try digits() }
    var isWhole = true
    if takeIf(".") {
      isWhole = false
      try digits()
    }
    if takeIf("e") || takeIf("E") {
      isWhole = false
      if !takeIf("+") { _ = takeIf("-") }
      try digits()
    }
    if offset < bytes.count, (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(bytes[offset]) {
      throw failure(.badNumber)
    }
    let text = String(decoding: bytes[start..<offset], as: UTF8.self)
    if isWhole, let value = Int64(text) { return .integer(value) }
    guard let value = Double(text), value.isFinite else { throw failure(.badNumber) }
    return .number(value)
  }

  private mutating func digits() throws(JSONError) {
    let start = offset
    while offset < bytes.count, (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(bytes[offset]) { offset += 1 }
    guard offset > start else { throw failure(.badNumber) }
  }

  private mutating func string() throws(JSONError) -> String {
    try take("\"")
    var content: [UInt8] = []
    while true {
      let byte = try peek()
      switch byte {
      case UInt8(ascii: "\""):
        offset += 1
        return String(decoding: content, as: UTF8.self)
      case UInt8(ascii: "\\"): content += UTF8.encode(try escape())!
      case 0..<0x20: throw failure(.controlCharacterInString)
      default:
        content.append(byte)
        offset += 1
      }
    }
  }

  private mutating func escape() throws(JSONError) -> Unicode.Scalar {
    try take("\\")
    let byte = try peek()
    offset += 1
    switch byte {
    case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): return Unicode.Scalar(byte)
    case UInt8(ascii: "b"): return "\u{8}"
    case UInt8(ascii: "f"): return "\u{C}"
    case UInt8(ascii: "n"): return "\n"
    case UInt8(ascii: "r"): return "\r"
    case UInt8(ascii: "t"): return "\t"
    case UInt8(ascii: "u"):
      let first = try hexUnit()
      if let scalar = Unicode.Scalar(first) { return scalar }
      guard UTF16.isLeadSurrogate(first), takeIf("\\"), takeIf("u") else { throw failure(.loneSurrogate) }
      let second = try hexUnit()
      guard UTF16.isTrailSurrogate(second) else { throw failure(.loneSurrogate) }
      return Unicode.Scalar(0x10000 + (UInt32(first & 0x3FF) << 10 | UInt32(second & 0x3FF)))!
    default: throw failure(.badEscape)
    }
  }

  private mutating func hexUnit() throws(JSONError) -> UInt16 {
    guard offset + 4 <= bytes.count else { throw failure(.unexpectedEnd) }
    var unit: UInt16 = 0
    for byte in bytes[offset..<offset + 4] {
      guard let digit = byte.hexDigit else { throw failure(.badEscape) }
      unit = unit << 4 | UInt16(digit)
    }
    offset += 4
    return unit
  }
}

extension UInt8 {
  /// The value of an ASCII hexadecimal digit.
  var hexDigit: UInt8? {
    switch self {
    case UInt8(ascii: "0")...UInt8(ascii: "9"): self - UInt8(ascii: "0")
    case UInt8(ascii: "a")...UInt8(ascii: "f"): self - UInt8(ascii: "a") + 10
    case UInt8(ascii: "A")...UInt8(ascii: "F"): self - UInt8(ascii: "A") + 10
    default: nil
    }
  }
}
