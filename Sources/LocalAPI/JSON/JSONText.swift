import Parley

extension JSON {
  /// The value on one line. Control characters (C0, DEL, C1) and characters that hide or reorder text are escaped, so
  /// the line can be printed at a terminal whoever wrote the texts in it.
  package var text: String { String(decoding: bytes, as: UTF8.self) }

  package var bytes: [UInt8] {
    var output: [UInt8] = []
    append(to: &output)
    return output
  }

  private func append(to output: inout [UInt8]) {
    switch self {
    case .null: output += "null".utf8
    case .bool(let value): output += (value ? "true" : "false").utf8
    case .integer(let value): output += String(value).utf8
    case .number(let value): output += (value.isFinite ? "\(value)" : "null").utf8
    case .string(let value): Self.append(value, to: &output)
    case .array(let values):
      output.append(UInt8(ascii: "["))
      for (index, value) in values.enumerated() {
        if index > 0 { output.append(UInt8(ascii: ",")) }
        value.append(to: &output)
      }
      output.append(UInt8(ascii: "]"))
    case .object(let members):
      output.append(UInt8(ascii: "{"))
      for (index, member) in members.enumerated() {
        if index > 0 { output.append(UInt8(ascii: ",")) }
        Self.append(member.name, to: &output)
        output.append(UInt8(ascii: ":"))
        member.value.append(to: &output)
      }
      output.append(UInt8(ascii: "}"))
    }
  }

  private static func append(_ text: String, to output: inout [UInt8]) {
    output.append(UInt8(ascii: "\""))
    for scalar in text.unicodeScalars {
      switch scalar {
      case "\"": output += "\\\"".utf8
      case "\\": output += "\\\\".utf8
      case "\n": output += "\\n".utf8
      case "\r": output += "\\r".utf8
      case "\t": output += "\\t".utf8
      case " "..."~": output.append(UInt8(truncatingIfNeeded: scalar.value))
      default:
        if scalar.isControl || scalar.isTreacherous {
          for unit in UTF16.encode(scalar)! { appendEscape(unit, to: &output) }
        } else {
          output += UTF8.encode(scalar)!
        }
      }
    }
    output.append(UInt8(ascii: "\""))
  }

  private static func appendEscape(_ unit: UInt16, to output: inout [UInt8]) {
    let digits = Array("0123456789abcdef".utf8)
    output += "\\u".utf8
    for shift in stride(from: UInt16(12), through: 0, by: -4) { output.append(digits[Int(unit >> shift & 15)]) }
  }
}
