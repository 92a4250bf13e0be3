/// `parley manual`: the man page, from the table that prints the help.
enum Manual {
  static func manual(_ invocation: Invocation) { Terminal.raw(page(CommandTable.sections)) }

  /// In the macros of man(7).
  static func page(_ sections: [(title: String, commands: [Command])]) -> String {
    var text = """
      .TH PARLEY 1 "" "parley \(App.version)" "User Commands"
      .SH NAME
      parley \\- talk, raise hands and share files with everybody on your network
      .SH SYNOPSIS
      .B parley
      .I COMMAND
      \\&...
      .SH DESCRIPTION
      Nodes on one network find each other and join channels by name. There is no server and no account.
      .PP
      .B parley chat team
      talks in the channel "team" and starts a node if none runs.

      """
    for section in sections {
      text += ".SH \(roff(section.title.uppercased()))\n"
      for command in section.commands { text += entry(command) }
    }
    text += ".SH OPTIONS OF EVERY COMMAND\n" + Command.commonOptions.map(option).joined()
    return text + """
      .SH EXIT STATUS
      0 when it was done; else as in
      .BR sysexits (3):
      64 for a wrong command line, 65 for what cannot be used, 66 for what is not there, 69 without a node, 73 for what
      cannot be made, 75 for what may work later, 77 for what is not permitted. 130 after Ctrl\\-C.
      .B parley doctor
      ends with 1 when not all is well.
      .SH ENVIRONMENT
      .TP
      .B PARLEY_HOME
      the node's home, when \\-\\-home is not given; else $XDG_DATA_HOME/parley or ~/.local/share/parley
      .TP
      .B NO_COLOR
      when set, nothing is coloured

      """
  }

  private static func entry(_ command: Command) -> String {
    var text = ".SS \(roff(Help.usage(of: command)))\n\(roff(command.summary.prefix(1).uppercased()))"
    text += "\(roff(String(command.summary.dropFirst()))).\n"
    if !command.details.isEmpty { text += ".PP\n\(roff(command.details))\n" }
    text += command.options.map(option).joined()
    if !command.examples.isEmpty { text += ".PP\nExamples:\n" }
    for example in command.examples { text += ".TP\n.B \(roff(example.line))\n\(roff(example.meaning))\n" }
    return text
  }

  private static func option(_ option: Command.Option) -> String {
    let name = option.short.map { "\($0), \(option.name)" } ?? option.name
    return ".TP\n.B \(roff(option.value.map { "\(name) \($0)" } ?? name))\n\(roff(option.help))\n"
  }

  /// As text: no line of it is a request.
  static func roff(_ text: String) -> String {
    let plain = text.replacing("\\", with: "\\e").replacing("-", with: "\\-").unicodeScalars.map { scalar in
      scalar.isASCII ? String(scalar) : "\\[u\(Help.hexadecimal(scalar.value))]"
    }
    return plain.joined().split(
      separator: "\n", omittingEmptySubsequences: false
    ).map { $0.hasPrefix(".") || $0.hasPrefix("'") ? "\\&" + $0 : $0 }.joined(separator: "\n")
  }
}
