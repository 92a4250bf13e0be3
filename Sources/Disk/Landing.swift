import CLinux
import Glibc
import ParleyVocabulary

/// Where a download comes down: a hidden part file beside the target, which takes the target's name only when it is
/// whole and on the disk. All operations go through the open folder, so a folder exchanged for a link meanwhile leads
/// nowhere. Not for use from two threads at once; every call may block.
package final class Landing {
  package enum Target: Equatable, Sendable {
    /// A received name in a folder; taken names are numbered, nothing is ever replaced.
    case folder(String, SafeFileName)
    /// A path that the user typed.
    case file(String, mayReplace: Bool)
  }

  package let target: Target
  package let byteCount: UInt64
  /// The name of the part file in the target's folder, to be remembered for resuming.
  package let partName: String
  private let place: Place
  private let part: Part
  private let facts: stat
  private enum State { case open, landed, left }
  private var state = State.open
  private let noReplaceRename: Bool

  /// Checks the space, makes the part file and reserves its blocks.
  package convenience init(_ target: Target, byteCount: UInt64) throws(DiskError) {
    try self.init(target, byteCount: byteCount, candidates: { Self.randomName() })
  }

  /// `candidates` draws names for the part file; `noReplaceRename` false takes the way of file systems that lack it.
  init(
    _ target: Target, byteCount: UInt64, noReplaceRename: Bool = true, candidates: () -> String
  ) throws(DiskError) {
    let place = try Place.open(target, byteCount: byteCount)
    try place.check(target)
    try place.checkSpace(for: byteCount)
    let part = try place.makePart(candidates)
    self.target = target
    self.byteCount = byteCount
    self.noReplaceRename = noReplaceRename
    partName = part.name
    do throws(DiskError) {
      try place.reserve(part.file, part.name, byteCount)
      facts = try part.file.status(place.path(part.name))
    } catch {
      place.remove(part.name)
      throw error
    }
    self.part = part
    self.place = place
  }

  /// Goes on with the part file of an earlier run. `.changed` when it is not as that run left it: of another size, of
  /// another owner, or linked elsewhere.
  package init(_ target: Target, byteCount: UInt64, resuming partName: String) throws(DiskError) {
    let place = try Place.open(target, byteCount: byteCount)
    try place.check(target)
    let path = place.path(partName)
    guard Self.isPartName(partName), !partName.utf8.contains(UInt8(ascii: "/")) else {
      throw .failed(path: path, operation: "resuming", reason: "this is not the name of a part file")
    }
    let file = try place.open(partName, O_RDWR)
    let status = try file.status(path)
    guard status.isRegularFile else { throw .notARegularFile(path: path, kind: status.kind) }
    guard status.st_uid == geteuid(), status.st_nlink == 1, UInt64(clamping: status.st_size) == byteCount else {
      throw .changed(path: path)
    }
    let allocated = UInt64(clamping: status.st_blocks) * 512
    if allocated < byteCount {
      try place.checkSpace(for: byteCount - allocated)
      try place.reserve(file, partName, byteCount)
    }
    self.target = target
    self.byteCount = byteCount
    self.partName = partName
    noReplaceRename = true
    facts = status
    part = Part(name: partName, file: file)
    self.place = place
  }

  /// Neither landed nor kept: nothing is left behind.
  deinit { if state == .open { place.remove(partName) } }

  package func write(_ bytes: [UInt8], at offset: UInt64) throws(DiskError) {
    precondition(state == .open, "nothing is written after landing")
    precondition(
      offset <= byteCount && UInt64(bytes.count) <= byteCount - offset, "a piece lies within its file")
    let path = place.path(partName)
    var failure: DiskError?
    bytes.withUnsafeBytes { buffer in
      var done = 0
      while done < buffer.count {
        let count = pwrite(
          part.file.number, buffer.baseAddress! + done, buffer.count - done, off_t(offset) + off_t(done))
        if count >= 0 {
          done += count
        } else if errno != EINTR {
          failure = place.writingFailed(path, need: UInt64(buffer.count - done))
          return
        }
      }
    }
    if let failure { throw failure }
  }

  /// What was written there, by this run or the one that left the part file.
  package func read(offset: UInt64, byteCount: Int) throws(DiskError) -> [UInt8] {
    precondition(
      byteCount >= 0 && offset <= self.byteCount && UInt64(byteCount) <= self.byteCount - offset,
      "a piece lies within its file")
    let path = place.path(partName)
    var failure: DiskError?
    let bytes = [UInt8](unsafeUninitializedCapacity: byteCount) { buffer, count in
      do throws(DiskError) {
        let isWhole = try ParleyDisk.read(part.file.number, UnsafeMutableRawBufferPointer(buffer), at: offset, path)
        if isWhole { count = byteCount } else { failure = .changed(path: path) }
      } catch {
        failure = error
      }
    }
    if let failure { throw failure }
    return bytes
  }

  /// After this, what was written survives a crash; a bitmap of pieces may be remembered.
  package func synchronize() throws(DiskError) {
    guard fdatasync(part.file.number) == 0 else { throw .system(place.path(partName), "writing it to the disk") }
  }

  /// Gives the whole file its name, and says the path. May be tried again after an error (`.exists` for a path that may
  /// not be replaced): the part file stays until `abort` or the end of this object.
  package func finish() throws(DiskError) -> String {
    precondition(state == .open, "a download lands once")
    let partPath = place.path(partName)
    guard fchmod(part.file.number, 0o644 & ~Self.umask()) == 0 else {
      throw .system(partPath, "setting its permissions")
    }
    guard fsync(part.file.number) == 0 else { throw .system(partPath, "writing it to the disk") }
    try place.checkStillThere(partName, facts)
    let name = try rename()
    state = .landed
    try place.synchronize()
    return place.path(name)
  }

  /// Gives up. A part that is kept can be resumed under `partName`.
  package func abort(keepingPart: Bool) {
    guard state == .open else { return }
    state = .left
    if keepingPart { fdatasync(part.file.number) } else { place.remove(partName) }
  }

  private func rename() throws(DiskError) -> String {
    switch target {
    case .file(_, let mayReplace):
      if mayReplace {
        try place.replace(partName, place.name)
      } else if try !place.take(partName, place.name, noReplaceRename) {
        throw .exists(path: place.path(place.name))
      }
      return place.name
    case .folder(_, let safe):
      if try place.take(partName, place.name, noReplaceRename) { return place.name }
      for number in 2...Self.numberMax {
        let name = safe.numbered(number)
        if try place.take(partName, name, noReplaceRename) { return name }
      }
      throw .exists(path: place.path(safe.numbered(Self.numberMax)))
    }
  }

  private static let numberMax = 9_999

  /// Whether a name is one that `randomName` gives.
  static func isPartName(_ name: String) -> Bool { name.hasPrefix(".parley-") && name.hasSuffix(".part") }

  private static func randomName() -> String {
    let bytes = (0..<10).map { _ in UInt8.random(in: 0...255) }
    return ".parley-\(Base32.encode(bytes)).part"
  }

  /// The process's file mode creation mask. umask(2) can only be read by setting it, which would race with other
  /// threads; the kernel shows it in /proc since 4.7. Where it does not, the file stays its owner's alone.
  private static func umask() -> mode_t {
    guard let stream = fopen("/proc/self/status", "re") else { return 0o077 }
    defer { fclose(stream) }
    var line = [CChar](repeating: 0, count: 256)
    while fgets(&line, Int32(line.count), stream) != nil {
      if strncmp(line, "Umask:", 6) == 0 {
        return line.withUnsafeBufferPointer { mode_t(strtoul($0.baseAddress! + 6, nil, 8)) }
      }
    }
    return 0o077
  }
}
