import CMicroHTTPD
import Glibc

/// Why the local API cannot be served.
package enum LocalAPIError: Error, Equatable, Sendable, CustomStringConvertible {
  /// Somebody answers at the socket already.
  case inUse(path: String)
  case cannotListen(path: String, reason: String)

  package var description: String {
    switch self {
    case .inUse(let path):
      "a node answers at \(path.escapedLine) already: use it, or end it first (parley down)"
    case .cannotListen(let path, let reason): "cannot listen at \(path.escapedLine): \(reason)"
    }
  }
}

/// The Unix socket in a node's home.
package enum SocketFile {
  package static let name = "api.sock"

  package static func path(inHome home: String) -> String { "\(home)/\(name)" }

  /// A path that fits a socket address (108 bytes, unix(7)), however long the home's is: then it goes through an open
  /// descriptor of the home. `use` gets the path while that is open.
  package static func withShortPath<Result>(inHome home: String, _ use: (String) -> Result) -> Result {
    let path = path(inHome: home)
    guard path.utf8.count > 107 else { return use(path) }
    let folder = parley_open_folder(home)
    guard folder >= 0 else { return use(path) }
    defer { close(folder) }
    return use("/proc/self/fd/\(folder)/\(name)")
  }

  /// Such a path for a process that uses it until it ends: the descriptor stays open.
  package static func shortPath(inHome home: String) -> String {
    let path = path(inHome: home)
    guard path.utf8.count > 107 else { return path }
    let folder = parley_open_folder(home)
    return folder < 0 ? path : "/proc/self/fd/\(folder)/\(name)"
  }

  /// Where a home's socket is: in the home, or in the fallback of one that cannot be written, if there is one.
  package static func folder(ofHome home: String) -> String {
    let fallback = fallback(ofHome: home)
    var info = stat()
    let isThere =
      lstat(path(inHome: fallback), &info) == 0 && info.st_mode & S_IFMT == S_IFSOCK && info.st_uid == geteuid()
    return isThere && isPrivate(fallback) ? fallback : home
  }

  /// A listening socket, 0600, and where it is. A socket left behind by a process that ended is replaced; one that
  /// answers is not. Where the home cannot be written it is in a private folder elsewhere, which commands look into
  /// first.
  static func listen(inHome home: String) throws(LocalAPIError) -> (descriptor: Int32, path: String) {
    let fallback = fallback(ofHome: home)
    do throws(LocalAPIError) {
      let descriptor = try listen(in: home)
      if isPrivate(fallback) {
        unlink(path(inHome: fallback))
        rmdir(fallback)
      }
      return (descriptor, path(inHome: home))
    } catch {
      guard case .cannotListen = error, access(home, W_OK) != 0, errno == EROFS || errno == EACCES else { throw error }
      guard mkdir(fallback, 0o700) == 0 || errno == EEXIST, isPrivate(fallback) else { throw error }
      return (try listen(in: fallback), path(inHome: fallback))
    }
  }

  private static func listen(in folder: String) throws(LocalAPIError) -> Int32 {
    let path = path(inHome: folder)
    let outcome: Result<Int32, LocalAPIError> = withShortPath(inHome: folder) { shortPath in
      if isAnswering(at: shortPath) { return .failure(.inUse(path: path)) }
      return bind(shortPath, path: path)
    }
    return try outcome.get()
  }

  /// In the user's runtime folder, or in /tmp, under a name that follows from the home's path (FNV-1a, 64 bits).
  private static func fallback(ofHome home: String) -> String {
    let hash = home.utf8.reduce(14_695_981_039_346_656_037 as UInt64) { ($0 ^ UInt64($1)) &* 1_099_511_628_211 }
    let name = "parley-\(geteuid())-\(String(hash, radix: 16))"
    if let folder = getenv("XDG_RUNTIME_DIR"), folder.pointee == UInt8(ascii: "/") {
      return String(cString: folder) + "/" + name
    }
    return "/tmp/" + name
  }

  /// A folder, not a link to one, that is ours and nobody else can use: in /tmp anybody may have made it.
  private static func isPrivate(_ folder: String) -> Bool {
    var info = stat()
    return lstat(folder, &info) == 0 && info.st_mode & S_IFMT == S_IFDIR && info.st_uid == geteuid()
      && info.st_mode & 0o077 == 0
  }

  private static func bind(_ shortPath: String, path: String) -> Result<Int32, LocalAPIError> {
    func failure() -> Result<Int32, LocalAPIError> {
      .failure(.cannotListen(path: path, reason: String(cString: strerror(errno))))
    }
    var info = stat()
    if lstat(shortPath, &info) == 0 {
      guard info.st_mode & S_IFMT == S_IFSOCK else {
        return .failure(.cannotListen(path: path, reason: "something that is no socket is there; it was left as it is"))
      }
      guard unlink(shortPath) == 0 else { return failure() }
    }
    let socket = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue), 0)
    guard socket >= 0 else { return failure() }
    // On Linux the descriptor's mode becomes the file's: it is never there with a wider one.
    fchmod(socket, 0o600)
    let isBound = withAddress(shortPath) { Glibc.bind(socket, $0, $1) == 0 }
    guard isBound, chmod(shortPath, 0o600) == 0, Glibc.listen(socket, 128) == 0 else {
      defer { close(socket) }
      return failure()
    }
    return .success(socket)
  }

  private static func isAnswering(at shortPath: String) -> Bool {
    let socket = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    guard socket >= 0 else { return false }
    defer { close(socket) }
    return withAddress(shortPath) { connect(socket, $0, $1) == 0 }
  }

  private static func withAddress<Result>(
    _ path: String, _ use: (UnsafePointer<sockaddr>, socklen_t) -> Result
  ) -> Result {
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    withUnsafeMutableBytes(of: &address.sun_path) { target in
      // Zeroed above, so what is copied ends in a NUL.
      target.copyBytes(from: path.utf8.prefix(target.count - 1))
    }
    return withUnsafePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { use($0, socklen_t(MemoryLayout<sockaddr_un>.size)) }
    }
  }
}
