import CLinux
import Glibc
import ParleyVocabulary

/// What has not landed yet.
enum Part {
  case file(name: String, Descriptor.Box)
  case folder(PartFolder)

  var name: String {
    switch self {
    case .file(let name, _): name
    case .folder(let folder): folder.name
    }
  }

  var isFolder: Bool { if case .folder = self { true } else { false } }

  func status(_ path: String) throws(DiskError) -> stat {
    switch self {
    case .file(_, let box): try box.descriptor.status(path)
    case .folder(let folder): try folder.status()
    }
  }

  func synchronize(_ path: String) throws(DiskError) {
    switch self {
    case .file(_, let box):
      guard fsync(box.descriptor.number) == 0 else { throw .system(path, "writing it to the disk") }
    case .folder(let folder):
      folder.touch()
      try folder.synchronize()
    }
  }

  /// Until it is whole it is its owner's alone.
  func show(_ path: String) throws(DiskError) {
    switch self {
    case .file(_, let box):
      guard fchmod(box.descriptor.number, 0o644 & ~Landing.umask()) == 0 else {
        throw .system(path, "setting its permissions")
      }
    case .folder(let folder): try folder.show()
    }
  }
}

// Making and opening parts.
extension Place {
  /// Bytes that it takes on the disk: files fill whole blocks.
  func need(for content: Landing.Content) throws(DiskError) -> UInt64 {
    guard case .folder(let files) = content else { return content.byteCount }
    var status = statvfs()
    guard fstatvfs(number, &status) == 0 else { throw .system(folderPath, "asking for its free space") }
    let block = UInt64(max(1, min(status.f_frsize, 65_536)))
    for file in files where file.isWanted && file.relative.utf8.count > Self.relativeByteCountMax {
      throw .failed(
        path: folderPath, operation: "making the folder",
        reason: "the path of a file in it is longer than \(Self.relativeByteCountMax) bytes")
    }
    return files.reduce(0) { $0 + ($1.isWanted ? ($1.byteCount + block - 1) / block * block : 0) }
  }

  /// The system takes 4,095 bytes at once (PATH_MAX).
  static let relativeByteCountMax = 3_800

  func makePart(
    _ content: Landing.Content, need: UInt64, _ candidates: () -> String
  ) throws(DiskError) -> Part {
    for _ in 0..<16 {
      let name = candidates()
      let part: Part
      do throws(DiskError) { part = try make(name, content) } catch {
        if case .exists = error { continue }
        throw error
      }
      do throws(DiskError) {
        switch part {
        case .file(_, let box): try size(box.descriptor, path(name), content.byteCount)
        case .folder(let folder):
          try folder.make(isResuming: false) { (file, path, byteCount) throws(DiskError) in
            try reserve(file, path, byteCount)
          }
        }
      } catch {
        remove(part)
        if case .noSpace(_, _, let have) = error { throw .noSpace(path: folderPath, need: need, have: have) }
        throw error
      }
      return part
    }
    throw .failed(path: folderPath, operation: "making a part file", reason: "every name drawn is taken")
  }

  private func make(_ name: String, _ content: Landing.Content) throws(DiskError) -> Part {
    guard case .folder(let files) = content else {
      return .file(name: name, Descriptor.Box(try open(name, O_RDWR | O_CREAT | O_EXCL)))
    }
    guard mkdirat(number, name, 0o700) == 0 else { throw .system(path(name), "making a folder") }
    return .folder(
      PartFolder(name: name, path: path(name), files: files, folder: try open(name, O_RDONLY | O_DIRECTORY)))
  }

  func openPart(_ name: String, _ content: Landing.Content) throws(DiskError) -> Part {
    let path = path(name)
    guard case .folder(let files) = content else {
      let box = Descriptor.Box(try open(name, O_RDWR))
      let status = try box.descriptor.status(path)
      guard status.isRegularFile else { throw .notARegularFile(path: path, kind: status.kind) }
      guard status.st_uid == geteuid(), status.st_nlink == 1, UInt64(clamping: status.st_size) == content.byteCount
      else { throw .changed(path: path) }
      let allocated = UInt64(clamping: status.st_blocks) * 512
      if allocated < content.byteCount { try checkSpace(for: content.byteCount - allocated) }
      return .file(name: name, box)
    }
    let folder = PartFolder(
      name: name, path: path, files: files, folder: try open(name, O_RDONLY | O_DIRECTORY))
    guard try folder.status().st_uid == geteuid() else { throw .changed(path: path) }
    try folder.make(isResuming: true) { (file, path, byteCount) throws(DiskError) in
      try reserve(file, path, byteCount)
    }
    return .folder(folder)
  }

  /// One that an earlier run left, whatever it is.
  func removePart(named name: String) {
    if unlinkat(number, name, 0) != 0, errno == EISDIR || errno == EPERM { removeTree(number, name) }
  }

  func remove(_ part: Part) {
    if part.isFolder { removeTree(number, part.name) } else { remove(part.name) }
  }
}
