import Parley

/// One call as the routes see it. `segments` and `query` are percent-decoded.
struct Request: Sendable {
  let method: String
  let segments: [String]
  let query: [(name: String, value: String)]
  let body: [UInt8]
  /// The header of the same name (HTML standard, 9.2).
  let lastEventID: String?
  /// The header of the same name.
  let range: String?
  /// The body, when it is a file.
  let upload: Upload?

  /// `path` as it came, escapes kept: it is split first and decoded then, so that `%2F` in a channel's name is a part
  /// of the name.
  init(
    method: String, path: String, query: [(name: String, value: String)], body: [UInt8], lastEventID: String? = nil,
    range: String? = nil, upload: Upload? = nil
  ) throws(Problem) {
    self.upload = upload
    self.method = method
    self.lastEventID = lastEventID
    self.range = range
    var segments: [String] = []
    for part in path.split(separator: "/", omittingEmptySubsequences: false).dropFirst() {
      segments.append(try Self.decoded(String(part)))
    }
    self.segments = segments
    var decodedQuery: [(name: String, value: String)] = []
    for (name, value) in query { decodedQuery.append((try Self.decoded(name), try Self.decoded(value))) }
    self.query = decodedQuery
    self.body = body
  }

  private static func decoded(_ text: String) throws(Problem) -> String {
    do { return try PercentEncoding.decoded(text) } catch { throw .badRequest(error.description) }
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
        "the body's member \"\(member.name.escapedLine)\" is not known here; known are: "
          + known.joined(separator: ", ")
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

  /// Whether it is there, be it null.
  func names(_ name: String) -> Bool { members.contains { $0.name == name } }

  func has(_ name: String) -> Bool { value(name) != nil }

  func object(_ name: String) throws(Problem) -> [JSON.Field]? {
    guard let value = value(name) else { return nil }
    guard let members = value.members else { throw .badRequest("\"\(name)\" must be an object") }
    return members
  }

  func array(_ name: String) throws(Problem) -> [JSON]? {
    guard let value = value(name) else { return nil }
    guard let values = value.array else { throw .badRequest("\"\(name)\" must be an array") }
    return values
  }

  func requiredNumber(_ name: String) throws(Problem) -> Double {
    guard let value = value(name) else { throw .badRequest("the body lacks \"\(name)\"") }
    guard let number = value.number else { throw .badRequest("\"\(name)\" must be a number") }
    return number
  }

  func bool(_ name: String) throws(Problem) -> Bool? {
    guard let value = value(name) else { return nil }
    guard let bool = value.bool else { throw .badRequest("\"\(name)\" must be true or false") }
    return bool
  }

  /// A whole number, at least 0; whether it is too large the node says.
  func whole(_ name: String) throws(Problem) -> Int? {
    guard let value = value(name) else { return nil }
    guard let number = value.integer, number >= 0 else { throw .badRequest("\"\(name)\" must be a whole number") }
    return Int(number)
  }

  /// A whole number, at least 1; whether it is too large the node says.
  func count(_ name: String) throws(Problem) -> Int? {
    guard let value = value(name) else { return nil }
    guard let number = value.integer, number > 0 else {
      throw .badRequest("\"\(name)\" must be a whole number, at least 1")
    }
    return Int(number)
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

  func strings(_ name: String) throws(Problem) -> [String]? {
    guard let value = value(name) else { return nil }
    let texts = value.array?.compactMap(\.string)
    guard let texts, texts.count == value.array?.count, !texts.isEmpty, texts.count <= Self.stringCountMax else {
      throw .badRequest("\"\(name)\" must be an array of 1 to \(Self.stringCountMax) strings")
    }
    return texts
  }

  private static let stringCountMax = 1_000

  /// A path of this machine; must be absolute, as the node's own folder is not the caller's.
  func path(_ name: String) throws(Problem) -> String? {
    guard let path = try string(name) else { return nil }
    guard path.utf8.first == UInt8(ascii: "/"), !path.utf8.contains(0) else {
      throw .badRequest("\"\(name)\" must be an absolute path")
    }
    return path
  }
}
