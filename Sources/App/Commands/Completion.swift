import Parley
import ParleyLocalAPI

/// `parley completion`: what shells need to complete commands, options and names, from the table.
enum Completion {
  static func completion(_ invocation: Invocation) throws {
    let lists = ["--channels", "--peers", "--media"].filter { invocation.has($0) }
    if let list = lists.first {
      guard lists.count == 1, invocation["SHELL"].isEmpty else { throw Failure.usage("give one of them") }
      return try names(list, invocation)
    }
    switch invocation["SHELL"] {
    case "bash": Terminal.raw(bash(CommandTable.all))
    case "zsh": Terminal.raw(zsh(CommandTable.sections))
    case "fish": Terminal.raw(fish(CommandTable.all))
    default: throw Failure.usage("say for which shell: bash, zsh or fish")
    }
  }

  /// One a line, for the scripts. Only what can be written in one word of a shell; who wants others quotes them.
  private static func names(_ list: String, _ invocation: Invocation) throws {
    let client = try NodeClient(home: Home.path(invocation))
    let channels = (try client.call("GET", ["channels"]).array ?? []).compactMap { $0["name"]?.string }
    var names: Set<String> = []
    switch list {
    case "--channels": names = Set(channels)
    case "--peers":
      for channel in channels {
        let members = try client.call("GET", ["channels", channel, "members"]).array ?? []
        names.formUnion(members.filter { $0["self"]?.bool != true }.compactMap { $0["display_name"]?.string })
      }
    default:
      for channel in channels {
        let media = try client.call("GET", ["channels", channel, "media"]).array ?? []
        names.formUnion(media.compactMap { $0["media_id"]?.string })
      }
    }
    for name in names.sorted() where name == name.escapedLine && !name.isEmpty { Terminal.line(name) }
  }

  /// What can stand for an argument: words of the table, or what the shell must ask for.
  private enum Values {
    case words([String])
    case channels, peers, media, files, nothing
  }

  private static func values(of argument: Command.Argument) -> Values {
    switch argument.name {
    case "CHANNEL", "[CHANNEL] WORDS": .channels
    case "PEER": .peers
    case "MEDIA_ID": .media
    case "FILE", "PATH": .files
    case "COMMAND": .nothing
    case let name where name.contains("|"): .words(name.split(separator: "|").map(String.init))
    case "SHELL": .words(["bash", "zsh", "fish"])
    default: .nothing
    }
  }

  private static func isFile(_ option: Command.Option) -> Bool {
    ["F", "PATH", "DIR", "FILE"].contains(option.value ?? "")
  }

  private static func options(of command: Command) -> [Command.Option] { command.options + Command.commonOptions }

  private static func names(of option: Command.Option) -> [String] { [option.name] + (option.short.map { [$0] } ?? []) }

  // MARK: bash

  private static let bashBeginning = """
    # bash completion for parley, made by: parley completion bash
    # To use it: parley completion bash > ~/.local/share/bash-completion/completions/parley
    _parley_names() {
      local name
      while IFS= read -r name; do
        [[ $name == "$current"* ]] && COMPREPLY+=("$(printf %q "$name")")
      done < <(parley completion "$1" 2>/dev/null)
    }
    _parley_files() {
      compopt -o filenames 2>/dev/null
      COMPREPLY=($(compgen -f -- "$current"))
    }
    _parley() {
      local current=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} command= place=0 index word
      COMPREPLY=()
      for ((index = 1; index < COMP_CWORD; index++)); do
        word=${COMP_WORDS[index]}
        if [[ -z $command ]]; then
          [[ $word == --home ]] && ((index++))
          [[ $word == -* ]] || command=$word
          continue
        fi
        case $command:$word in
    """

  /// Names that others chose are never given to `compgen -W`, which would run what is in them.
  static func bash(_ commands: [Command]) -> String {
    var text = bashBeginning + "\n"
    for command in commands {
      let withValue = options(of: command).filter { $0.value != nil }.flatMap(names)
      text += "      " + withValue.map { "\(command.name):\($0)" }.joined(separator: " | ") + ") ((index++)) ;;\n"
    }
    text += """
            *:-*) ;;
            *) ((place++)) ;;
          esac
        done
        if [[ -z $command ]]; then
          COMPREPLY=($(compgen -W "\(commands.map(\.name).joined(separator: " ")) --help --version" -- "$current"))
          return
        fi
        case $command:$before in

      """
    for command in commands {
      let files = options(of: command).filter(isFile).flatMap(names)
      if !files.isEmpty {
        text +=
          "    " + files.map { "\(command.name):\($0)" }.joined(separator: " | ")
          + ") _parley_files; return ;;\n"
      }
      let others = options(of: command).filter { $0.value != nil && !isFile($0) }.flatMap(names)
      if !others.isEmpty {
        text += "    " + others.map { "\(command.name):\($0)" }.joined(separator: " | ") + ") return ;;\n"
      }
    }
    text += "  esac\n  if [[ $current == -* ]]; then\n    case $command in\n"
    for command in commands {
      let words = options(of: command).flatMap(names).joined(separator: " ")
      text += "      \(command.name)) COMPREPLY=($(compgen -W \"\(words)\" -- \"$current\")) ;;\n"
    }
    text += "    esac\n    return\n  fi\n  case $command:$place in\n"
    for command in commands {
      for (place, argument) in command.arguments.enumerated() {
        let isLast = place == command.arguments.count - 1
        let isOpen = isLast && (argument.count == .many || argument.count == .any)
        guard let action = bashAction(values(of: argument)) else { continue }
        text += "    \(command.name):\(isOpen ? "*" : "\(place)")) \(action) ;;\n"
      }
    }
    return text + "  esac\n}\ncomplete -F _parley parley\n"
  }

