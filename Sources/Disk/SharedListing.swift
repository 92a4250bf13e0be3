import Glibc
import ParleyHashing
import ParleyVocabulary
import ParleyWire

/// What is shared, before anything of it is read: one file, or the files of a folder in the manifest's order.
package struct SharedListing: Equatable, Sendable {
  package struct File: Equatable, Sendable {
    /// As the manifest spells it; for a single file its name.
    package let components: [String]
    package let source: FileSource
    package let isExecutable: Bool
  }

  /// Absolute, links resolved.
  package let path: String
  /// The last component, fit for a message.
  package let name: String
  package let isFolder: Bool
  package internal(set) var files: [File]
  package internal(set) var skipped = SkippedFiles()

  package var byteCount: UInt64 { files.reduce(0) { $0 + $1.source.facts.byteCount } }
}

/// Files of a folder that are not part of what is shared, each with a word why.
package struct SkippedFiles: Equatable, Sendable {
  package static let keptCountMax = 100
  package private(set) var first: [SkippedEntry] = []
  package private(set) var count = 0

  mutating func add(_ path: String, _ reason: String) {
    count += 1
    if first.count < Self.keptCountMax { first.append(SkippedEntry(path: path, reason: reason)) }
  }
}

package struct SkippedEntry: Equatable, Sendable {
  /// Below the shared folder; bytes that are no UTF-8 are shown as U+FFFD.
  package let path: String
  package let reason: String
}

extension SharedListing {
  /// Lists the file or folder at `path`, which may be a link to either. In a folder, what is no regular file is left
  /// out, as is what cannot be read or named; links are not followed. Folders without files leave no trace.
  /// `progress` is called about every 256 entries with the count of files so far; returning false stops it.
  package static func of(_ path: String, progress: (Int) -> Bool = { _ in true }) throws(DiskError) -> SharedListing {
    var status = stat()
    guard stat(path, &status) == 0 else { throw .system(path, "looking for it") }
    let absolute = SharedFile.absolute(path)
    let name = SharedFile.name(given: path, absolute: absolute)
    guard status.st_mode & S_IFMT == S_IFDIR else {
      guard status.isRegularFile else { throw .notARegularFile(path: path, kind: status.kind) }
      let facts = FileFacts(status)
      guard facts.byteCount <= SharedFile.byteCountMax else {
        throw .tooLarge(path: path, byteCount: facts.byteCount, byteCountMax: SharedFile.byteCountMax)
      }
      let file = File(
        components: [name], source: FileSource(root: absolute, facts: facts),
        isExecutable: status.st_mode & S_IXUSR != 0)
      return SharedListing(path: absolute, name: name, isFolder: false, files: [file])
    }
    let folder = try OpenFolder(absolute)
    var walk = Walk(root: absolute)
    try walk.visit(folder.descriptor.number, [], progress)
    guard !walk.files.isEmpty else { throw .noFiles(path: path, skippedCount: walk.skipped.count) }
    return SharedListing(path: absolute, name: name, isFolder: true, files: walk.files, skipped: walk.skipped)
  }

  /// Depth first, names of each folder in the order of their bytes: that is the manifest's order. At most 64 folders
  /// are open at once.
  private struct Walk {
    let root: String
    var files: [File] = []
    var skipped = SkippedFiles()
    /// Of the manifest, as far as the files go.
    private var manifestByteCount = 0
    private var pieceCount: UInt64 = 0
    private var entryCount = 0
    /// The system takes 4,095 bytes at once (PATH_MAX), with the receiver's own folder before them.
    private static let relativeByteCountMax = 3_800

    init(root: String) { self.root = root }

    mutating func visit(
      _ folder: Int32, _ parents: [String], _ progress: (Int) -> Bool
    ) throws(DiskError) {
      let names: [[CChar]]
      do throws(DiskError) { names = try entryNames(in: folder, shown(parents)) } catch {
        if parents.isEmpty { throw error }
        return skipped.add(parents.joined(separator: "/"), error.reason)
      }
      for bytes in names {
        entryCount += 1
        if entryCount % 256 == 0, !progress(files.count) { throw .stopped(path: root) }
        let units = bytes.dropLast().map(UInt8.init(bitPattern:))
        guard let name = String(validating: units, as: UTF8.self) else {
          skipped.add(
            (parents + [String(decoding: units, as: UTF8.self)]).joined(separator: "/"), "its name is not UTF-8")
          continue
        }
        try visit(folder, bytes, parents + [name], progress)
      }
    }

