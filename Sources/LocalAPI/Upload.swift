import Glibc
import Parley
import Synchronization

/// A file that comes in the body of a request, on its way to the disk: none of it stays in memory. It lies in the
/// home's folder `uploads`, in a folder of its own, and is shared from there.
final class Upload: Sendable {
  static let folderName = "uploads"

  private struct State {
    var descriptor: Int32
    var byteCount: UInt64 = 0
  }

  private let folder: String
  private let id: String
  private let name: SafeFileName
  private let state: Mutex<State>
  private var partPath: String { "\(folder)/\(id).part" }

  init(home: String, fileName: String) throws(Problem) {
    folder = "\(home)/\(Self.folderName)"
    id = String(UInt64.random(in: .min ... .max), radix: 36)
    name = SafeFileName(received: fileName)
    let path = "\(folder)/\(id).part"
    mkdir(folder, 0o700)
    let descriptor = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o600)
    state = Mutex(State(descriptor: descriptor))
    guard descriptor >= 0 else { throw Self.trouble(path) }
  }

  deinit { discard() }

  /// Nil when it is on its way to the disk.
  func write(_ bytes: UnsafeRawBufferPointer) -> Problem? {
    state.withLock { state in
      guard state.descriptor >= 0 else { return .bodyTooLarge }
      var rest = bytes
      while !rest.isEmpty {
        let count = Glibc.write(state.descriptor, rest.baseAddress!, rest.count)
        if count < 0, errno == EINTR { continue }
        guard count > 0 else {
          let problem = Self.trouble(partPath)
          close(state.descriptor)
          state.descriptor = -1
          unlink(partPath)
          return problem
        }
        rest = UnsafeRawBufferPointer(rebasing: rest[count...])
        state.byteCount += UInt64(count)
      }
      return nil
    }
  }

  /// Where it is, under its name, once it is whole.
  func finish() throws(Problem) -> String {
    let path = "\(folder)/\(id)/\(name.text)"
    let descriptor = state.withLock { state in
      defer { state.descriptor = -1 }
      return state.descriptor
    }
    guard descriptor >= 0 else { throw .badRequest("the file did not come whole: nothing was kept") }
    close(descriptor)
    guard mkdir("\(folder)/\(id)", 0o700) == 0, rename(partPath, path) == 0 else {
      let problem = Self.trouble(path)
      unlink(partPath)
      throw problem
    }
    return path
  }

  /// Remembers on the disk under what it was shared: an empty file beside its folder, named by both.
  func mark(_ media: MediaID) {
    let descriptor = open("\(folder)/\(media.text).\(id)", O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0o600)
    if descriptor >= 0 { close(descriptor) }
  }

  /// What came so and was shared as this goes. Files that are shared from elsewhere are their user's.
  static func remove(_ media: MediaID, home: String) {
    let folder = "\(home)/\(folderName)"
    for mark in names(in: folder) where mark.hasPrefix("\(media.text).") {
      let place = "\(folder)/\(mark.dropFirst(media.text.utf8.count + 1))"
      for name in names(in: place) { unlink("\(place)/\(name)") }
      rmdir(place)
      unlink("\(folder)/\(mark)")
    }
  }

  /// What was finished and could not be shared goes, too.
  func remove() {
    unlink("\(folder)/\(id)/\(name.text)")
    rmdir("\(folder)/\(id)")
  }

  func discard() {
    state.withLock { state in
      guard state.descriptor >= 0 else { return }
      close(state.descriptor)
      state.descriptor = -1
      unlink(partPath)
    }
  }

  /// What an earlier run was in the middle of.
  static func removeParts(inHome home: String) {
    let folder = "\(home)/\(folderName)"
    for name in names(in: folder) where name.hasSuffix(".part") { unlink("\(folder)/\(name)") }
  }

  private static func names(in folder: String) -> [String] {
    guard let listing = opendir(folder) else { return [] }
    defer { closedir(listing) }
    var names: [String] = []
    while let entry = readdir(listing) {
      let name = withUnsafePointer(to: &entry.pointee.d_name) {
        $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
      }
      if name != ".", name != ".." { names.append(name) }
    }
    return names
  }

  private static func trouble(_ path: String) -> Problem {
    let code = errno
    let reason = String(cString: strerror(code))
    if code == ENOSPC || code == EDQUOT {
      return Problem(
        status: 507, code: "no_space", title: "No space left",
        detail: "\(path.escapedLine): \(reason); nothing was kept")
    }
    return Problem(
      status: 500, code: "file_trouble", title: "The file system refused",
      detail: "\(path.escapedLine): \(reason); nothing was kept")
  }
}
