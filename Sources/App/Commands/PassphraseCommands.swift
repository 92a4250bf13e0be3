import Glibc
import Parley
import ParleyLocalAPI

enum PassphraseCommands {
  static func passphrase(_ invocation: Invocation) throws {
    let home = try Home.path(invocation)
    do {
      switch invocation["set|change|remove"] {
      case "set": try set(home, invocation)
      case "change": try change(home, invocation)
      case "remove":
        let old = try Secrets.given("--passphrase-file", invocation, question: "Passphrase of \(home.escapedLine): ")
        try HomePassphrase.remove(old, home: home)
        done("removed", "What your node keeps is plain on the disk again.", invocation)
      case let word: throw Failure.usage("say set, change or remove, not \(word.escapedLine)")
      }
    } catch let error as ParleyError { throw Failure(error) }
  }

  private static func set(_ home: String, _ invocation: Invocation) throws {
    // Before anything is asked for.
    guard try !HomePassphrase.isSet(home: home) else {
      throw ParleyError.homePassphraseMismatch(home: home, hasPassphrase: true)
    }
    let new = try Secrets.new("--passphrase-file", invocation, question: "New passphrase of \(home.escapedLine): ")
    try HomePassphrase.set(new, home: home)
    done("set", "Sealed. Nobody can open it without the passphrase, you included: keep it well.", invocation)
    for path in plainLeftovers(home) {
      Terminal.note(
        "Still plain, from a damaged message store: \(path.escapedLine). Delete it when you need it no more.")
    }
  }

  private static func change(_ home: String, _ invocation: Invocation) throws {
    let old = try Secrets.given("--passphrase-file", invocation, question: "Passphrase of \(home.escapedLine): ")
    let new = try Secrets.new("--new-passphrase-file", invocation, question: "New passphrase: ")
    try HomePassphrase.change(from: old, to: new, home: home)
    done(
      "changed", "Changed. Copies of the home from before, such as backups, still open with the old one.", invocation)
  }

  private static func done(_ what: String, _ sentence: String, _ invocation: Invocation) {
    Terminal.line(invocation.isJSON ? (["event": .string("passphrase_\(what)")] as JSON).text : sentence)
  }

  /// Files that a damaged store was kept as.
  private static func plainLeftovers(_ home: String) -> [String] {
    guard let listing = opendir(home) else { return [] }
    defer { closedir(listing) }
    var found: [String] = []
    while let entry = readdir(listing) {
      let name = withUnsafeBytes(of: &entry.pointee.d_name) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
      if name.hasPrefix("store.sqlite.damaged-") { found.append(home + "/" + name) }
    }
    return found.sorted()
  }
}
