import CLinux
import Glibc
import ParleyVocabulary

/// Opens what a relative path names below an open folder, never through a link and never out of the folder: with the
/// kernel's help where it has openat2 (5.6; sandboxes may forbid it), else one component after the other. Returns -1
/// with errno set; ELOOP or ENOTDIR where a link stands in the way.
func openBeneath(_ folder: Int32, _ relative: String, _ flags: Int32, mode: UInt32 = 0) -> Int32 {
  // openat2 takes no others beside O_PATH.
  let isPath = flags & Int32(PARLEY_O_PATH) != 0
  let flags = flags | O_NOFOLLOW | O_CLOEXEC | (isPath ? 0 : O_NONBLOCK | O_NOCTTY)
  let number = parley_openat2(folder, relative, flags, mode, UInt32(PARLEY_RESOLVE_SAFELY))
  if number >= 0 || errno != ENOSYS && errno != EPERM { return number }
  return openStepwise(folder, relative, flags, mode: mode)
}

func openStepwise(_ folder: Int32, _ relative: String, _ flags: Int32, mode: UInt32) -> Int32 {
  var components = relative.unicodeScalars.split(separator: "/").map(String.init)
  guard let last = components.popLast(), last != "..", !components.contains("..") else {
    errno = EXDEV
    return -1
  }
  var current = folder
  for component in components {
    let next = openat(current, component, Int32(PARLEY_O_PATH) | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
    let code = errno
    if current != folder { close(current) }
    guard next >= 0 else {
      errno = code
      return -1
    }
    current = next
  }
  let number = openat(current, last, flags, mode)
  let code = errno
  if current != folder { close(current) }
  errno = code
  return number
}

/// Where the bytes of one file of a media ID lie, and what the file was when they were hashed.
package struct FileSource: Equatable, Sendable {
  /// A file, or the folder that was shared; absolute.
  package let root: String
  /// Below the folder; nil when `root` is the file. No component of it may be a link: nobody chose that one.
  package let relative: String?
  package let facts: FileFacts

  package init(root: String, relative: String? = nil, facts: FileFacts) {
    self.root = root
    self.relative = relative
    self.facts = facts
  }

  package var path: String { relative.map { root == "/" ? root + $0 : root + "/" + $0 } ?? root }

  /// `.changed` when it is not what it was.
  func open() throws(DiskError) -> Descriptor {
    guard relative == nil else { return try open(in: OpenFolder(root)) }
    let file = try SharedFile.open(root)
    guard FileFacts(try file.status(root)) == facts else { throw .changed(path: root) }
    return file
  }

  func open(in folder: borrowing OpenFolder) throws(DiskError) -> Descriptor {
    precondition(relative != nil, "what lies in a folder has a path below it")
    let file = try folder.openFile(relative!, path: path)
    guard FileFacts(try file.status(path)) == facts else { throw .changed(path: path) }
    return file
  }

  /// Throws `.changed` when the file is not what it was.
  package func check() throws(DiskError) { _ = try open() }
}

extension FileFacts {
  /// The device is left out: a file system may get another number when it is mounted again.
  package func isAs(_ byteCount: UInt64, _ modifiedNanoseconds: Int64, _ inode: UInt64) -> Bool {
    self.byteCount == byteCount && self.modifiedNanoseconds == modifiedNanoseconds && self.inode == inode
  }

  /// Whether a later change would have shown in the time of change, had it been made after `nanoseconds` (since 1970)
  /// by the system's clock. File systems take the time from a clock that moves every 1 to 10 ms; one that shows whole
  /// seconds may know nothing finer (FAT: two seconds).
  package func isSettled(at nanoseconds: Int64) -> Bool {
    let isCoarse = modifiedNanoseconds % 1_000_000_000 == 0
    let (age, overflow) = nanoseconds.subtractingReportingOverflow(modifiedNanoseconds)
    return !overflow && age > (isCoarse ? 3_000_000_000 : 50_000_000)
  }
}

extension FileSource {
  /// Files below a folder, and which of them are not as they were: those cannot be read.
  package static func restored(
    in root: String,
    _ expected: [(relative: String, byteCount: UInt64, modifiedNanoseconds: Int64, inode: UInt64)]
  ) throws(DiskError) -> (sources: [FileSource], changed: Set<Int>) {
    let folder = try OpenFolder(root)
    var sources: [FileSource] = []
    var changed: Set<Int> = []
    sources.reserveCapacity(expected.count)
    for (index, file) in expected.enumerated() {
      var facts: FileFacts?
      do throws(DiskError) { facts = try folder.facts(file.relative) } catch {
        guard error.isOfAFileThatIsGone else { throw error }
      }
      if facts?.isAs(file.byteCount, file.modifiedNanoseconds, file.inode) != true {
        changed.insert(index)
        // As it was: what stands there now is something else, and is not read.
        facts = FileFacts(
          byteCount: file.byteCount, modifiedNanoseconds: file.modifiedNanoseconds, inode: file.inode, device: 0)
      }
      sources.append(FileSource(root: root, relative: file.relative, facts: facts!))
    }
    return (sources, changed)
  }
}

/// A folder held open, through which what lies below is reached.
struct OpenFolder: ~Copyable {
  let path: String
  let descriptor: Descriptor

  /// A link at `path` itself is followed: whoever named it chose it.
  init(_ path: String) throws(DiskError) {
    let number = Glibc.open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    guard number >= 0 else { throw .system(path, "opening the folder") }
    self.path = path
    descriptor = Descriptor(number)
  }

  /// Of a regular file below.
  func facts(_ relative: String) throws(DiskError) -> FileFacts {
    let path = path + "/" + relative
    let number = openBeneath(descriptor.number, relative, Int32(PARLEY_O_PATH))
    guard number >= 0 else { throw .system(path, "looking for it") }
    let status = try Descriptor(number).status(path)
    guard status.isRegularFile else { throw .notARegularFile(path: path, kind: status.kind) }
    return FileFacts(status)
  }

  /// For reading. Looked at before it is read from; opening a FIFO or a device that somebody put there meanwhile does
  /// not block (O_NONBLOCK).
  func openFile(_ relative: String, path: String) throws(DiskError) -> Descriptor {
    let number = openBeneath(descriptor.number, relative, O_RDONLY)
    if number < 0, errno == ELOOP { throw .notARegularFile(path: path, kind: "symbolic link") }
    guard number >= 0 else { throw .system(path, "opening") }
    let file = Descriptor(number)
    let status = try file.status(path)
    guard status.isRegularFile else { throw .notARegularFile(path: path, kind: status.kind) }
    return file
  }
}
