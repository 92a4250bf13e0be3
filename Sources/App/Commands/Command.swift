import Parley

/// One command of the table, from which parsing, help and completion come.
struct Command: Sendable {
  struct Argument: Sendable {
    enum Count: Sendable { case one, optional, many }
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

/// What a command line asks for.
enum Request: Sendable {
  case run(Command, Invocation)
  case help(Command?)
  case version
}
