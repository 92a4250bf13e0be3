import Glibc
import ParleyHashing
import Synchronization

/// A directory that only its owner can use, held open: files are named relative to it, so nobody can swap it for
/// another. Its files are mode 0600 and written whole: a temporary file, synced, then renamed, then the directory
/// synced.
///
/// Once it has a seal, files are sealed: `PARLEYSF` ‖ 1 (1) ‖ what `RestKeys` makes of the file's bytes, with
/// `parley/1/rest/file/` ‖ folder ‖ `/` ‖ name as associated data.
final class PrivateDirectory: Sendable {
  static let temporaryPrefix = ".new-"
  /// No file here is longer; a longer one is damaged. An owned channel's with 64 generations has 36 KiB.
  static let fileByteCountMax = 49_152
  /// So much longer it is when it is sealed.
  private static let sealedMoreMax = 64

  private static let sealMark = Array("PARLEYSF".utf8) + [1]
  /// Also in a sealed directory these are as they are: what the key is in, and a number.
  static let plainNames: Set<String> = ["passphrase", "incarnation", "exported", "retired"]

  struct SealState {
    var keys: RestKeys
    /// While files are being sealed or opened, some are and some are not.
    var acceptsPlain: Bool
  }

  let path: String
  /// Open until `deinit`.
  let descriptor: Int32
  /// In the profile; empty for the home itself.
  private let folder: String
  let seal = Mutex<SealState?>(nil)

  /// Opens it, making it and what leads to it when missing. A symbolic link to a directory is followed.
  convenience init(path: String, folder: String = "") throws(ProfileError) {
    try Self.make(path)
    try self.init(existing: path, folder: folder)
  }

  init(existing path: String, folder: String = "") throws(ProfileError) {
    self.folder = folder
    let descriptor = Glibc.open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    guard descriptor >= 0 else {
      let code = errno
      throw code == ENOTDIR ? .notADirectory(path: path) : .system(path: path, operation: "open", code: code)
    }
    self.path = path
    self.descriptor = descriptor
    try Self.check(descriptor, path: path)
  }

  deinit { close(descriptor) }

  private static func make(_ path: String) throws(ProfileError) {
    if mkdir(path, 0o700) == 0 || errno == EEXIST { return }
    let code = errno
    let parts = path.split(separator: "/", omittingEmptySubsequences: true).dropLast()
    guard code == ENOENT, !parts.isEmpty else { throw .system(path: path, operation: "make", code: code) }
    try make((path.hasPrefix("/") ? "/" : "") + parts.joined(separator: "/"))
    guard mkdir(path, 0o700) == 0 || errno == EEXIST else {
      throw .system(path: path, operation: "make", code: errno)
    }
  }

  /// Refuses what belongs to another user or grants others anything.
  private static func check(_ descriptor: Int32, path: String) throws(ProfileError) {
    var status = stat()
    guard fstat(descriptor, &status) == 0 else { throw .system(path: path, operation: "look at", code: errno) }
    guard status.st_uid == geteuid() else { throw .ownedByAnother(path: path, owner: status.st_uid) }
    guard status.st_mode & 0o077 == 0 else { throw .notPrivate(path: path, mode: status.st_mode & 0o777) }
  }

  func path(of name: String) -> String { path + "/" + name }

  private func identity(of name: String) -> [UInt8] { Array("parley/1/rest/file/\(folder)/\(name)".utf8) }

  /// What the file says, in guarded memory; nil when there is no such file.
  func read(_ name: String) throws(ProfileError) -> SecretBytes? {
    guard let file = try readRaw(name) else { return nil }
    let isSealed = file.byteCount > 9 && file.withBytes(0..<9) { $0.elementsEqual(Self.sealMark) }
    guard let seal = seal.withLock({ $0 }), !Self.plainNames.contains(name) else {
      if isSealed { throw .damaged(path: path(of: name), reason: "it is sealed, and the profile has no passphrase") }
      return file
    }
    guard isSealed else {
      if seal.acceptsPlain { return file }
      throw .damaged(path: path(of: name), reason: "it is not sealed, and the profile has a passphrase")
    }
    let opened = file.withBytes(9..<file.byteCount) { seal.keys.openFile($0, as: identity(of: name)) }
    guard let opened else { throw .damaged(path: path(of: name), reason: "its seal does not open") }
    return opened
  }

  /// Replaces the file or makes it. After a crash there is the old one or the new one.
  func write(_ bytes: SecretBytes, to name: String) throws(ProfileError) {
    precondition((1...Self.fileByteCountMax).contains(bytes.byteCount), "a profile's files are small and not empty")
    guard let seal = seal.withLock({ $0 }), !Self.plainNames.contains(name) else {
      return try writeUnsealed(bytes, to: name)
    }
    let sealed = Self.sealMark + seal.keys.sealFile(bytes, as: identity(of: name))
    try write(plain: sealed, to: name)
  }

