import Glibc
import Synchronization

/// The right to use a home. `flock` belongs to this opening of the file, so a second one in the same process is refused
/// too, and no program that was started keeps it.
final class ProfileLock: Sendable {
  /// Nil once released.
  private let held: Mutex<Int32?>

  init(in home: PrivateDirectory) throws(ProfileError) {
    let path = home.path(of: "lock")
    let flags = O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC
    var descriptor = openat(home.descriptor, "lock", flags, mode_t(0o600))
    let isReadOnly = descriptor < 0 && (errno == EROFS || errno == EACCES)
    // Where nothing can be written, an earlier run's file serves: the lock is the system's, not the file's.
    if isReadOnly { descriptor = openat(home.descriptor, "lock", O_RDONLY | O_NOFOLLOW | O_CLOEXEC) }
    guard descriptor >= 0 else { throw .system(path: path, operation: "open", code: errno) }
    guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 else {
      let code = errno
      defer { close(descriptor) }
      if code == EWOULDBLOCK { throw .inUse(path: home.path, processID: Self.processID(in: descriptor)) }
      throw .system(path: path, operation: "lock", code: code)
    }
    let line = Array("\(getpid())\n".utf8)
    // Also without the number it is locked: a full disk keeps nobody from reading what is there.
    if !isReadOnly,
      pwrite(descriptor, line, line.count, 0) != line.count || ftruncate(descriptor, off_t(line.count)) != 0,
      errno != ENOSPC, errno != EDQUOT
    {
      let code = errno
      close(descriptor)
      throw .system(path: path, operation: "write", code: code)
    }
    held = Mutex(descriptor)
  }

  deinit { release() }

  func release() {
    held.withLock { held in
      guard let descriptor = held else { return }
      // Closing alone would not do: a program that is being started has a copy until it runs.
      flock(descriptor, LOCK_UN)
      close(descriptor)
      held = nil
    }
  }

  private static func processID(in descriptor: Int32) -> Int32? {
    var bytes = [UInt8](repeating: 0, count: 16)
    let count = pread(descriptor, &bytes, bytes.count, 0)
    guard count > 1, bytes[count - 1] == UInt8(ascii: "\n") else { return nil }
    return Int32(String(decoding: bytes[..<(count - 1)], as: UTF8.self))
  }
}
