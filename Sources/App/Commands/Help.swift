import Parley

/// The help texts, from the table.
enum Help {
  static func usage(of command: Command) -> String { usageWords(of: command).joined(separator: " ") }

  private static func usageWords(of command: Command) -> [String] {
    var words = ["parley", command.name]
    for argument in command.arguments {
      switch argument.count {
      case .one: words.append(argument.name)
      case .optional: words.append("[\(argument.name)]")
      case .many: words.append("\(argument.name)…")
      case .any: words.append("[\(argument.name)…]")
      }
    }
    for option in command.options {
      let value = option.value.map { " \($0)" } ?? ""
      words.append("[\(option.short ?? option.name)\(value)]\(option.isRepeatable ? "…" : "")")
    }
    return words
  }

  /// Of at most 100 columns, continued under the first word after the command.
  private static func usageLines(of command: Command) -> String {
    var line = "Usage:"
    var lines = ""
    for word in usageWords(of: command) {
      if line.count + word.count >= 100 {
        lines += line + "\n"
        line = String(repeating: " ", count: 13)
      }
      line += " " + word
    }
    return lines + line
  }

  static func text(of command: Command) -> String {
    var text = "\(command.summary.capitalizedStart).\n\n\(usageLines(of: command))\n"
    if !command.details.isEmpty { text += "\n\(command.details)\n" }
    text += "\nOptions:\n" + list(command.options + Command.commonOptions)
    let width = command.examples.map(\.line.count).max() ?? 0
    text += "\nExamples:\n"
    for example in command.examples { text += "  \(padded(example.line, to: width))   \(example.meaning)\n" }
    return text
  }

  static func overview(_ sections: [(title: String, commands: [Command])]) -> String {
    var text = """
      Parley: talk, raise hands and share files with everybody on your network. No server, no account.

      Usage: parley COMMAND …

      Start here:
        parley chat team            talk in the channel "team"; starts a node if none runs

      """
    let width = sections.flatMap(\.commands).map { signature(of: $0).count }.max() ?? 0
    for section in sections {
      text += "\n\(section.title):\n"
      for command in section.commands { text += "  \(padded(signature(of: command), to: width))  \(command.summary)\n" }
    }
    text += "\nOptions of every command:\n" + list(Command.commonOptions)
    text += "\nMore about a command, with examples: parley COMMAND --help\n"
    return text
  }

  private static func signature(of command: Command) -> String {
    let arguments = command.arguments.map { argument in
      switch argument.count {
      case .one: argument.name
      case .optional: "[\(argument.name)]"
      case .many: "\(argument.name)…"
      case .any: "[\(argument.name)…]"
      }
    }
    return ([command.name] + arguments).joined(separator: " ")
  }

  private static func list(_ options: [Command.Option]) -> String {
    let names = options.map { option in
      let name = option.short.map { "\($0), \(option.name)" } ?? option.name
      return option.value.map { "\(name) \($0)" } ?? name
    }
    let width = names.map(\.count).max() ?? 0
    return zip(names, options).map { "  \(padded($0, to: width))  \($1.help)\n" }.joined()
  }

  /// Of four digits at least.
  static func hexadecimal(_ value: UInt32) -> String {
    let digits = String(value, radix: 16, uppercase: true)
    return String(repeating: "0", count: max(0, 4 - digits.count)) + digits
  }

  static func padded(_ text: String, to width: Int) -> String {
    text + String(repeating: " ", count: max(0, width - text.columnCount))
  }
}

extension String {
  fileprivate var capitalizedStart: String { prefix(1).uppercased() + dropFirst() }
}