  func writeUnsealed(_ bytes: SecretBytes, to name: String) throws(ProfileError) {
    let outcome: Result<Void, ProfileError> = bytes.withBytes { bytes in
      do throws(ProfileError) {
        try writeRaw(bytes, to: name)
        return .success(())
      } catch { return .failure(error) }
    }
    try outcome.get()
  }

  /// Nothing in it is secret, or it is sealed already.
  func write(plain bytes: [UInt8], to name: String) throws(ProfileError) {
    let outcome: Result<Void, ProfileError> = bytes.withUnsafeBytes { bytes in
      do throws(ProfileError) {
        try writeRaw(bytes, to: name)
        return .success(())
      } catch { return .failure(error) }
    }
    try outcome.get()
  }

  /// The file's bytes as they are, nil when there is no such file. An empty one is damaged: none is written here.
  private func readRaw(_ name: String) throws(ProfileError) -> SecretBytes? {
    let path = path(of: name)
    let file = openat(descriptor, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK)
    guard file >= 0 else {
      if errno == ENOENT { return nil }
      throw errno == ELOOP
        ? .damaged(path: path, reason: "it is a symbolic link") : .system(path: path, operation: "open", code: errno)
    }
    defer { close(file) }
    var status = stat()
    guard fstat(file, &status) == 0 else { throw .system(path: path, operation: "look at", code: errno) }
    guard status.st_mode & S_IFMT == S_IFREG else { throw .damaged(path: path, reason: "it is not a file") }
    try Self.check(file, path: path)
    guard (1...Self.fileByteCountMax + Self.sealedMoreMax).contains(Int(status.st_size)) else {
      throw .damaged(path: path, reason: "it is \(status.st_size) bytes long")
    }
    var failure: Int32?
    var readByteCount = 0
    let bytes = SecretBytes(byteCount: Int(status.st_size)) { place in
      while readByteCount < place.count {
        let count = Glibc.read(file, place.baseAddress! + readByteCount, place.count - readByteCount)
        if count < 0, errno == EINTR { continue }
        if count < 0 { failure = errno }
        if count <= 0 { return }
        readByteCount += count
      }
    }
    if let failure { throw .system(path: path, operation: "read", code: failure) }
    guard readByteCount == bytes.byteCount else { throw .damaged(path: path, reason: "it became shorter") }
    return bytes
  }

  private func writeRaw(_ bytes: UnsafeRawBufferPointer, to name: String) throws(ProfileError) {
    let temporary = Self.temporaryPrefix + Sealing.randomBytes(8).map { String($0, radix: 16) }.joined(separator: "-")
    do throws(ProfileError) {
      try writeNew(bytes, to: temporary)
      guard renameat(descriptor, temporary, descriptor, name) == 0 else {
        throw .system(path: path(of: name), operation: "write", code: errno)
      }
    } catch {
      unlinkat(descriptor, temporary, 0)
      throw error
    }
    try sync(name)
  }

  private func writeNew(_ bytes: UnsafeRawBufferPointer, to name: String) throws(ProfileError) {
    let path = path(of: name)
    let file = openat(descriptor, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode_t(0o600))
    guard file >= 0 else { throw .system(path: path, operation: "make", code: errno) }
    defer { close(file) }
    var written = 0
    while written < bytes.count {
      let count = Glibc.write(file, bytes.baseAddress! + written, bytes.count - written)
      if count < 0, errno == EINTR { continue }
      guard count > 0 else { throw .system(path: path, operation: "write", code: errno) }
      written += count
    }
    guard fsync(file) == 0 else { throw .system(path: path, operation: "sync", code: errno) }
  }

  /// False when there was none.
  func remove(_ name: String) throws(ProfileError) -> Bool {
    if unlinkat(descriptor, name, 0) != 0 {
      if errno == ENOENT { return false }
      throw .system(path: path(of: name), operation: "remove", code: errno)
    }
    try sync(name)
    return true
  }

  /// Names in order, without those that start with a dot. Removes temporary files that a crash left.
  func names() throws(ProfileError) -> [String] {
    let copy = openat(descriptor, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    guard copy >= 0 else { throw .system(path: path, operation: "list", code: errno) }
    guard let listing = fdopendir(copy) else {
      let code = errno
      close(copy)
      throw .system(path: path, operation: "list", code: code)
    }
    defer { closedir(listing) }
    var names: [String] = []
    while let entry = readdir(listing) {
      let name = withUnsafeBytes(of: &entry.pointee.d_name) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
      if name.hasPrefix(Self.temporaryPrefix) {
        unlinkat(descriptor, name, 0)
      } else if !name.hasPrefix(".") {
        names.append(name)
      }
    }
    return names.sorted()
  }

  private func sync(_ name: String) throws(ProfileError) {
    guard fsync(descriptor) == 0 else { throw .system(path: path(of: name), operation: "sync", code: errno) }
  }
}
