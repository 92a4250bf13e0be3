import Glibc
import Parley
import ParleyLocalAPI

/// What the Tab key offers in a chat. No I/O but a look at folders: who is there and what was shared comes from
/// outside.
enum Completions {
  /// The beginning of the word that is to be completed, and the words it may become.
  struct Offer: Equatable {
    let begun: String
    let words: [String]
  }

  /// `typed`: the line up to the cursor. `names`: of who is there; `media`: IDs and file names.
  static func offer(_ typed: String, names: () -> [String], media: () -> [String]) -> Offer {
    guard typed.hasPrefix("/") else {
      let begun = String(typed[(typed.lastIndex(of: " ").map { typed.index(after: $0) } ?? typed.startIndex)...])
      if begun.isEmpty { return Offer(begun: "", words: []) }
      return Offer(begun: begun, words: names().flatMap { [$0, "@" + $0] })
    }
    guard let space = typed.firstIndex(of: " ") else {
      return Offer(begun: typed, words: ChatCommand.entries.map(\.name))
    }
    let argument = String(typed[typed.index(after: space)...])
    switch typed[..<space] {
    case "/tell", "/verify", "/block", "/unblock":
      return Offer(begun: argument, words: names().map { $0.contains(" ") ? "\"\($0)\"" : $0 })
    case "/download": return Offer(begun: argument, words: media())
    case "/share", "/token": return Offer(begun: argument, words: paths(argument))
    case "/hand": return Offer(begun: argument, words: ["up", "down"])
    default: return Offer(begun: argument, words: [])
    }
  }

  /// Files and folders that go on from `begun`; folders end with a slash. Hidden ones only when asked for.
  static func paths(_ begun: String) -> [String] {
    let slash = begun.lastIndex(of: "/")
    let shown = slash.map { String(begun[...$0]) } ?? ""
    let hides = !begun[(slash.map { begun.index(after: $0) } ?? begun.startIndex)...].hasPrefix(".")
    var folder = shown.isEmpty ? "." : shown
    if folder.hasPrefix("~/"), let home = getenv("HOME") { folder = String(cString: home) + folder.dropFirst(1) }
    guard let listing = opendir(folder) else { return [] }
    defer { closedir(listing) }
    var paths: [String] = []
    while let entry = readdir(listing), paths.count < 1_000 {
      let name = withUnsafePointer(to: &entry.pointee.d_name) {
        $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(validatingCString: $0) }
      }
      guard let name, name != ".", name != "..", !(hides && name.hasPrefix(".")), name == name.escapedLine else {
        continue
      }
      var facts = stat()
      let isFolder = stat(folder + "/" + name, &facts) == 0 && facts.st_mode & S_IFMT == S_IFDIR
      paths.append(shown + name + (isFolder ? "/" : ""))
    }
    return paths.sorted()
  }
}

/// Whether a text speaks of somebody.
enum Mention {
  /// The name stands in it as a word, with or without an @; case does not count. Of a name with letters beyond ASCII,
  /// whose scripts may not part words, any place will do.
  static func isMade(of name: String, in text: String) -> Bool {
    let (name, text) = (name.lowercased(), text.lowercased())
    guard !name.isEmpty else { return false }
    let isPlain = name.utf8.allSatisfy { $0 < 0x80 }
    for range in text.ranges(of: name) {
      if !isPlain { return true }
      let before = range.lowerBound == text.startIndex ? nil : text[text.index(before: range.lowerBound)]
      let after = range.upperBound == text.endIndex ? nil : text[range.upperBound]
      let isWord = [before, after].allSatisfy { $0.map { !$0.isLetter && !$0.isNumber } ?? true }
      if isWord { return true }
    }
    return false
  }
}
