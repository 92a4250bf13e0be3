import CLinux
import Glibc
import ParleyHashing
import ParleyVocabulary
import ParleyWire

/// One file, hashed and ready to be served from where it lies.
package struct ScannedFile: Equatable, Sendable {
  /// As the manifest spells it.
  package let components: [String]
  package let source: FileSource
  package let isExecutable: Bool
  package let pieceHashes: [Hash32]
  package let root: Hash32

  package var byteCount: UInt64 { source.facts.byteCount }
}

/// A file or a folder read once and hashed, ready to be announced.
package struct ScannedShare: Equatable, Sendable {
  /// Absolute.
  package let path: String
  /// Fit for a message.
  package let name: String
  package let isFolder: Bool
  /// In the manifest's order.
  package let files: [ScannedFile]
  package let skipped: SkippedFiles

  package var byteCount: UInt64 { files.reduce(0) { $0 + $1.byteCount } }

  /// A folder's MIME type is that of folders, whatever is given.
  package func manifest(mimeType: String? = nil) throws(WireError) -> MediaManifest {
    let entries = files.map {
      MediaManifest.File(path: $0.components, byteCount: $0.byteCount, root: $0.root, isExecutable: $0.isExecutable)
    }
    return try MediaManifest(files: entries, mimeType: isFolder ? MediaManifest.folderType : mimeType)
  }
}

package enum SharedFile {
  /// 64 TiB: what the messages of a media session can count.
  package static let byteCountMax = UInt64(MediaMessage.pieceCountMax) * UInt64(Limit.mediaPieceByteCount)

  /// Lists, reads and hashes: for what needs no hashes of earlier times and no word in between.
  package static func scan(
    _ path: String, threadCountMax: Int = 8, progress: (UInt64, UInt64) -> Bool = { _, _ in true }
  ) throws(DiskError) -> ScannedShare {
    try scan(try SharedListing.of(path), threadCountMax: threadCountMax, progress: progress)
  }

  /// Reads and hashes on all cores; blocks until done. Memory: one piece a thread and 32 bytes a piece; at most one
  /// open file a thread. `known`: hashes of pieces of files, by their place in the listing, that are not read again.
  ///
  /// `progress` is called on the calling thread with bytes done so far (known ones included) and bytes in all, about
  /// once a mebibyte and at the end; returning false stops with `.stopped`. A file that cannot be read, or changes
  /// meanwhile, is an error when it is the only one, and skipped in a folder.
  package static func scan(
    _ listing: SharedListing, known: [Int: [Hash32]] = [:], threadCountMax: Int = 8,
    progress: (UInt64, UInt64) -> Bool = { _, _ in true }
  ) throws(DiskError) -> ScannedShare {
    let work = try HashingWork(listing, known: known)
    let coreCount = max(1, sysconf(Int32(_SC_NPROCESSORS_ONLN)))
    let threadCount = min(max(1, threadCountMax), coreCount, work.unitCount)
    var threads: [pthread_t] = []
    for _ in 1..<max(1, threadCount) {
      var thread = pthread_t()
      let box = Unmanaged.passRetained(work)
      let code = pthread_create(
        &thread, nil,
        { argument in
          let work = Unmanaged<HashingWork>.fromOpaque(argument!).takeRetainedValue()
          work.run { _ in true }
          return nil
        }, box.toOpaque())
      // Without a further thread it is slower, not wrong.
      if code == 0 { threads.append(thread) } else { box.release() }
    }
    let byteCount = listing.byteCount
    work.run { $0 == byteCount || progress($0, byteCount) }
    for thread in threads { pthread_join(thread, nil) }
    // Whoever was last: the end is always told.
    if !progress(byteCount, byteCount) { work.stop() }
    return try work.result()
  }

  /// Looks before it opens: opening a device or a FIFO can have effects or block.
  static func open(_ path: String) throws(DiskError) -> Descriptor {
    var status = stat()
    guard stat(path, &status) == 0 else { throw .system(path, "looking for it") }
    guard status.isRegularFile else { throw .notARegularFile(path: path, kind: status.kind) }
    let number = Glibc.open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)
    guard number >= 0 else { throw .system(path, "opening") }
    let file = Descriptor(number)
    let opened = try file.status(path)
    guard opened.isRegularFile else { throw .notARegularFile(path: path, kind: opened.kind) }
    return file
  }

  /// With links resolved; as it is when nothing is there.
  package static func absolute(_ path: String) -> String {
    guard let resolved = realpath(path, nil) else { return path }
    defer { free(resolved) }
    return String(cString: resolved)
  }

  /// As whoever gave the path called it, unless that was `.` or the like.
  static func name(given path: String, absolute: String) -> String {
    for path in [path, absolute] {
      guard let last = path.unicodeScalars.split(separator: "/").last.map(String.init) else { continue }
      let isFit = last.utf8.count <= Limit.fileNameByteCountMax && last != "." && last != ".."
      if isFit, !last.utf8.contains(0) { return last }
    }
    return SafeFileName(received: absolute).text
  }
}

/// A shared file held open for serving. Safe to use from several threads: reading is positional and nothing else
/// changes.
package final class SharedFileReader: Sendable {
  private let file: Descriptor
  private let source: FileSource

  /// `.changed` when the file is not the one scanned.
  package init(_ source: FileSource) throws(DiskError) {
    file = try source.open()
    self.source = source
  }

  /// Below a folder that is open already.
  init(_ source: FileSource, in folder: borrowing OpenFolder) throws(DiskError) {
    file = try source.open(in: folder)
    self.source = source
  }

  /// Blocks. The check follows the read, so that bytes are handed on only if nothing had changed by then: a change
  /// before the read shows as well as one during it.
  package func read(offset: UInt64, byteCount: Int) throws(DiskError) -> [UInt8] {
    var failure: DiskError?
    let bytes = [UInt8](unsafeUninitializedCapacity: byteCount) { buffer, count in
      do throws(DiskError) {
        try read(
          into: UnsafeMutableRawBufferPointer(rebasing: UnsafeMutableRawBufferPointer(buffer)[..<byteCount]),
          offset: offset)
        count = byteCount
      } catch {
        failure = error
      }
    }
    if let failure { throw failure }
    return bytes
  }

  /// Fills the whole buffer.
  func read(into buffer: UnsafeMutableRawBufferPointer, offset: UInt64) throws(DiskError) {
    precondition(
      offset <= source.facts.byteCount && UInt64(buffer.count) <= source.facts.byteCount - offset,
      "requests are checked against the manifest before they reach the disk")
    guard try ParleyDisk.read(file.number, buffer, at: offset, source.path) else { throw .changed(path: source.path) }
    try check()
  }

  func check() throws(DiskError) {
    guard FileFacts(try file.status(source.path)) == source.facts else { throw .changed(path: source.path) }
  }

  /// Whether the file system keeps nothing there, so that it reads as zeros. False when it does not say.
  func isHole(offset: UInt64, byteCount: Int) -> Bool {
    let data = lseek(file.number, off_t(offset), Int32(PARLEY_SEEK_DATA))
    // ENXIO: there is no data from there to the end.
    return data < 0 ? errno == ENXIO : UInt64(data) >= offset + UInt64(byteCount)
  }

  func adviseSequential() { posix_fadvise(file.number, 0, 0, POSIX_FADV_SEQUENTIAL) }
}
