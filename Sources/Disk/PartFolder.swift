import CLinux
import Glibc
import ParleyVocabulary

/// The hidden folder in which a folder comes down, reached through its open descriptor alone. Nobody else has a look at
/// it: its mode is 0700 until it takes its name.
final class PartFolder {
  let name: String
  /// For errors.
  let path: String
  let files: [Landing.File]
  private let folder: Descriptor
  private var opened: [Int: Descriptor.Box] = [:]
  /// When it was resumed: which files bore its mark.
  private(set) var isMarked: [Bool]

  /// So many files are kept open between two writes.
  static let openCountMax = 32

  init(name: String, path: String, files: [Landing.File], folder: consuming Descriptor) {
    self.name = name
    self.path = path
    self.files = files
    self.folder = folder
    isMarked = [Bool](repeating: false, count: files.count)
  }

  func status() throws(DiskError) -> stat { try folder.status(path) }

  /// The open file; to be used before the next call.
  func number(of file: Int) throws(DiskError) -> Int32 {
    if let box = opened[file] { return box.descriptor.number }
    let entry = files[file]
    precondition(entry.isWanted, "only what is wanted has a place")
    let path = path + "/" + entry.relative
    let number = openBeneath(folder.number, entry.relative, O_RDWR)
    if number < 0, errno == ELOOP { throw .changed(path: path) }
    guard number >= 0 else { throw .system(path, "opening") }
    let box = Descriptor.Box(Descriptor(number))
    let status = try box.descriptor.status(path)
    guard Self.isIntact(status, entry) else { throw .changed(path: path) }
    if opened.count >= Self.openCountMax { opened = [:] }
    opened[file] = box
    return number
  }

  private static func isIntact(_ status: stat, _ entry: Landing.File) -> Bool {
    status.isRegularFile && status.st_uid == geteuid() && status.st_nlink == 1
      && UInt64(clamping: status.st_size) == entry.byteCount
  }

  /// Makes folders and files and reserves their blocks. With `isResuming` what is there stays, if it is as an earlier
  /// run left it. `reserve` allocates.
  func make(
    isResuming: Bool, reserve: (borrowing Descriptor, String, UInt64) throws(DiskError) -> Void
  ) throws(DiskError) {
    if isResuming { for entry in files where !entry.isWanted { discard(entry.relative) } }
    // The folders on the way to the last file, the innermost last.
    var names: [String] = []
    var folders: [Descriptor.Box] = []
    for (index, entry) in files.enumerated() where entry.isWanted {
      var components = entry.relative.unicodeScalars.split(separator: "/").map(String.init)
      let last = components.removeLast()
      let common = zip(names, components).prefix { $0 == $1 }.count
      names.removeLast(names.count - common)
      folders.removeLast(folders.count - common)
      for component in components.dropFirst(common) {
        let parent = folders.last?.descriptor.number ?? folder.number
        names.append(component)
        folders.append(try Self.enter(component, of: parent, path + "/" + names.joined(separator: "/"), isResuming))
      }
      let parent = folders.last?.descriptor.number ?? folder.number
      isMarked[index] = try make(entry, last, in: parent, isResuming, reserve)
    }
  }

  /// What an earlier run wanted and this one does not, so that it does not land half done. Folders that are empty then
  /// go with it.
  private func discard(_ relative: String) {
    var components = relative.unicodeScalars.split(separator: "/").map(String.init)
    var flags: Int32 = 0
    while let last = components.popLast() {
      let parent =
        components.isEmpty
        ? fcntl(folder.number, F_DUPFD_CLOEXEC, 0)
        : openBeneath(folder.number, components.joined(separator: "/"), O_RDONLY | O_DIRECTORY)
      guard parent >= 0 else { return }
      defer { close(parent) }
      guard unlinkat(parent, last, flags) == 0 else { return }
      flags = AT_REMOVEDIR
    }
  }

