import Glibc
import Parley

/// What lets a browser in, and at which port: kept in the home, so that an open page outlives the node's restarts.
struct PageSecret: Sendable, Equatable {
  static let name = "page"

  /// Zero: none yet.
  var port: UInt16
  /// 64 hexadecimal digits. The first half is in the address of everything that needs permission, the second is the
  /// cookie's value. Browsers send a cookie to every port of a host; the address keeps it from other servers there.
  let token: String

  var base: String { "/" + token.prefix(32) }
  var cookie: String { String(token.suffix(32)) }

  /// Of last time, or a new one that is kept if the home can be written.
  init(home: String) {
    let path = "\(home)/\(Self.name)"
    if let text = Self.read(path), let secret = PageSecret(text: text) {
      self = secret
      return
    }
    // Swift's own generator is getrandom(2) on Linux.
    var random = SystemRandomNumberGenerator()
    let digits = Array("0123456789abcdef".unicodeScalars)
    var token = String.UnicodeScalarView()
    for _ in 0..<64 { token.append(digits[Int(random.next() & 15 as UInt64)]) }
    port = 0
    self.token = String(token)
  }

  init?(text: String) {
    let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
    guard lines.count == 3, let port = UInt16(lines[0]), lines[1].utf8.count == 64,
      lines[1].utf8.allSatisfy({ $0.hexDigit != nil })
    else { return nil }
    self.port = port
    token = String(lines[1])
  }

  /// Readable by this user alone, whole or not at all. A home that cannot be written gets another secret next time.
  func keep(inHome home: String) {
    let path = "\(home)/\(Self.name)"
    let new = path + ".new"
    unlink(new)
    let descriptor = open(new, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { return }
    let text = Array("\(port)\n\(token)\n".utf8)
    let isWritten = write(descriptor, text, text.count) == text.count
    close(descriptor)
    if !isWritten || rename(new, path) != 0 { unlink(new) }
  }

  private static func read(_ path: String) -> String? {
    let descriptor = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC)
    guard descriptor >= 0 else { return nil }
    defer { close(descriptor) }
    var info = stat()
    guard fstat(descriptor, &info) == 0, info.st_mode & S_IFMT == S_IFREG, info.st_uid == geteuid(),
      info.st_mode & 0o077 == 0
    else { return nil }
    var bytes = [UInt8](repeating: 0, count: 256)
    let count = Glibc.read(descriptor, &bytes, bytes.count)
    return count < 0 ? nil : String(validating: bytes.prefix(count), as: UTF8.self)
  }

  /// Takes as long whatever differs, so that time tells nothing of a secret.
  static func isSame(_ a: String, _ b: String) -> Bool {
    guard a.utf8.count == b.utf8.count else { return false }
    return zip(a.utf8, b.utf8).reduce(0 as UInt8) { $0 | ($1.0 ^ $1.1) } == 0
  }
}
