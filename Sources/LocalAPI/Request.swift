import Parley

/// One call as the routes see it. `segments` and `query` are percent-decoded.
struct Request: Sendable {
  let method: String
  let segments: [String]
  let query: [(name: String, value: String)]
  let body: [UInt8]

  /// `path` as it came, escapes kept: it is split first and decoded then, so that `%2F` in a channel's name is a part of
  /// the name.
  init(method: String, path: String, query: [(name: String, value: String)], body: [UInt8]) throws(Problem) {
    self.method = method
    var segments: [String] = []
    for part in path.split(separator: "/", omittingEmptySubsequences: false).dropFirst() {
      segments.append(try Self.decoded(part))
    }
    self.segments = segments
    var decodedQuery: [(name: String, value: String)] = []
    for (name, value) in query { decodedQuery.append((try Self.decoded(name), try Self.decoded(value))) }
    self.query = decodedQuery
    self.body = body
  }

  /// Percent-decoding (RFC 3986 section 2.1) to UTF-8 without NUL.
  static func decoded(_ text: some StringProtocol) throws(Problem) -> String {
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
        throw .badRequest("the address holds a % that is not followed by two hexadecimal digits")
      }
      bytes.append(high << 4 | low)
      index += 3
    }
    guard let decoded = String(validating: bytes, as: UTF8.self), !bytes.contains(0) else {
      throw .badRequest("the address is not UTF-8 once percent-decoded, or holds a NUL")
    }
    return decoded
  }
}

package enum PercentEncoding {
  /// Percent-encoding of one part of a path: everything but RFC 3986's unreserved characters.
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
}

/// The members of a request's JSON object, taken out by name and type.
struct Fields {
  private let members: [JSON.Field]

  /// Refuses members not in `known`, so that a misspelt option is not silently ignored.
  init(_ request: Request, known: [String]) throws(Problem) {
    let value: JSON
    do {
      value = try JSON(parsing: request.body)
    } catch {
      throw .badRequest("the body is not acceptable JSON: \(error)")
    }
    guard let members = value.members else { throw .badRequest("the body must be a JSON object") }
    for member in members where !known.contains(member.name) {
      throw .badRequest(
        "the body's member \"\(member.name.escapedLine)\" is not known here; known are: \(known.joined(separator: ", "))"
      )
    }
    self.members = members
  }

  private func value(_ name: String) -> JSON? {
    let value = members.first { $0.name == name }?.value
    return value == .null ? nil : value
  }

  func string(_ name: String) throws(Problem) -> String? {
    guard let value = value(name) else { return nil }
    guard let text = value.string else { throw .badRequest("\"\(name)\" must be a string") }
    return text
  }

  func bool(_ name: String) throws(Problem) -> Bool? {
    guard let value = value(name) else { return nil }
    guard let bool = value.bool else { throw .badRequest("\"\(name)\" must be true or false") }
    return bool
  }

  func seconds(_ name: String, max: Double) throws(Problem) -> Double? {
    guard let value = value(name) else { return nil }
    guard let number = value.number, number >= 0, number <= max else {
      throw .badRequest("\"\(name)\" must be a number of seconds from 0 to \(Int(max))")
    }
    return number
  }

  func required(_ name: String) throws(Problem) -> String {
    guard let text = try string(name) else { throw .badRequest("the body lacks \"\(name)\"") }
    return text
  }

  /// A path of this machine; must be absolute, as the node's own folder is not the caller's.
  func path(_ name: String) throws(Problem) -> String? {
    guard let path = try string(name) else { return nil }
    guard path.utf8.first == UInt8(ascii: "/"), !path.utf8.contains(0) else {
      throw .badRequest("\"\(name)\" must be an absolute path")
    }
    return path
  }
}