  private static func enter(
    _ name: String, of parent: Int32, _ path: String, _ isResuming: Bool
  ) throws(DiskError) -> Descriptor.Box {
    if mkdirat(parent, name, 0o755) != 0, !(isResuming && errno == EEXIST) { throw .system(path, "making a folder") }
    let number = openBeneath(parent, name, O_RDONLY | O_DIRECTORY)
    guard number >= 0 else { throw .system(path, "opening a folder") }
    return Descriptor.Box(Descriptor(number))
  }

  /// Whether it was there and bore the mark of this part.
  private func make(
    _ entry: Landing.File, _ name: String, in parent: Int32, _ isResuming: Bool,
    _ reserve: (borrowing Descriptor, String, UInt64) throws(DiskError) -> Void
  ) throws(DiskError) -> Bool {
    let path = path + "/" + entry.relative
    if isResuming {
      let number = openBeneath(parent, name, O_RDWR)
      if number >= 0 {
        let file = Descriptor(number)
        let status = try file.status(path)
        guard Self.isIntact(status, entry) else { throw .changed(path: path) }
        let mark = PartMark(partName: self.name)
        let isMarked = mark.isOn(status)
        if UInt64(clamping: status.st_blocks) * 512 < entry.byteCount {
          try reserve(file, path, entry.byteCount)
          if isMarked { mark.put(on: file.number) }
        }
        return isMarked
      }
      guard errno == ENOENT, !entry.isBegun else { throw .changed(path: path) }
    }
    // What the umask leaves of it; nobody else gets into the folder before it is whole.
    let number = openBeneath(parent, name, O_RDWR | O_CREAT | O_EXCL, mode: entry.isExecutable ? 0o755 : 0o644)
    guard number >= 0 else { throw .system(path, "making a file") }
    let file = Descriptor(number)
    try reserve(file, path, entry.byteCount)
    return false
  }

  /// Everything in it survives a crash after this. One call for the file system rather than one for each file: of
  /// thousands of small ones each would wait for the disk.
  func synchronize() throws(DiskError) {
    opened = [:]
    guard parley_syncfs(folder.number) == 0 else { throw .system(path, "writing it to the disk") }
  }

  /// Says that it is still in use: parts not touched for a week are given up.
  func touch() { futimens(folder.number, nil) }

  func show() throws(DiskError) {
    opened = [:]
    guard fchmod(folder.number, 0o755 & ~Landing.umask()) == 0 else {
      throw .system(path, "setting its permissions")
    }
  }

  /// What each wanted file is now.
  func facts() throws(DiskError) -> [FileFacts?] {
    var all: [FileFacts?] = []
    for entry in files {
      guard entry.isWanted else {
        all.append(nil)
        continue
      }
      let number = openBeneath(folder.number, entry.relative, Int32(PARLEY_O_PATH))
      guard number >= 0 else { throw .system(path + "/" + entry.relative, "looking for it") }
      all.append(FileFacts(try Descriptor(number).status(path)))
    }
    return all
  }
}

extension Descriptor {
  /// Where a descriptor is kept among others.
  final class Box {
    let descriptor: Descriptor
    init(_ descriptor: consuming Descriptor) { self.descriptor = descriptor }
  }
}

/// Removes a folder with everything below it, never through a link. What is deeper than folders of downloads can be
/// stays.
func removeTree(_ parent: Int32, _ name: String, depth: Int = 0) {
  let number = openBeneath(parent, name, O_RDONLY | O_DIRECTORY)
  if number >= 0, depth < 80 {
    let folder = Descriptor(number)
    for child in (try? entryNames(in: folder.number, name)) ?? [] {
      if unlinkat(folder.number, child, 0) == 0 || errno == ENOENT { continue }
      child.withUnsafeBufferPointer { removeTree(folder.number, String(cString: $0.baseAddress!), depth: depth + 1) }
    }
  }
  _ = unlinkat(parent, name, AT_REMOVEDIR)
}
