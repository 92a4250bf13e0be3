import Glibc

/// A file beside the store's that says that a damaged one is being put aside, to where, and why; there from before
/// anything is moved until the new one is in its place.
struct SetAsideNote {
  struct Content: Equatable {
    var aside: String
    var reason: String
  }

  private let path: String
  /// Of the store's file, with its slash; empty for none. Not part of the note, so that a home may be moved.
  private let folder: String

  init(path: String) {
    self.path = path + ".salvage"
    folder = path.lastIndex(of: "/").map { String(path[...$0]) } ?? ""
  }

  /// Nil when nothing was begun, or not even this note is whole: then nothing was moved.
  func read() -> Content? {
    guard let file = File(path: path), file.byteCount <= 1 << 16,
      let bytes = File.read(file.descriptor, at: 0, byteCount: file.byteCount)
    else { return nil }
    let lines = String(decoding: bytes, as: UTF8.self).split(separator: "\n", omittingEmptySubsequences: false)
    guard lines.count == 3, lines[2].isEmpty, !lines[0].isEmpty else { return nil }
    return Content(aside: folder + lines[0], reason: String(lines[1]))
  }

  func write(_ content: Content) throws(StoreError) {
    // A line for each, and the last one ended.
    let reason = content.reason.split(separator: "\n").joined(separator: "; ")
    let bytes = Array("\(content.aside.dropFirst(folder.count))\n\(reason)\n".utf8)
    let descriptor = Glibc.open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { throw Opening.systemFailure(path: path) }
    defer { close(descriptor) }
    guard Glibc.write(descriptor, bytes, bytes.count) == bytes.count, fsync(descriptor) == 0 else {
      throw Opening.systemFailure(path: path)
    }
    syncFolder(of: path)
  }

  func remove() {
    if unlink(path) == 0 { syncFolder(of: path) }
  }
}