  private static func bashAction(_ values: Values) -> String? {
    switch values {
    case .words(let words): "COMPREPLY=($(compgen -W \"\(words.joined(separator: " "))\" -- \"$current\"))"
    case .channels: "_parley_names --channels"
    case .peers: "_parley_names --peers"
    case .media: "_parley_names --media"
    case .files: "_parley_files"
    case .nothing: nil
    }
  }

  // MARK: zsh

  static func zsh(_ sections: [(title: String, commands: [Command])]) -> String {
    var text = """
      #compdef parley
      # zsh completion for parley, made by: parley completion zsh
      # To use it: parley completion zsh > ~/.zfunc/_parley, with fpath+=~/.zfunc before compinit in ~/.zshrc
      _parley_names() {
        local -a names
        names=("${(@f)$(parley completion $1 2>/dev/null)}")
        compadd -a names
      }
      _parley() {
        local -a commands
        local state line
        _arguments -C '1: :->command' '*:: :->rest' '--help[show this help]' '--version[show the version]'
        case $state in
          command)
            commands=(

      """
    for section in sections {
      for command in section.commands { text += "        \(quoted("\(command.name):\(command.summary)"))\n" }
    }
    text += "      )\n      _describe command commands ;;\n    rest)\n      case $line[1] in\n"
    for command in sections.flatMap(\.commands) {
      var words: [String] = []
      for option in options(of: command) {
        let repeats = option.isRepeatable ? "*" : ""
        let value = option.value.map { ":\($0):\(isFile(option) ? "_files" : " ")" } ?? ""
        for name in names(of: option) { words.append(quoted("\(repeats)\(name)[\(bracketed(option.help))]\(value)")) }
      }
      for (place, argument) in command.arguments.enumerated() {
        let isOpen = argument.count == .many || argument.count == .any
        let position = isOpen ? "*" : "\(place + 1)"
        let name = argument.name.replacing(":", with: " ")
        words.append(quoted("\(position):\(name):\(zshAction(values(of: argument)))"))
      }
      text += "        \(command.name)) _arguments \(words.joined(separator: " ")) ;;\n"
    }
    return text + "      esac ;;\n  esac\n}\n_parley \"$@\"\n"
  }

  private static func zshAction(_ values: Values) -> String {
    switch values {
    case .words(let words): "(\(words.joined(separator: " ")))"
    case .channels: "_parley_names --channels"
    case .peers: "_parley_names --peers"
    case .media: "_parley_names --media"
    case .files: "_files"
    case .nothing: " "
    }
  }

  private static func bracketed(_ text: String) -> String {
    text.replacing("[", with: "(").replacing("]", with: ")").replacing(":", with: " ")
  }

  /// Between single quotes, as every shell takes them.
  private static func quoted(_ text: String) -> String { "'" + text.replacing("'", with: "'\\''") + "'" }

  // MARK: fish

  static func fish(_ commands: [Command]) -> String {
    var text = """
      # fish completion for parley, made by: parley completion fish
      # To use it: parley completion fish > ~/.config/fish/completions/parley.fish
      complete -c parley -f

      """
    let all = commands.map(\.name).joined(separator: " ")
    for command in commands {
      text +=
        "complete -c parley -n 'not __fish_seen_subcommand_from \(all)' -a \(command.name) "
        + "-d \(quoted(command.summary))\n"
      let condition = "-n '__fish_seen_subcommand_from \(command.name)'"
      for option in options(of: command) {
        let short = option.short.map { " -s \($0.dropFirst())" } ?? ""
        let value = option.value == nil ? "" : isFile(option) ? " -r -F" : " -x"
        let name = option.name.dropFirst(2)
        text += "complete -c parley \(condition) -l \(name)\(short)\(value) -d \(quoted(option.help))\n"
      }
      for argument in command.arguments {
        switch values(of: argument) {
        case .words(let words): text += "complete -c parley \(condition) -a '\(words.joined(separator: " "))'\n"
        case .channels: text += "complete -c parley \(condition) -a '(parley completion --channels 2>/dev/null)'\n"
        case .peers: text += "complete -c parley \(condition) -a '(parley completion --peers 2>/dev/null)'\n"
        case .media: text += "complete -c parley \(condition) -a '(parley completion --media 2>/dev/null)'\n"
        case .files: text += "complete -c parley \(condition) -F\n"
        case .nothing: break
        }
      }
    }
    return text
  }
}
