import Glibc
import ParleyVocabulary

/// What the disk refused, and where. `path` is as the caller gave or made it; the description shows it escaped.
public enum DiskError: Error, Equatable, Sendable, CustomStringConvertible {
  case noSuchFile(path: String)
  /// A folder, FIFO, socket, device or symbolic link where a regular file is needed.
  case notARegularFile(path: String, kind: String)
  case notAFolder(path: String)
  case notPermitted(path: String, reason: String)
  /// Size, time or identity of the file are no longer those noted when it was shared or begun.
  case changed(path: String)
  /// Something stands there already and may not be replaced.
  case exists(path: String)
  /// Bytes needed and bytes free to us on that file system.
  case noSpace(path: String, need: UInt64, have: UInt64)
  case tooLarge(path: String, byteCount: UInt64, byteCountMax: UInt64)
  /// A folder in which no file can be shared; so many were left out.
  case noFiles(path: String, skippedCount: Int)
  /// The manifest of a folder would have more bytes than it may, with this file the first too many.
  case tooManyFiles(path: String, fileCount: Int, byteCountMax: Int)
  /// The caller's progress closure said to stop.
  case stopped(path: String)
  case failed(path: String, operation: String, reason: String)

  public var description: String {
    switch self {
    case .noSuchFile, .notPermitted, .stopped, .failed, .noSpace: "\(path.escapedLine): \(reason)"
    case .notARegularFile, .notAFolder, .changed, .exists, .tooLarge, .noFiles, .tooManyFiles:
      "\(path.escapedLine) \(reason)"
    }
  }

  package var path: String {
    switch self {
    case .noSuchFile(let path), .notARegularFile(let path, _), .notAFolder(let path), .notPermitted(let path, _),
      .changed(let path), .exists(let path), .noSpace(let path, _, _), .tooLarge(let path, _, _),
      .noFiles(let path, _), .tooManyFiles(let path, _, _), .stopped(let path), .failed(let path, _, _):
      path
    }
  }

  /// Whether what was written so far is still good, and can be gone on with once the cause is gone.
  package var leavesPart: Bool {
    switch self {
    case .changed, .notARegularFile: false
    default: true
    }
  }

  /// Nothing stands there, or something that is no file any more.
  var isOfAFileThatIsGone: Bool {
    switch self {
    case .noSuchFile, .notARegularFile, .notAFolder: true
    default: false
    }
  }

  /// What happened, without saying where.
  package var reason: String {
    switch self {
    case .noSuchFile: "there is no such file or folder"
    case .notARegularFile(_, let kind): "is a \(kind), not a regular file"
    case .notAFolder: "is not a folder"
    case .notPermitted(_, let reason): "not permitted: \(reason)"
    case .changed: "changed meanwhile: share or download it again"
    case .exists: "exists already: choose another name, or allow it to be replaced"
    case .noSpace(_, let need, let have):
      "\(need) bytes are needed and \(have) are free there: make space, then try again"
    case .tooLarge(_, let byteCount, let byteCountMax): "has \(byteCount) bytes, at most \(byteCountMax) can be shared"
    case .noFiles(_, let skippedCount):
      skippedCount == 0
        ? "holds no files: nothing was shared" : "holds no file that can be shared; \(skippedCount) were left out"
    case .tooManyFiles(_, let fileCount, let byteCountMax):
      "holds too many files for one media ID: the list of the first \(fileCount) fills \(byteCountMax) bytes; "
        + "share its subfolders one by one, or an archive"
    case .stopped: "stopped"
    case .failed(_, let operation, let reason): "\(operation): \(reason)"
    }
  }

  /// From `errno`, read before anything else can change it.
  static func system(_ path: String, _ operation: String, _ code: Int32 = errno) -> DiskError {
    let reason = String(cString: strerror(code))
    return switch code {
    case ENOENT: .noSuchFile(path: path)
    case EACCES, EPERM, EROFS: .notPermitted(path: path, reason: reason)
    case EEXIST: .exists(path: path)
    case ENOTDIR: .notAFolder(path: path)
    default: .failed(path: path, operation: operation, reason: reason)
    }
  }
}

/// What tells a file from another and from itself after a change.
package struct FileFacts: Hashable, Sendable {
  package let byteCount: UInt64
  /// Modification time, nanoseconds since 1970.
  package let modifiedNanoseconds: Int64
  package let inode: UInt64
  package let device: UInt64

  package init(byteCount: UInt64, modifiedNanoseconds: Int64, inode: UInt64, device: UInt64) {
    self.byteCount = byteCount
    self.modifiedNanoseconds = modifiedNanoseconds
    self.inode = inode
    self.device = device
  }

  /// Of the file at `path` as it is now.
  package init(path: String) throws(DiskError) {
    var status = stat()
    guard stat(path, &status) == 0 else { throw .system(path, "looking for it") }
    guard status.isRegularFile else { throw .notARegularFile(path: path, kind: status.kind) }
    self.init(status)
  }

  init(_ status: stat) {
    byteCount = UInt64(clamping: status.st_size)
    modifiedNanoseconds = Int64(status.st_mtim.tv_sec) &* 1_000_000_000 &+ Int64(status.st_mtim.tv_nsec)
    inode = UInt64(status.st_ino)
    device = UInt64(status.st_dev)
  }
}

/// An open file, closed when it goes.
struct Descriptor: ~Copyable {
  let number: Int32
  init(_ number: Int32) { self.number = number }
  deinit { close(number) }

  func status(_ path: String) throws(DiskError) -> stat {
    var status = stat()
    guard fstat(number, &status) == 0 else { throw .system(path, "asking about it") }
    return status
  }
}

/// Reads exactly `bytes.count` bytes; false when the file ends before.
func read(
  _ number: Int32, _ bytes: UnsafeMutableRawBufferPointer, at offset: UInt64, _ path: String
) throws(DiskError) -> Bool {
  var done = 0
  while done < bytes.count {
    let count = pread(number, bytes.baseAddress! + done, bytes.count - done, off_t(offset) + off_t(done))
    if count == 0 { return false }
    if count < 0 {
      if errno == EINTR { continue }
      throw .system(path, "reading")
    }
    done += count
  }
  return true
}

extension stat {
  var isRegularFile: Bool { st_mode & S_IFMT == S_IFREG }

  /// For people.
  var kind: String {
    switch st_mode & S_IFMT {
    case S_IFREG: "regular file"
    case S_IFDIR: "folder"
    case S_IFIFO: "FIFO"
    case S_IFSOCK: "socket"
    case S_IFCHR, S_IFBLK: "device"
    case S_IFLNK: "symbolic link"
    default: "thing of an unknown kind"
    }
  }
}
