import Parley

/// One command of the table, from which parsing, help and completion come.
struct Command: Sendable {
  struct Argument: Sendable {
    enum Count: Sendable { case one, optional, many, any }
    let name: String
    let count: Count
    init(_ name: String, _ count: Count = .one) {
      self.name = name
      self.count = count
    }
  }

  struct Option: Sendable {
    /// With its dashes: `--limit`.
    let name: String
    var short: String?
    /// What stands for the value in the help; nil for a switch.
    var value: String?
    var isRepeatable = false
    let help: String
  }

  struct Example: Sendable {
    let line: String
    let meaning: String
    init(_ line: String, _ meaning: String) {
      self.line = line
      self.meaning = meaning
    }
  }

  let name: String
  var arguments: [Argument] = []
  var options: [Option] = []
  /// One line for the overview.
  let summary: String
  /// Further lines for the command's own help.
  var details: String = ""
  let examples: [Example]
  let run: @Sendable (Invocation) async throws -> Void

  static let commonOptions = [
    Option(name: "--home", value: "DIR", help: "the node's home; else PARLEY_HOME, else XDG_DATA_HOME/parley"),
    Option(name: "--json", help: "machine-readable: one JSON object a line"),
    Option(name: "--help", short: "-h", help: "show this help"),
  ]
}

/// A command with what was given to it.
struct Invocation: Sendable {
  var commandName = ""
  var arguments: [String: [String]] = [:]
  var options: [String: [String]] = [:]

  subscript(_ argument: String) -> String { arguments[argument]?.first ?? "" }
  func all(_ argument: String) -> [String] { arguments[argument] ?? [] }
  func has(_ option: String) -> Bool { options[option] != nil }
  func value(_ option: String) -> String? { options[option]?.last }
  func values(_ option: String) -> [String] { options[option] ?? [] }
  var isJSON: Bool { has("--json") }

  func number<Number: FixedWidthInteger>(_ option: String, in range: ClosedRange<Number>) throws(Failure) -> Number? {
    guard let text = value(option) else { return nil }
    guard let number = Number(text), range.contains(number) else {
      throw .usage(
        "\(option) must be a number from \(range.lowerBound) to \(range.upperBound), not \(text.escapedLine)")
    }
    return number
  }
}

extension Invocation {
  /// A number of bytes: `5M` and `5MB` are 5,000,000, `5Mi` and `5MiB` are 5,242,880.
  func byteCount(_ option: String, in range: ClosedRange<Int>) throws(Failure) -> Int? {
    guard let text = value(option) else { return nil }
    guard let count = Self.byteCount(text), range.contains(count) else {
      throw .usage(
        "\(option) must be \(range.lowerBound) to \(range.upperBound) bytes, such as 500k, 5M or 2Gi, not "
          + text.escapedLine)
    }
    return count
  }

  static func byteCount(_ text: String) -> Int? {
    let digits = text.prefix { $0.isASCII && $0.isNumber }
    guard !digits.isEmpty, let number = Int(digits) else { return nil }
    var unit = text.dropFirst(digits.count).lowercased()
    if unit.hasSuffix("b") { unit.removeLast() }
    let base = unit.hasSuffix("i") ? 1_024 : 1_000
    if unit.hasSuffix("i") { unit.removeLast() }
    guard let power = ["", "k", "m", "g", "t"].firstIndex(of: unit), power > 0 || base == 1_000 else { return nil }
    var count = number
    for _ in 0..<power {
      let (product, overflow) = count.multipliedReportingOverflow(by: base)
      if overflow { return nil }
      count = product
    }
    return count
  }
}

/// What a command line asks for.
enum Request: Sendable {
  case run(Command, Invocation)
  case help(Command?)
  case version
}
