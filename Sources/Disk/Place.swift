import CLinux
import Glibc
import ParleyVocabulary

/// The open folder of a landing, and the name wished for in it.
final class Place {
  let folderPath: String
  let name: String
  private let folder: Descriptor

  var number: Int32 { folder.number }

  private init(folderPath: String, name: String, folder: consuming Descriptor) {
    self.folderPath = folderPath
    self.name = name
    self.folder = folder
  }

  static func open(_ target: Landing.Target, byteCount: UInt64) throws(DiskError) -> Place {
    let folderPath: String
    let name: String
    switch target {
    case .folder(let path, let safe): (folderPath, name) = (path.isEmpty ? "." : path, safe.text)
    case .file(let path, _):
      let isNamed = path.utf8.last != UInt8(ascii: "/") && !path.isEmpty && !path.utf8.contains(0)
      let last = path.unicodeScalars.split(separator: "/").last.map(String.init) ?? ""
      guard isNamed, last != ".", last != ".." else {
        throw .failed(path: path, operation: "choosing a target", reason: "this names no file")
      }
      let before = String(path.utf8.dropLast(last.utf8.count)) ?? ""
      (folderPath, name) = (before.isEmpty ? "." : before, last)
    }
    guard byteCount <= UInt64(Int64.max) else {
      throw .tooLarge(path: folderPath, byteCount: byteCount, byteCountMax: UInt64(Int64.max))
    }
    let number = Glibc.open(folderPath, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    guard number >= 0 else { throw .system(folderPath, "opening the folder") }
    return Place(folderPath: folderPath, name: name, folder: Descriptor(number))
  }

  /// Before the first byte rather than after the last; `finish` checks again.
  func check(_ target: Landing.Target, _ content: Landing.Content) throws(DiskError) {
    guard case .file(let path, let mayReplace) = target else { return }
    var status = stat()
    guard fstatat(folder.number, name, &status, AT_SYMLINK_NOFOLLOW) == 0 else {
      guard errno == ENOENT else { throw .system(path, "looking for it") }
      return
    }
    if case .folder = content { throw .exists(path: path) }
    guard mayReplace else { throw .exists(path: path) }
    if status.st_mode & S_IFMT == S_IFDIR { throw .notARegularFile(path: path, kind: status.kind) }
  }

  func path(_ name: String) -> String { folderPath.hasSuffix("/") ? folderPath + name : folderPath + "/" + name }

  private func free() throws(DiskError) -> UInt64 {
    var status = statvfs()
    guard fstatvfs(folder.number, &status) == 0 else { throw .system(folderPath, "asking for its free space") }
    let (free, overflow) = UInt64(status.f_bavail).multipliedReportingOverflow(by: UInt64(status.f_frsize))
    return overflow ? .max : free
  }

  func checkSpace(for need: UInt64) throws(DiskError) {
    let have = try free()
    guard need <= have else { throw .noSpace(path: folderPath, need: need, have: have) }
  }

  func writingFailed(_ path: String, need: UInt64) -> DiskError {
    let code = errno
    guard code == ENOSPC || code == EDQUOT else { return .system(path, "writing", code) }
    return .noSpace(path: folderPath, need: need, have: (try? free()) ?? 0)
  }

  /// Allocates the blocks where the file system can, so that several downloads cannot count on the same space; else
  /// only the size is set. `path`: for errors.
  func reserve(_ file: borrowing Descriptor, _ path: String, _ byteCount: UInt64) throws(DiskError) {
    if try !reserve(file, path, 0..<byteCount) { try size(file, path, byteCount) }
  }

  func size(_ file: borrowing Descriptor, _ path: String, _ byteCount: UInt64) throws(DiskError) {
    guard ftruncate(file.number, off_t(byteCount)) == 0 else { throw .system(path, "setting its size") }
  }

  /// Of a part of the file; false where the file system cannot.
  func reserve(_ file: borrowing Descriptor, _ path: String, _ range: Range<UInt64>) throws(DiskError) -> Bool {
    while !range.isEmpty, parley_allocate(file.number, Int64(range.lowerBound), Int64(range.count)) != 0 {
      switch errno {
      case EINTR: continue
      case EOPNOTSUPP, ENOSYS, EPERM: return false
      case ENOSPC, EDQUOT: throw .noSpace(path: folderPath, need: UInt64(range.count), have: (try? free()) ?? 0)
      default: throw .system(path, "reserving \(range.count) bytes")
      }
    }
    return true
  }

  /// Never through a link and never out of the folder.
  func open(_ name: String, _ flags: Int32) throws(DiskError) -> Descriptor {
    let number = openBeneath(folder.number, name, flags, mode: flags & O_CREAT != 0 ? 0o600 : 0)
    if number < 0, errno == ELOOP { throw .notARegularFile(path: path(name), kind: "symbolic link") }
    guard number >= 0 else { throw .system(path(name), "opening") }
    return Descriptor(number)
  }

  /// Whether the name still stands for the file we wrote.
  func checkStillThere(_ name: String, _ facts: stat) throws(DiskError) {
    var status = stat()
    guard fstatat(folder.number, name, &status, AT_SYMLINK_NOFOLLOW) == 0 else {
      throw .system(path(name), "looking for it")
    }
    guard status.st_ino == facts.st_ino, status.st_dev == facts.st_dev,
      status.st_mode & S_IFMT == facts.st_mode & S_IFMT
    else {
      throw .changed(path: path(name))
    }
  }

  /// Renames in one step; false when the name is taken.
  func take(_ part: Part, _ name: String, _ noReplaceRename: Bool) throws(DiskError) -> Bool {
    if noReplaceRename {
      if parley_rename_without_replacing(folder.number, part.name, name) == 0 { return true }
      if errno == EEXIST { return false }
      guard errno == EINVAL || errno == ENOSYS || errno == EOPNOTSUPP else {
        throw .system(path(name), "renaming to it")
      }
    }
    // link(2) and mkdir(2) fail when the name is taken, and rename(2) replaces a folder only if it is empty: nothing is
    // lost either way.
    if part.isFolder {
      if mkdirat(folder.number, name, 0o700) != 0 {
        if errno == EEXIST { return false }
        throw .system(path(name), "making a folder")
      }
      guard renameat(folder.number, part.name, folder.number, name) == 0 else {
        let error = DiskError.system(path(name), "renaming to it")
        _ = unlinkat(folder.number, name, AT_REMOVEDIR)
        throw error
      }
      return true
    }
    if linkat(folder.number, part.name, folder.number, name, 0) != 0 {
      if errno == EEXIST { return false }
      throw .system(path(name), "linking to it")
    }
    remove(part.name)
    return true
  }

  func replace(_ part: String, _ name: String) throws(DiskError) {
    guard renameat(folder.number, part, folder.number, name) == 0 else {
      throw .system(path(name), "renaming to it")
    }
  }

  func remove(_ name: String) { _ = unlinkat(folder.number, name, 0) }

  func synchronize() throws(DiskError) {
    guard fsync(folder.number) == 0 || errno == EINVAL else { throw .system(folderPath, "writing it to the disk") }
  }
}
