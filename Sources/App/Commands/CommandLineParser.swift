import Parley

/// Reads a command line by the table.
struct CommandLineParser {
  let commands: [Command]

  func parse(_ words: [String]) throws(Failure) -> Request {
    guard let index = try commandIndex(in: words) else {
      if words.contains("--version") { return .version }
      if words.contains("--help") || words.contains("-h") { return .help(nil) }
      throw .usage("say what to do, such as: parley chat CHANNEL\nAll commands: parley --help")
    }
    if words[index] == "help" {
      guard index + 1 < words.count else { return .help(nil) }
      return .help(try command(named: words[index + 1]))
    }
    let command = try command(named: words[index])
    var invocation = Invocation(commandName: command.name)
    var positional: [String] = []
    let rest = words[..<index] + words[(index + 1)...]
    if try take(Array(rest), of: command, into: &invocation, &positional) { return .help(command) }
    try assign(positional, of: command, to: &invocation)
    return .run(command, invocation)
  }

  /// The first word that is neither an option nor the value of one that may come before the command.
  private func commandIndex(in words: [String]) throws(Failure) -> Int? {
    var index = 0
    while index < words.count {
      let word = words[index]
      if word == "--home" { index += 1 } else if !word.hasPrefix("-") { return index }
      index += 1
    }
    return nil
  }

  private func command(named name: String) throws(Failure) -> Command {
    if let command = commands.first(where: { $0.name == name }) { return command }
    let near = commands.map { (name: $0.name, distance: Self.distance($0.name, name)) }
      .filter { $0.distance <= 2 }.min { $0.distance < $1.distance }
    let hint = near.map { "did you mean parley \($0.name)?" } ?? "all commands: parley --help"
    throw .usage("there is no command \(name.escapedLine); \(hint)")
  }

  /// True when help is asked for.
  private func take(
    _ words: [String], of command: Command, into invocation: inout Invocation, _ positional: inout [String]
  ) throws(Failure) -> Bool {
    let known = command.options + Command.commonOptions
    var index = 0
    while index < words.count {
      let word = words[index]
      index += 1
      if word == "--" {
        positional += words[index...]
        return false
      }
      guard word.hasPrefix("-"), word != "-" else {
        positional.append(word)
        continue
      }
      let parts = word.hasPrefix("--") ? word.split(separator: "=", maxSplits: 1).map(String.init) : [word]
      guard let option = known.first(where: { $0.name == parts[0] || $0.short == parts[0] }) else {
        throw .usage("parley \(command.name) has no option \(parts[0].escapedLine): see parley \(command.name) --help")
      }
      if option.name == "--help" { return true }
      guard option.isRepeatable || !invocation.has(option.name) else { throw .usage("\(option.name) is given twice") }
      if option.value == nil {
        guard parts.count == 1 else { throw .usage("\(option.name) takes no value") }
        invocation.options[option.name] = []
        continue
      }
      let attached = parts.count == 2 ? parts[1] : word.hasPrefix("--") && word.hasSuffix("=") ? "" : nil
      guard let value = attached ?? (index < words.count ? words[index] : nil) else {
        throw .usage("\(option.name) needs a value: \(option.name) \(option.value!)")
      }
      if attached == nil { index += 1 }
      invocation.options[option.name, default: []].append(value)
    }
    return false
  }

  private func assign(
    _ positional: [String], of command: Command, to invocation: inout Invocation
  ) throws(Failure) {
    var rest = positional[...]
    for argument in command.arguments {
      switch argument.count {
      case .one:
        guard let word = rest.popFirst() else { throw missing(argument, of: command) }
        invocation.arguments[argument.name] = [word]
      case .optional:
        if let word = rest.popFirst() { invocation.arguments[argument.name] = [word] }
      case .many:
        guard !rest.isEmpty else { throw missing(argument, of: command) }
        invocation.arguments[argument.name] = Array(rest)
        rest = []
      case .any:
        invocation.arguments[argument.name] = Array(rest)
        rest = []
      }
    }
    if let extra = rest.first {
      throw .usage("\(extra.escapedLine) is one too many\nUsage: \(Help.usage(of: command))")
    }
  }

  private func missing(_ argument: Command.Argument, of command: Command) -> Failure {
    .usage("\(argument.name) is missing\nUsage: \(Help.usage(of: command))")
  }

  /// Levenshtein's distance.
  static func distance(_ a: String, _ b: String) -> Int {
    let (a, b) = (Array(a.prefix(64)), Array(b.prefix(64)))
    var row = Array(0...b.count)
    for i in 0..<a.count {
      var diagonal = row[0]
      row[0] = i + 1
      for j in 0..<b.count {
        let substituted = diagonal + (a[i] == b[j] ? 0 : 1)
        diagonal = row[j + 1]
        row[j + 1] = min(substituted, row[j] + 1, row[j + 1] + 1)
      }
    }
    return row[b.count]
  }
}
