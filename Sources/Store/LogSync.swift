import Glibc
import Synchronization

/// How far the store's write-ahead log is on the disk. Commits that nobody was promised are not synced by SQLite but
/// here, many at once and on another thread than SQLite's, so that no commit waits for the disk because of them.
///
/// The log has descriptors of its own here: closing one drops the process's locks on that file only (fcntl(2)), and
/// SQLite locks the database, not the log. The log stays the same file while the database is open.
///
/// Beside the log stands how far it was synced: 8 bytes of salt, which name its present round, the count of frames, and
/// its complement. Written after each sync and never synced itself, it may be late but never claims too much; `LogScan`
/// tells by it what was torn in a power cut from what has been damaged since.
package final class LogSync: Sendable {
  struct Mark: Equatable {
    static let byteCount = 16
    let salts: [UInt8]
    let frameCount: UInt32

    init(salts: [UInt8], frameCount: UInt32) {
      self.salts = salts
      self.frameCount = frameCount
    }

    /// Nil when there is none, or it is not whole.
    init?(path: String) {
      guard let file = File(path: path),
        let bytes = File.read(file.descriptor, at: 0, byteCount: Self.byteCount),
        File.number(bytes, at: 8) == ~File.number(bytes, at: 12)
      else { return nil }
      self.init(salts: Array(bytes[..<8]), frameCount: File.number(bytes, at: 8))
    }

    var bytes: [UInt8] {
      salts
        + [frameCount, ~frameCount].flatMap { number in
          stride(from: 24, through: 0, by: -8).map { UInt8(truncatingIfNeeded: number >> UInt32($0)) }
        }
    }
  }

  private struct State {
    var salts: [UInt8] = []
    /// The next commit may begin the log anew, with other salts.
    var mayBeginAnew = true
    var frameCount: UInt32 = 0
    /// Commits since the database was opened, and how many of them are on the disk.
    var commitCount: UInt64 = 0
    var syncedCount: UInt64 = 0
  }

  static let suffix = "-synced"

  private let path: String
  private let log: Int32
  private let mark: Int32
  private let state = Mutex(State())

  /// The log is there already. What an earlier process left in it is synced: it will be counted on.
  init(path: String) throws(StoreError) {
    self.path = path
    log = Glibc.open(path + "-wal", O_RDONLY | O_CLOEXEC)
    guard log >= 0 else { throw Opening.systemFailure(path: path + "-wal") }
    // Without it the store works as well, and only knows less of a log that is damaged.
    mark = Glibc.open(path + Self.suffix, O_WRONLY | O_CREAT | O_CLOEXEC, 0o600)
    try syncLog()
  }

  /// A log that is gone, since all of it is in the database, leaves no mark.
  static func forgetMarkWithoutLog(path: String) {
    if access(path + "-wal", F_OK) != 0 { unlink(path + suffix) }
  }

  deinit {
    close(log)
    if mark >= 0 { close(mark) }
  }

  /// Frames that the log holds; it is begun anew once all of them are in the database.
  var frameCount: UInt32 { state.withLock { $0.frameCount } }
  /// Whether a power cut would take nothing that was committed.
  package var isSynced: Bool { state.withLock { $0.syncedCount == $0.commitCount } }

  /// A commit has ended; the log has so many frames. `isSynced`: and all of it is on the disk.
  func committed(frameCount: UInt32, isSynced: Bool) {
    state.withLock { state in
      if state.mayBeginAnew {
        state.salts = File.read(log, at: 16, byteCount: 8) ?? []
        state.mayBeginAnew = false
      }
      state.frameCount = frameCount
      state.commitCount += 1
      if isSynced { synced(state.commitCount, state.salts, frameCount, &state) }
    }
  }

  private func synced(_ count: UInt64, _ salts: [UInt8], _ frameCount: UInt32, _ state: inout State) {
    guard count > state.syncedCount else { return }
    state.syncedCount = count
    guard salts.count == 8 else { return }
    // What fails leaves the mark as it was, or not whole: both say less.
    _ = pwrite(mark, Mark(salts: salts, frameCount: frameCount).bytes, Mark.byteCount, 0)
  }

  /// On return all that was committed before the call survives a power cut. From any thread; blocks.
  package func sync() throws(StoreError) {
    let now = state.withLock { $0 }
    guard now.syncedCount < now.commitCount else { return }
    try syncLog()
    state.withLock { synced(now.commitCount, now.salts, now.frameCount, &$0) }
  }

  private func syncLog() throws(StoreError) {
    while fdatasync(log) != 0 {
      if errno == EINTR { continue }
      let code = errno
      let reason = "syncing its log failed, \(String(cString: strerror(code)))"
      throw StoreError(systemError: code, path: path, reason: reason) ?? .inputOutput(path: path, reason: reason)
    }
  }

  /// The log was brought into the database, as far as possible or, with `isEmptied`, all of it.
  func checkpointed(isEmptied: Bool) {
    state.withLock { state in
      state.mayBeginAnew = true
      if isEmptied { state.syncedCount = state.commitCount }
    }
  }
}
