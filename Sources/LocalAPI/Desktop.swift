import Glibc
import Parley

/// Opens what was downloaded with the desktop's own programs.
enum Desktop {
  /// What such programs show and do not run. Whoever trusts another kind of file opens it from its folder.
  private static let harmless: Set = [
    "pdf", "txt", "md", "csv", "tsv", "log", "json", "epub", "png", "jpg", "jpeg", "gif", "webp", "avif", "heic", "tif",
    "tiff", "bmp", "mp4", "m4v", "webm", "mkv", "mov", "avi", "mp3", "ogg", "oga", "opus", "flac", "wav", "m4a", "aac",
    "odt", "ods", "odp", "docx", "xlsx", "pptx", "zip", "tar", "gz", "xz", "zst", "7z",
  ]

  /// Whether `open` would: a folder, or a file of a kind that nothing runs.
  static func opens(_ path: String) -> Bool {
    var facts = stat()
    guard lstat(path, &facts) == 0 else { return false }
    if facts.st_mode & S_IFMT == S_IFDIR { return true }
    guard facts.st_mode & S_IFMT == S_IFREG, facts.st_mode & 0o111 == 0 else { return false }
    let name = path.split(separator: "/").last ?? ""
    guard let dot = name.lastIndex(of: "."), dot > name.startIndex else { return false }
    return harmless.contains(name[name.index(after: dot)...].lowercased())
  }

  /// Returns once the desktop was asked; what it makes of it nobody is told.
  static func open(_ path: String) throws(Problem) {
    guard path.hasPrefix("/") else { throw .badRequest("the path must be absolute") }
    guard
      ["DISPLAY", "WAYLAND_DISPLAY"].contains(where: { (name: String) in getenv(name).map { $0.pointee != 0 } ?? false }
      )
    else {
      throw noDesktop("the node was started outside of a desktop")
    }
    // A shell starts it in the background and ends at once, so that nothing waits for the program, which may stay open
    // for hours, and nobody has to collect it. The path is an argument, never a part of the script.
    let script = "command -v xdg-open >/dev/null || exit 9; xdg-open \"$1\" </dev/null >/dev/null 2>&1 &"
    let given: [String] = ["sh", "-c", script, "sh", path]
    var words: [UnsafeMutablePointer<CChar>?] = given.map { (word: String) in strdup(word) }
    words.append(nil)
    defer { for word in words { free(word) } }
    var attributes = posix_spawnattr_t()
    posix_spawnattr_init(&attributes)
    defer { posix_spawnattr_destroy(&attributes) }
    // Signals as programs expect them: the node ignores SIGPIPE. A session of its own (glibc 2.26): the end of the node
    // is not that of the program.
    var signals = sigset_t()
    sigfillset(&signals)
    posix_spawnattr_setsigdefault(&attributes, &signals)
    var none = sigset_t()
    sigemptyset(&none)
    posix_spawnattr_setsigmask(&attributes, &none)
    posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK) | 0x80)
    var child = pid_t()
    guard posix_spawn(&child, "/bin/sh", nil, &attributes, &words, environ) == 0 else {
      throw noDesktop("no shell could be started")
    }
    var status: Int32 = 0
    while waitpid(child, &status, 0) < 0, errno == EINTR {}
    guard status == 0 else { throw noDesktop("there is no xdg-open here (Debian: xdg-utils)") }
  }

  private static func noDesktop(_ why: String) -> Problem {
    Problem(
      status: 503, code: "no_desktop", title: "Nothing to open it with",
      detail: "\(why); the file is there all the same: see its path")
  }
}

extension Router {
  /// The finished file or folder, or the folder it lies in.
  func openDownload(_ text: String, isRevealing: Bool) async throws -> Reply {
    let id = try Self.downloadID(text)
    guard let download = try await node.downloads().first(where: { $0.id == id }),
      case .finished(let path) = download.state
    else {
      throw Problem(
        status: 404, code: "no_such_download", title: "No such download",
        detail: "no finished download has the number \(id.value): see GET /v1/downloads")
    }
    if isRevealing {
      try Desktop.open(Self.folder(of: path))
    } else {
      guard Desktop.opens(path) else {
        throw Problem(
          status: 403, code: "not_opened", title: "Not opened from here",
          detail: "this kind of file may hold a program, or is gone: look at it in its folder, if you trust the sender")
      }
      try Desktop.open(path)
    }
    return .json(["download_id": .count(id.value), "path": .string(path)])
  }

  private static func folder(of path: String) -> String {
    let parts = path.split(separator: "/").dropLast()
    return "/" + parts.joined(separator: "/")
  }
}
