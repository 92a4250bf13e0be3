import Parley

/// What a line written in a chat asks for.
enum ChatCommand: Equatable {
  case nothing
  case say(String)
  case hand(isUp: Bool)
  case share(path: String)
  case download(String)
  case members
  case media
  case history(count: Int)
  case search(String)
  case tell(peer: String, text: String)
  case verify(peer: String, isConfirmed: Bool)
  case block(peer: String, isBlocked: Bool)
  /// Shows or changes whose login tokens are asked for; `none` for nobody's.
  case organiser(String)
  /// Shows the own token, or logs in with the one in a file.
  case token(String)
  /// `message`: nil for the last one that it can be.
  case recall(message: String?)
  case edit(message: String?, text: String)
  case react(message: String?, emoji: String)
  case reply(message: String?, text: String)
  case ids(count: Int)
  case help
  case quit
  /// Not understood; says why.
  case wrong(String)

  struct Entry {
    let name: String
    let form: String
    let meaning: String
  }

  static let entries = [
    Entry(name: "/members", form: "/members", meaning: "who is here, and whose hand is up"),
    Entry(name: "/hand", form: "/hand [down]", meaning: "raise your hand, or take it down"),
    Entry(name: "/tell", form: "/tell PEER TEXT", meaning: "write to one person only; quote a name with spaces"),
    Entry(name: "/share", form: "/share FILE", meaning: "share a file or folder"),
    Entry(name: "/media", form: "/media", meaning: "the files shared here"),
    Entry(name: "/download", form: "/download FILE", meaning: "get one, by its name or the start of its ID"),
    Entry(name: "/history", form: "/history [N]", meaning: "the last messages again"),
    Entry(name: "/search", form: "/search WORDS", meaning: "messages and files here with all these words"),
    Entry(name: "/reply", form: "/reply [#ID] TEXT", meaning: "answer a message: the last of somebody else, or #ID"),
    Entry(name: "/react", form: "/react [#ID] EMOJI", meaning: "put a sign on it"),
    Entry(name: "/edit", form: "/edit [#ID] TEXT", meaning: "change your last message, or #ID"),
    Entry(name: "/recall", form: "/recall [#ID]", meaning: "take your last message back, or #ID"),
    Entry(name: "/ids", form: "/ids [N]", meaning: "the last messages with their IDs"),
    Entry(name: "/verify", form: "/verify PEER [confirm]", meaning: "digits to compare; confirm: they were the same"),
    Entry(name: "/block", form: "/block PEER", meaning: "see and hear nothing of somebody"),
    Entry(name: "/unblock", form: "/unblock PEER", meaning: "end that"),
    Entry(name: "/organiser", form: "/organiser [KEY|none]", meaning: "whose login tokens are asked for here"),
    Entry(name: "/token", form: "/token [FILE]", meaning: "your login token, or log in with the one in FILE"),
    Entry(name: "/help", form: "/help", meaning: "this list"),
    Entry(name: "/quit", form: "/quit", meaning: "leave the chat (Ctrl-D); you stay in the channel"),
  ]

  init(_ line: String) {
    guard line.contains(where: { !$0.isWhitespace }) else {
      self = .nothing
      return
    }
    guard line.hasPrefix("/") else {
      self = .say(line)
      return
    }
    if line.hasPrefix("//") {
      self = .say(String(line.dropFirst()))
      return
    }
    let (name, rest) = Self.firstWord(of: line)
    switch name {
    case "/members": self = .members
    case "/media": self = .media
    case "/help": self = .help
    case "/quit", "/exit": self = .quit
    case "/hand":
      switch rest {
      case "", "up": self = .hand(isUp: true)
      case "down": self = .hand(isUp: false)
      default: self = .wrong("/hand or /hand down")
      }
    case "/share": self = rest.isEmpty ? .wrong("/share FILE") : .share(path: rest)
    case "/download":
      self = rest.isEmpty ? .wrong("/download FILE: its name or the start of its ID (/media)") : .download(rest)
    case "/history":
      if let count = rest.isEmpty ? 20 : Int(rest), (1...10_000).contains(count) {
        self = .history(count: count)
      } else {
        self = .wrong("/history N, with N from 1 to 10000")
      }
    case "/organiser": self = .organiser(rest)
    case "/token": self = .token(rest)
    case "/ids":
      if let count = rest.isEmpty ? 20 : Int(rest), (1...1_000).contains(count) {
        self = .ids(count: count)
      } else {
        self = .wrong("/ids N, with N from 1 to 1000")
      }
    case "/recall", "/edit", "/react", "/reply": self = Self.deed(name, rest)
    case "/search": self = rest.isEmpty ? .wrong("/search WORDS") : .search(rest)
    case "/block", "/unblock":
      let peer = Self.firstWord(of: rest).word
      self = peer.isEmpty ? .wrong("\(name) PEER") : .block(peer: peer, isBlocked: name == "/block")
    case "/verify":
      let (peer, more) = Self.firstWord(of: rest)
      self =
        peer.isEmpty || !["", "confirm"].contains(more)
        ? .wrong("/verify PEER, or /verify PEER confirm") : .verify(peer: peer, isConfirmed: more == "confirm")
    case "/tell":
      let (peer, text) = Self.firstWord(of: rest)
      self = peer.isEmpty || text.isEmpty ? .wrong("/tell PEER TEXT") : .tell(peer: peer, text: text)
    default:
      self = .wrong("there is no \(name.escapedLine): see /help, or write // to send a text that starts with /")
    }
  }

  /// What is done to a message: one that is named by `#` and the start of its ID, or the last one.
  private static func deed(_ name: String, _ rest: String) -> ChatCommand {
    let (first, more) = firstWord(of: rest)
    let message = first.hasPrefix("#") && first.count > 1 ? String(first.dropFirst()) : nil
    let text = message == nil ? rest : more
    switch name {
    case "/recall": return text.isEmpty ? .recall(message: message) : .wrong("/recall or /recall #ID")
    case _ where text.isEmpty: return .wrong(entries.first { $0.name == name }!.form)
    case "/edit": return .edit(message: message, text: text)
    case "/react": return .react(message: message, emoji: text)
    default: return .reply(message: message, text: text)
    }
  }

  /// Up to the first space, or between double quotes; and what follows.
  static func firstWord(of text: String) -> (word: String, rest: String) {
    let text = text.drop { $0 == " " }
    if text.first == "\"", let end = text.dropFirst().firstIndex(of: "\"") {
      let word = text[text.index(after: text.startIndex)..<end]
      return (String(word), trimmed(text[text.index(after: end)...]))
    }
    let word = text.prefix { $0 != " " }
    return (String(word), trimmed(text.dropFirst(word.count)))
  }

  private static func trimmed(_ text: Substring) -> String {
    var text = text.drop { $0 == " " }
    while text.last == " " { text.removeLast() }
    return String(text)
  }
}
