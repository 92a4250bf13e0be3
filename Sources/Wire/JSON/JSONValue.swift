import CJansson
import ParleyVocabulary

/// A JSON value as RFC 8259 has it. Objects keep the order of their members, so that what is encoded reads as the
/// schema writes it.
package indirect enum JSONValue: Equatable, Sendable {
  case null
  case bool(Bool)
  case integer(Int64)
  case number(Double)
  case string(String)
  case array([JSONValue])
  case object([JSONMember])

  /// Refuses duplicate members, invalid UTF-8, nesting above `Limit.jsonDepthMax` and anything after the value.
  package init(decoding bytes: some Collection<UInt8>) throws(WireError) {
    var error = json_error_t()
    let flags = Int(JSON_REJECT_DUPLICATES) | Int(JSON_ALLOW_NUL) | Int(JSON_DECODE_ANY)
    let contiguous = ContiguousArray(bytes)
    let root = contiguous.withUnsafeBytes { buffer in
      json_loadb(buffer.baseAddress.map { $0.assumingMemoryBound(to: CChar.self) }, buffer.count, flags, &error)
    }
    guard let root else { throw .malformed(field: "json", reason: Self.text(of: error)) }
    defer { json_decref(root) }
    self = try Self.convert(root, depth: 0)
  }

  private static func text(of error: json_error_t) -> String {
    var copy = error
    return withUnsafeBytes(of: &copy.text) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }.escapedLine
  }

  private static func convert(_ json: UnsafeMutablePointer<json_t>, depth: Int) throws(WireError) -> JSONValue {
    guard depth <= Limit.jsonDepthMax else {
      throw .tooMany(field: "json depth", count: UInt64(depth), countMax: Limit.jsonDepthMax)
    }
    switch json.pointee.type {
    case JSON_OBJECT:
      var members: [JSONMember] = []
      var cursor = json_object_iter(json)
      while let at = cursor {
        let name = String(cString: json_object_iter_key(at))
        members.append(JSONMember(name, try convert(json_object_iter_value(at), depth: depth + 1)))
        cursor = json_object_iter_next(json, at)
      }
      return .object(members)
    case JSON_ARRAY:
      var values: [JSONValue] = []
      for index in 0..<json_array_size(json) {
        values.append(try convert(json_array_get(json, index), depth: depth + 1))
      }
      return .array(values)
    case JSON_STRING:
      let buffer = UnsafeBufferPointer(start: json_string_value(json), count: json_string_length(json))
      return .string(String(decoding: UnsafeRawBufferPointer(buffer), as: UTF8.self))
    case JSON_INTEGER: return .integer(json_integer_value(json))
    case JSON_REAL: return .number(json_real_value(json))
    case JSON_TRUE: return .bool(true)
    case JSON_FALSE: return .bool(false)
    default: return .null
    }
  }
}

package struct JSONMember: Equatable, Sendable {
  package let name: String
  package let value: JSONValue
  package init(_ name: String, _ value: JSONValue) {
    self.name = name
    self.value = value
  }
}

extension JSONValue {
  /// How deep values are nested in this one: 0 for a text or a number.
  package var depth: Int {
    switch self {
    case .null, .bool, .integer, .number, .string: 0
    case .array(let values): 1 + (values.map(\.depth).max() ?? -1)
    case .object(let members): 1 + (members.map(\.value.depth).max() ?? -1)
    }
  }

  /// The shortest text: no spaces, everything but `"`, `\` and control characters as it is.
  package var encoded: [UInt8] {
    var out: [UInt8] = []
    encode(into: &out)
    return out
  }

  private func encode(into out: inout [UInt8]) {
    switch self {
    case .null: out += "null".utf8
    case .bool(let value): out += (value ? "true" : "false").utf8
    case .integer(let value): out += String(value).utf8
    case .number(let value):
      precondition(value.isFinite, "JSON has no number for infinity")
      out += "\(value)".utf8
    case .string(let text): Self.encode(text, into: &out)
    case .array(let values):
      out.append(UInt8(ascii: "["))
      for (index, value) in values.enumerated() {
        if index > 0 { out.append(UInt8(ascii: ",")) }
        value.encode(into: &out)
      }
      out.append(UInt8(ascii: "]"))
    case .object(let members):
      out.append(UInt8(ascii: "{"))
      for (index, member) in members.enumerated() {
        if index > 0 { out.append(UInt8(ascii: ",")) }
        Self.encode(member.name, into: &out)
        out.append(UInt8(ascii: ":"))
        member.value.encode(into: &out)
      }
      out.append(UInt8(ascii: "}"))
    }
  }

