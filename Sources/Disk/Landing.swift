import CLinux
import Glibc
import ParleyVocabulary
import ParleyWire

/// Where a download comes down: a hidden part file, or for a folder a hidden part folder, beside the target, which
/// takes the target's name only when it is whole and on the disk. All operations go through the open folder, so a
/// folder exchanged for a link meanwhile leads nowhere; those that make, rename or remove names are confined to it
/// besides (`Confined`). Not for use from two threads at once; every call may block.
package final class Landing {
  package enum Target: Equatable, Sendable {
    /// A received name in a folder; taken names are numbered, nothing is ever replaced.
    case folder(String, SafeFileName)
    /// A path that the user typed. A folder is never replaced.
    case file(String, mayReplace: Bool)
  }

  package enum Content: Equatable, Sendable {
    case file(byteCount: UInt64)
    /// In the manifest's order.
    case folder([File])
  }

  /// A file of a folder.
  package struct File: Equatable, Sendable {
    /// Below the folder, every component safe (`SafePaths`).
    package let relative: String
    package let byteCount: UInt64
    package let isExecutable: Bool
    /// Others have no place on the disk.
    package let isWanted: Bool
    /// An earlier run has written to it, so it must be there when that is resumed.
    package let isBegun: Bool

    package init(
      relative: String, byteCount: UInt64, isExecutable: Bool = false, isWanted: Bool = true, isBegun: Bool = false
    ) {
      self.relative = relative
      self.byteCount = byteCount
      self.isExecutable = isExecutable
      self.isWanted = isWanted
      self.isBegun = isBegun
    }
  }

  package let target: Target
  package let content: Content
  /// Of what is wanted.
  package let byteCount: UInt64
  /// The name of the part in the target's folder, to be remembered for resuming.
  package var partName: String { part.name }
  private let place: Place
  private let part: Part
  private let facts: stat
  private let mark: PartMark
  /// Whether what an earlier record says of the part is true of it, so that a mark may say so.
  private var isMarking: Bool
  private enum State { case open, landed, left }
  private var state = State.open
  private let noReplaceRename: Bool
  private var reservedByteCount: UInt64 = 0

  /// Checks the space, makes the part and reserves its blocks. Throws `.noSpace` with what is needed and what is there.
  package convenience init(_ target: Target, _ content: Content) throws(DiskError) {
    try self.init(target, content, candidates: { Self.randomName() })
  }

  /// A single file.
  package convenience init(_ target: Target, byteCount: UInt64) throws(DiskError) {
    try self.init(target, .file(byteCount: byteCount))
  }

  /// `candidates` draws names for the part; `noReplaceRename` false takes the way of file systems that lack it.
  init(
    _ target: Target, _ content: Content, noReplaceRename: Bool = true, candidates: () -> String
  ) throws(DiskError) {
    let place = try Place.open(target, byteCount: content.byteCount)
    try place.check(target, content)
    let need = try place.need(for: content)
    try place.checkSpace(for: need)
    part = try Confined.run(to: place.number) { () throws(DiskError) in
      try place.makePart(content, need: need, candidates)
    }
    facts = try part.status(place.path(part.name))
    mark = PartMark(partName: part.name)
    isMarking = true
    self.target = target
    self.content = content
    self.noReplaceRename = noReplaceRename
    self.place = place
    byteCount = content.byteCount
    try reserveMore()
  }

  /// Goes on with the part of an earlier run. `.changed` when it is not as that run left it: of another size, of
  /// another owner, linked elsewhere or, of a folder, with a file missing that had been begun.
  package init(_ target: Target, _ content: Content, resuming partName: String) throws(DiskError) {
    let place = try Place.open(target, byteCount: content.byteCount)
    try place.check(target, content)
    guard Self.isPartName(partName), !partName.utf8.contains(UInt8(ascii: "/")) else {
      throw .failed(path: place.path(partName), operation: "resuming", reason: "this is not the name of a part file")
    }
    part = try Confined.run(to: place.number) { () throws(DiskError) in try place.openPart(partName, content) }
    facts = try part.status(place.path(partName))
    mark = PartMark(partName: partName)
    switch part {
    case .file: isMarking = mark.isOn(facts)
    case .folder(let folder):
      isMarking = folder.files.indices.allSatisfy { !folder.files[$0].isBegun || folder.isMarked[$0] }
    }
    self.target = target
    self.content = content
    self.place = place
    noReplaceRename = true
    byteCount = content.byteCount
    do throws(DiskError) { try reserveMore() } catch {
      // What was kept stays.
      state = .left
      throw error
    }
  }

  package convenience init(_ target: Target, byteCount: UInt64, resuming partName: String) throws(DiskError) {
    try self.init(target, .file(byteCount: byteCount), resuming: partName)
  }

  /// Whether the blocks of all that is wanted are allocated.
  package var isReserved: Bool { reservedByteCount == byteCount }

  /// Allocates blocks of a file for some milliseconds; those of a folder are when it is made. On a disk that is enough
  /// for any file; file systems in memory take about as long as for writing, and what arrives shall not wait for that.
  package func reserveMore() throws(DiskError) {
    guard case .file(_, let box) = part else { return reservedByteCount = byteCount }
    let end = now() + 10_000_000
    var step: UInt64 = 16 << 20
    while !isReserved, now() < end {
      let next = min(reservedByteCount + step, byteCount)
      let canReserve: Bool
      do throws(DiskError) {
        canReserve = try place.reserve(box.descriptor, place.path(partName), reservedByteCount..<next)
      } catch {
        if case .noSpace(let path, _, let have) = error {
          throw .noSpace(path: path, need: byteCount - reservedByteCount, have: have)
        }
        throw error
      }
      reservedByteCount = canReserve ? next : byteCount
      step *= 2
    }
    if isMarking { mark.put(on: box.descriptor.number) }
  }

  /// Of a part that was resumed: nobody but the run that left it has written to this file. What was recorded of it
  /// after `synchronize` is there.
  package func isAsLeft(file: Int) -> Bool {
    switch part {
    case .file: mark.isOn(facts)
    case .folder(let folder): folder.isMarked[file]
    }
  }

  /// All that is recorded of the part has been found in it.
  package func trust() {
    guard !isMarking, state == .open else { return }
    isMarking = true
    switch part {
    case .file(_, let box): mark.put(on: box.descriptor.number)
    case .folder(let folder):
      // What was begun under another choice and is not wanted now has no place in this one.
      for file in folder.files.indices
      where folder.files[file].isWanted && folder.files[file].isBegun && !folder.isMarked[file] {
        if let number = try? folder.number(of: file) { mark.put(on: number) }
      }
    }
  }

  /// What a disk says was written after it has said that it was not is not believed (fsync reports an error once).
  private func distrust() {
    isMarking = false
    switch part {
    case .file(_, let box): mark.remove(from: box.descriptor.number)
    case .folder(let folder):
      for file in folder.files.indices where folder.files[file].isWanted {
        if let number = try? folder.number(of: file) { mark.remove(from: number) }
      }
    }
  }

  /// CLOCK_MONOTONIC, nanoseconds.
  private func now() -> UInt64 {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
  }

  /// Neither landed nor kept: nothing is left behind.
  deinit { if state == .open { removePart() } }

  private func removePart() {
    try? Confined.run(to: place.number) { () throws(DiskError) in place.remove(part) }
  }

  private func number(of file: Int) throws(DiskError) -> Int32 {
    switch part {
    case .file(_, let box): box.descriptor.number
    case .folder(let folder): try folder.number(of: file)
    }
  }

  /// `file`: its place in the manifest.
  package func write(_ bytes: [UInt8], at offset: UInt64, file: Int = 0) throws(DiskError) {
    precondition(state == .open, "nothing is written after landing")
    let total = content.byteCount(of: file)
    precondition(offset <= total && UInt64(bytes.count) <= total - offset, "a piece lies within its file")
    let number = try number(of: file)
    let path = place.path(partName)
    var failure: DiskError?
    bytes.withUnsafeBytes { buffer in
      var done = 0
      while done < buffer.count {
        let count = pwrite(number, buffer.baseAddress! + done, buffer.count - done, off_t(offset) + off_t(done))
        if count >= 0 {
          done += count
        } else if errno != EINTR {
          failure = place.writingFailed(path, need: UInt64(buffer.count - done))
          return
        }
      }
    }
    if let failure { throw failure }
    if isMarking { mark.put(on: number) }
  }

  /// What was written there, by this run or the one that left the part.
  package func read(offset: UInt64, byteCount: Int, file: Int = 0) throws(DiskError) -> [UInt8] {
    let total = content.byteCount(of: file)
    precondition(
      byteCount >= 0 && offset <= total && UInt64(byteCount) <= total - offset, "a piece lies within its file")
    let number = try number(of: file)
    let path = place.path(partName)
    var failure: DiskError?
    let bytes = [UInt8](unsafeUninitializedCapacity: byteCount) { buffer, count in
      do throws(DiskError) {
        let isWhole = try ParleyDisk.read(number, UnsafeMutableRawBufferPointer(buffer), at: offset, path)
        if isWhole { count = byteCount } else { failure = .changed(path: path) }
      } catch {
        failure = error
      }
    }
    if let failure { throw failure }
    return bytes
  }

  /// Whether anything was written there; true where the file system does not know.
  package func hasData(offset: UInt64, byteCount: Int, file: Int = 0) -> Bool {
    guard let number = try? number(of: file) else { return false }
    // Nothing else uses the file's position.
    let next = lseek(number, off_t(offset), Int32(PARLEY_SEEK_DATA))
    if next < 0 { return errno != ENXIO }
    return UInt64(next) < offset + UInt64(byteCount)
  }

  /// After this, what was written survives a crash; a bitmap of pieces may be remembered.
  package func synchronize() throws(DiskError) {
    do throws(DiskError) { try part.synchronize(place.path(partName)) } catch {
      distrust()
      throw error
    }
  }

  /// Gives the whole file or folder its name, and says the path. May be tried again after an error (`.exists` for a
  /// path that may not be replaced): the part stays until `abort` or the end of this object.
  package func finish() throws(DiskError) -> String {
    precondition(state == .open, "a download lands once")
    try part.show(place.path(partName))
    try synchronize()
    try place.checkStillThere(partName, facts)
    let name = try Confined.run(to: place.number) { () throws(DiskError) in try rename() }
    state = .landed
    try place.synchronize()
    return place.path(name)
  }

  /// After landing at `path`: where each file of the manifest is; nil for those that were not wanted.
  package func sources(at path: String) throws(DiskError) -> [FileSource?] {
    precondition(state == .landed, "what has landed can be served")
    let root = SharedFile.absolute(path)
    switch part {
    case .file(_, let box): return [FileSource(root: root, facts: FileFacts(try box.descriptor.status(path)))]
    case .folder(let folder):
      return zip(folder.files, try folder.facts()).map { file, facts in
        facts.map { FileSource(root: root, relative: file.relative, facts: $0) }
      }
    }
  }

  /// Gives up. A part that is kept can be resumed under `partName`; false when what was written last may not be in it.
  @discardableResult
  package func abort(keepingPart: Bool) -> Bool {
    guard state == .open else { return false }
    state = .left
    guard keepingPart else {
      removePart()
      return true
    }
    return (try? synchronize()) != nil
  }

  private func rename() throws(DiskError) -> String {
    switch target {
    case .file(_, let mayReplace):
      if mayReplace, !part.isFolder {
        try place.replace(partName, place.name)
      } else if try !place.take(part, place.name, noReplaceRename) {
        throw .exists(path: place.path(place.name))
      }
      return place.name
    case .folder(_, let safe):
      if try place.take(part, place.name, noReplaceRename) { return place.name }
      for number in 2...Self.numberMax {
        let name = safe.numbered(number)
        if try place.take(part, name, noReplaceRename) { return name }
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

  /// Removes the part of an earlier run.
  package static func removePart(_ name: String, in folder: String) {
    guard isPartName(name), !name.utf8.contains(UInt8(ascii: "/")),
      let place = try? Place.open(.folder(folder, SafeFileName(received: "")), byteCount: 0)
    else { return }
    try? Confined.run(to: place.number) { () throws(DiskError) in place.removePart(named: name) }
  }

  /// When the part of an earlier run was last written to, nanoseconds since 1970; nil when it is gone.
  package static func lastTouched(_ partPath: String) -> Int64? {
    var status = stat()
    guard lstat(partPath, &status) == 0 else { return nil }
    return FileFacts(status).modifiedNanoseconds
  }

  /// The process's file mode creation mask. umask(2) can only be read by setting it, which would race with other
  /// threads; the kernel shows it in /proc since 4.7. Where it does not, the file stays its owner's alone.
  static func umask() -> mode_t {
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

extension Landing.Content {
  /// What a manifest says, every name made safe. `wanted` and `begun`: by the place in the manifest. The executable
  /// flag is somebody else's word, and applied only when asked for.
  package init(
    _ manifest: MediaManifest, isWanted: (Int) -> Bool = { _ in true }, isBegun: (Int) -> Bool = { _ in false },
    isApplyingExecutable: Bool = false
  ) {
    guard manifest.isFolder else {
      self = .file(byteCount: manifest.files[0].byteCount)
      return
    }
    let places = SafePaths.of(manifest.files.map(\.path))
    self = .folder(
      zip(manifest.files.indices, manifest.files).map { index, file in
        Landing.File(
          relative: places[index], byteCount: file.byteCount, isExecutable: isApplyingExecutable && file.isExecutable,
          isWanted: isWanted(index), isBegun: isBegun(index))
      })
  }

  package var byteCount: UInt64 {
    switch self {
    case .file(let byteCount): byteCount
    case .folder(let files): files.reduce(0) { $0 + ($1.isWanted ? $1.byteCount : 0) }
    }
  }

  package var fileCount: Int {
    switch self {
    case .file: 1
    case .folder(let files): files.count
    }
  }

  func byteCount(of file: Int) -> UInt64 {
    switch self {
    case .file(let byteCount):
      precondition(file == 0, "a single file is file 0")
      return byteCount
    case .folder(let files): return files[file].byteCount
    }
  }
}
