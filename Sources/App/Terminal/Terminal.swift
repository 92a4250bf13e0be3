import Glibc
import Parley

/// What goes to and comes from the people at the terminal.
enum Terminal {
  static var isInputTerminal: Bool { isatty(STDIN_FILENO) == 1 }
  static var isOutputTerminal: Bool { isatty(STDOUT_FILENO) == 1 }
  static var isErrorTerminal: Bool { isatty(STDERR_FILENO) == 1 }

  /// See no-color.org.
  static var hasColor: Bool {
    guard isOutputTerminal else { return false }
    if let value = getenv("NO_COLOR"), value.pointee != 0 { return false }
    if let value = getenv("TERM"), String(cString: value) == "dumb" { return false }
    return true
  }

  static func dim(_ text: String) -> String { hasColor ? "\u{1B}[2m\(text)\u{1B}[0m" : text }
  /// Nobody shall overlook it.
  static func loud(_ text: String) -> String { hasColor ? "\u{1B}[1;31m\(text)\u{1B}[0m" : text }
  static func bold(_ text: String) -> String { hasColor ? "\u{1B}[1m\(text)\u{1B}[0m" : text }

  /// A line on standard output, out at once.
  static func line(_ text: String) { raw(text + "\n") }

  static func raw(_ text: String) {
    writeAll(Array(text.utf8), to: STDOUT_FILENO)
  }

  static func note(_ text: String) { writeAll(Array((text + "\n").utf8), to: STDERR_FILENO) }
  static func rawError(_ text: String) { writeAll(Array(text.utf8), to: STDERR_FILENO) }

  /// False when it cannot be written. Through libc's own call, so that nothing is kept back in a buffer.
  @discardableResult static func writeAll(_ bytes: [UInt8], to descriptor: Int32) -> Bool {
    var rest = bytes[...]
    while !rest.isEmpty {
      let count = rest.withUnsafeBytes { write(descriptor, $0.baseAddress!, $0.count) }
      if count < 0 {
        guard errno == EINTR || errno == EAGAIN else { return false }
        if errno == EAGAIN {
          var entry = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
          _ = poll(&entry, 1, -1)
        }
        continue
      }
      rest = rest.dropFirst(count)
    }
    return true
  }

  static var columnCount: Int {
    var size = winsize()
    guard ioctl(STDERR_FILENO, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0 else { return 80 }
    return Int(size.ws_col)
  }

  /// Asks a question; nil at the end of input.
  static func ask(_ question: String) throws(Failure) -> String? {
    rawError(question)
    return try readLine(isEchoed: true).map { String(decoding: $0, as: UTF8.self) }
  }

  /// Asks without echo. Only at a terminal.
  static func askSecret(_ question: String) throws(Failure) -> [UInt8]? {
    rawError(question)
    defer { rawError("\n") }
    return try readLine(isEchoed: false)
  }

  private static func readLine(isEchoed: Bool) throws(Failure) -> [UInt8]? {
    let before = isEchoed ? nil : silenced()
    defer { if var before { tcsetattr(STDIN_FILENO, TCSAFLUSH, &before) } }
    var line: [UInt8] = []
    while true {
      var byte: UInt8 = 0
      let count = read(STDIN_FILENO, &byte, 1)
      if Interruption.count > 0 { throw .interrupted }
      if count < 0, errno == EINTR { continue }
      guard count == 1 else { return line.isEmpty ? nil : line }
      if byte == UInt8(ascii: "\n") { return line }
      guard line.count < 4_096 else { throw Failure(.badData, "the line is longer than 4096 bytes") }
      line.append(byte)
    }
  }

  /// Turns the echo off; returns how it was. Nil when there is no terminal.
  private static func silenced() -> termios? {
    var settings = termios()
    guard tcgetattr(STDIN_FILENO, &settings) == 0 else { return nil }
    let before = settings
    settings.c_lflag &= ~tcflag_t(ECHO)
    tcsetattr(STDIN_FILENO, TCSAFLUSH, &settings)
    return before
  }

  /// All of a descriptor, refused beyond `byteCountMax`.
  static func readAll(_ descriptor: Int32, byteCountMax: Int, what: String) throws(Failure) -> [UInt8] {
    var content: [UInt8] = []
    var chunk = [UInt8](repeating: 0, count: 65_536)
    while true {
      let count = read(descriptor, &chunk, chunk.count)
      if Interruption.count > 0 { throw .interrupted }
      if count < 0, errno == EINTR { continue }
      guard count >= 0 else { throw .system(.noInput, what) }
      if count == 0 { return content }
      content += chunk[..<count]
      guard content.count <= byteCountMax else {
        throw Failure(.badData, "\(what) is longer than \(byteCountMax) bytes")
      }
    }
  }
}