    private mutating func visit(
      _ folder: Int32, _ name: [CChar], _ components: [String], _ progress: (Int) -> Bool
    ) throws(DiskError) {
      let relative = components.joined(separator: "/")
      var status = stat()
      guard fstatat(folder, name, &status, AT_SYMLINK_NOFOLLOW) == 0 else {
        return skipped.add(relative, DiskError.system(relative, "looking at it").reason)
      }
      if let word = unfit(components, status) { return skipped.add(relative, word) }
      guard status.st_mode & S_IFMT == S_IFDIR else {
        guard faccessat(folder, name, R_OK, AT_EACCESS) == 0 else {
          return skipped.add(relative, DiskError.system(relative, "reading").reason)
        }
        return try add(components, relative, status)
      }
      let number = openat(folder, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
      guard number >= 0 else {
        return skipped.add(relative, DiskError.system(relative, "opening the folder").reason)
      }
      let below = Descriptor(number)
      try visit(below.number, components, progress)
    }

    private func unfit(_ components: [String], _ status: stat) -> String? {
      if components.count > MediaManifest.componentCountMax {
        return "it lies more than \(MediaManifest.componentCountMax) folders deep"
      }
      guard components.reduce(-1, { $0 + 1 + $1.utf8.count }) <= Self.relativeByteCountMax else {
        return "its path is longer than \(Self.relativeByteCountMax) bytes"
      }
      let name = components[components.count - 1]
      guard name.utf8.count <= Limit.fileNameByteCountMax else {
        return "its name is longer than \(Limit.fileNameByteCountMax) bytes"
      }
      if status.st_mode & S_IFMT == S_IFDIR {
        return Landing.isPartName(name) ? "it is an unfinished download" : nil
      }
      guard status.isRegularFile else { return "it is a \(status.kind)" }
      if Landing.isPartName(name) { return "it is an unfinished download" }
      guard UInt64(clamping: status.st_size) <= SharedFile.byteCountMax else {
        return "it is larger than \(SharedFile.byteCountMax) bytes"
      }
      return nil
    }

    private mutating func add(_ components: [String], _ relative: String, _ status: stat) throws(DiskError) {
      let facts = FileFacts(status)
      // Flags, count, components with up to 2 bytes of length each, size, root: at most so much.
      manifestByteCount += 1 + 1 + components.reduce(0) { $0 + 2 + $1.utf8.count } + 8 + 32
      guard manifestByteCount <= Limit.manifestByteCountMax - 256 else {
        throw .tooManyFiles(path: root, fileCount: files.count, byteCountMax: Limit.manifestByteCountMax)
      }
      let (pieces, _) = pieceCount.addingReportingOverflow(MediaTree.pieceCount(byteCount: facts.byteCount))
      guard pieces <= UInt64(MediaMessage.pieceCountMax) else {
        throw .tooLarge(
          path: root, byteCount: pieces * UInt64(Limit.mediaPieceByteCount), byteCountMax: SharedFile.byteCountMax)
      }
      pieceCount = pieces
      files.append(
        File(
          components: components, source: FileSource(root: root, relative: relative, facts: facts),
          isExecutable: status.st_mode & S_IXUSR != 0))
    }

    private func shown(_ components: [String]) -> String { ([root] + components).joined(separator: "/") }
  }
}

/// The names in an open folder, but `.` and `..`: NUL-terminated, in the order of their bytes.
func entryNames(in folder: Int32, _ path: String) throws(DiskError) -> [[CChar]] {
  // closedir closes what it was given, and the folder is still needed.
  let copy = fcntl(folder, F_DUPFD_CLOEXEC, 0)
  guard copy >= 0, let stream = fdopendir(copy) else {
    let error = DiskError.system(path, "reading the folder")
    if copy >= 0 { close(copy) }
    throw error
  }
  defer { closedir(stream) }
  var names: [[CChar]] = []
  while true {
    errno = 0
    guard let entry = readdir(stream) else { break }
    let name = withUnsafePointer(to: &entry.pointee.d_name) { pointer in
      pointer.withMemoryRebound(to: CChar.self, capacity: 256) { start in
        Array(UnsafeBufferPointer(start: start, count: strlen(start) + 1))
      }
    }
    if name != [46, 0], name != [46, 46, 0] { names.append(name) }
  }
  guard errno == 0 else { throw .system(path, "reading the folder") }
  return names.sorted { strcmp($0, $1) < 0 }
}