  /// Whether valid UTF-8 holds a character that `encoded` writes with an escape.
  static func needsEscapes(_ text: UnsafeBufferPointer<UInt8>) -> Bool {
    var previous: UInt8 = 0
    for byte in text {
      if needsEscape(byte, after: previous) { return true }
      previous = byte
    }
    return false
  }

  @inline(__always) static func needsEscape(_ byte: UInt8, after previous: UInt8) -> Bool {
    // U+0080 to U+009F are C2 80 to C2 9F.
    byte < 0x20 || byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\") || byte == 0x7F
      || previous == 0xC2 && byte < 0xA0
  }

  /// RFC 8259 section 7. DEL and the C1 controls are escaped too: no interface prints one by accident.
  private static func encode(_ text: String, into out: inout [UInt8]) {
    out.append(UInt8(ascii: "\""))
    let isPlain = text.utf8.withContiguousStorageIfAvailable { bytes in
      if needsEscapes(bytes) { return false }
      out.append(contentsOf: bytes)
      return true
    }
    if isPlain == true {
      out.append(UInt8(ascii: "\""))
      return
    }
    for scalar in text.unicodeScalars {
      switch scalar {
      case "\"": out += "\\\"".utf8
      case "\\": out += "\\\\".utf8
      case "\n": out += "\\n".utf8
      case "\r": out += "\\r".utf8
      case "\t": out += "\\t".utf8
      default:
        if scalar.isControl {
          let hex = String(scalar.value, radix: 16)
          out += ("\\u" + String(repeating: "0", count: 4 - hex.count) + hex).utf8
        } else {
          out += UTF8.encode(scalar)!
        }
      }
    }
    out.append(UInt8(ascii: "\""))
  }
}

extension [JSONMember] {
  package subscript(_ name: String) -> JSONValue? { first { $0.name == name }?.value }

  /// The text of a member; an error when it is missing or of another type.
  package func string(_ name: String) throws(WireError) -> String {
    guard let text = try optionalString(name) else { throw .malformed(field: name, reason: "missing") }
    return text
  }

  package func optionalString(_ name: String) throws(WireError) -> String? {
    switch self[name] {
    case nil: return nil
    case .string(let text): return text
    default: throw .malformed(field: name, reason: "not a string")
    }
  }

  /// Of so many bytes of UTF-8.
  func string(_ name: String, byteCounts: ClosedRange<Int>) throws(WireError) -> String {
    let text = try string(name)
    guard text.utf8.count <= byteCounts.upperBound else {
      throw .tooLong(field: name, byteCount: UInt64(text.utf8.count), byteCountMax: byteCounts.upperBound)
    }
    guard text.utf8.count >= byteCounts.lowerBound else { throw .malformed(field: name, reason: "empty") }
    return text
  }

  func optionalString(_ name: String, byteCountMax: Int) throws(WireError) -> String? {
    self[name] == nil ? nil : try string(name, byteCounts: 0...byteCountMax)
  }

  /// A number, whole or not.
  func number(_ name: String, in range: ClosedRange<Double>) throws(WireError) -> Double {
    let value: Double
    switch self[name] {
    case nil: throw .malformed(field: name, reason: "missing")
    case .integer(let whole): value = Double(whole)
    case .number(let number): value = number
    default: throw .malformed(field: name, reason: "not a number")
    }
    guard range.contains(value) else { throw .malformed(field: name, reason: "out of range") }
    return value
  }

  package func object(_ name: String) throws(WireError) -> [JSONMember] {
    guard case .object(let members) = self[name] else {
      throw .malformed(field: name, reason: self[name] == nil ? "missing" : "not an object")
    }
    return members
  }

  /// A whole number from 0 to 2⁶² − 1; nil when missing.
  package func optionalCounter(_ name: String) throws(WireError) -> UInt64? {
    switch self[name] {
    case nil: return nil
    case .integer(let value) where value >= 0 && UInt64(value) <= Limit.counterMax: return UInt64(value)
    case .integer: throw .malformed(field: name, reason: "out of range")
    default: throw .malformed(field: name, reason: "not a whole number")
    }
  }

  /// `true` or `false` written as a string, as the schema has it.
  package func booleanText(_ name: String) throws(WireError) -> Bool {
    switch try string(name) {
    case "true": return true
    case "false": return false
    default: throw .malformed(field: name, reason: "neither \"true\" nor \"false\"")
    }
  }
}
