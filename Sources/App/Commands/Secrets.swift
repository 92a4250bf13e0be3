import Glibc
import Parley

/// Secrets that are given to a command: asked for without echo, or read from the first line of a file. Never from
/// arguments or environment, which others can see.
enum Secrets {
  /// The passphrase with which a home is used; nil when it has none and none is given.
  static func homePassphrase(_ home: String, _ invocation: Invocation) throws -> [UInt8]? {
    if let path = invocation.value("--passphrase-file") { return try read(path) }
    guard try HomePassphrase.isSet(home: home) else { return nil }
    return try ask("Passphrase of \(home.escapedLine): ", elseOption: "--passphrase-file F")
  }

  /// From a file named by an option, or asked for.
  static func given(_ option: String, _ invocation: Invocation, question: String) throws(Failure) -> [UInt8] {
    if let path = invocation.value(option) { return try read(path) }
    return try ask(question, elseOption: "\(option) F")
  }

  /// Asked for twice, so that no slip locks anybody out.
  static func new(_ option: String, _ invocation: Invocation, question: String) throws(Failure) -> [UInt8] {
    if let path = invocation.value(option) { return try read(path) }
    let first = try ask(question, elseOption: "\(option) F")
    guard try ask("The same again: ", elseOption: "\(option) F") == first else {
      throw Failure(.badData, "the two are not the same: nothing was changed")
    }
    return first
  }

  private static func ask(_ question: String, elseOption option: String) throws(Failure) -> [UInt8] {
    guard Terminal.isInputTerminal else {
      throw .usage("a passphrase is needed, and there is no terminal to ask for it at: give it with \(option)")
    }
    guard let bytes = try Terminal.askSecret(question) else { throw .interrupted }
    return try checked(bytes, what: "the passphrase")
  }

  /// `-` is standard input; `/dev/fd/N` an open descriptor.
  static func read(_ path: String) throws(Failure) -> [UInt8] {
    let what = path == "-" ? "the passphrase on standard input" : path.escapedLine
    let descriptor = path == "-" ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { throw .system(.noInput, what) }
    defer { if descriptor != STDIN_FILENO { close(descriptor) } }
    return try checked(try Terminal.readAll(descriptor, byteCountMax: 1_026, what: what), what: what)
  }

  private static func checked(_ bytes: [UInt8], what: String) throws(Failure) -> [UInt8] {
    var bytes = bytes
    if bytes.last == UInt8(ascii: "\n") { bytes.removeLast() }
    if bytes.last == UInt8(ascii: "\r") { bytes.removeLast() }
    guard !bytes.isEmpty else { throw Failure(.badData, "\(what) is empty: nothing was changed") }
    return bytes
  }
}
