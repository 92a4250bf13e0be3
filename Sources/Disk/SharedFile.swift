import Glibc
import ParleyHashing
import ParleyVocabulary
import ParleyWire
import Synchronization

/// A file read once and hashed, ready to be announced and served from where it lies.
package struct ScannedFile: Equatable, Sendable {
  package let path: String
  /// The last component of the path, fit for a manifest.
  package let name: String
  package let facts: FileFacts
  package let isExecutable: Bool
  package let pieceHashes: [Hash32]
  package let root: Hash32

  package var byteCount: UInt64 { facts.byteCount }

  package func manifest(mimeType: String? = nil) throws(WireError) -> MediaManifest {
    let file = MediaManifest.File(path: [name], byteCount: byteCount, root: root, isExecutable: isExecutable)
    return try MediaManifest(files: [file], mimeType: mimeType)
  }
}

package enum SharedFile {
  /// 64 TiB: what the messages of a media session can count.
  package static let byteCountMax = UInt64(MediaMessage.pieceCountMax) * UInt64(Limit.mediaPieceByteCount)

  /// Reads and hashes a file on all cores; blocks until done. `path` may be a symbolic link (its owner chose it) but
  /// must lead to a regular file. Memory: one piece a thread and 32 bytes a piece. `progress` is called on the calling
  /// thread with bytes hashed so far and bytes in all, about once a piece; returning false stops with `.stopped`.
  package static func scan(
    _ path: String, threadCountMax: Int = 8, progress: (UInt64, UInt64) -> Bool = { _, _ in true }
  ) throws(DiskError) -> ScannedFile {
    let file = try open(path)
    let status = try file.status(path)
    let facts = FileFacts(status)
    guard facts.byteCount <= byteCountMax else {
      throw .tooLarge(path: path, byteCount: facts.byteCount, byteCountMax: byteCountMax)
    }
    posix_fadvise(file.number, 0, 0, POSIX_FADV_SEQUENTIAL)
    let hashes = try hash(file, path, facts, threadCountMax: threadCountMax, progress: progress)
    guard FileFacts(try file.status(path)) == facts else { throw .changed(path: path) }
    return ScannedFile(
      path: path, name: name(of: path), facts: facts, isExecutable: status.st_mode & S_IXUSR != 0,
      pieceHashes: hashes, root: MediaTree.root(pieceHashes: hashes, byteCount: facts.byteCount))
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

  private static func name(of path: String) -> String {
    let last = path.unicodeScalars.split(separator: "/").last.map(String.init) ?? path
    let isFit = (1...Limit.fileNameByteCountMax).contains(last.utf8.count) && last != "." && last != ".."
    return isFit && !last.utf8.contains(0) ? last : SafeFileName(received: last).text
  }

  private static func hash(
    _ file: borrowing Descriptor, _ path: String, _ facts: FileFacts, threadCountMax: Int,
    progress: (UInt64, UInt64) -> Bool
  ) throws(DiskError) -> [Hash32] {
    let work = HashingWork(number: file.number, path: path, byteCount: facts.byteCount)
    let coreCount = max(1, sysconf(Int32(_SC_NPROCESSORS_ONLN)))
    let threadCount = min(max(1, threadCountMax), coreCount, work.pieceCount)
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
    work.run { progress($0, facts.byteCount) }
    for thread in threads { pthread_join(thread, nil) }
    return try work.result()
  }
}

/// Pieces handed out to threads. The file stays open until all have been joined.
private final class HashingWork: Sendable {
  private struct State {
    var next = 0
    var doneByteCount: UInt64 = 0
    var hashes: [Hash32]
    var error: DiskError?
  }

  private let number: Int32
  private let path: String
  private let byteCount: UInt64
  let pieceCount: Int
  private let state: Mutex<State>

  init(number: Int32, path: String, byteCount: UInt64) {
    self.number = number
    self.path = path
    self.byteCount = byteCount
    pieceCount = Int(MediaTree.pieceCount(byteCount: byteCount))
    let zero = Hash32(Bytes32(words: (0, 0, 0, 0)))
    state = Mutex(State(hashes: .init(repeating: zero, count: pieceCount)))
  }

  /// Hashes pieces until none is left or one failed.
  func run(_ progress: (UInt64) -> Bool) {
    guard pieceCount > 0 else { return }
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: Limit.mediaPieceByteCount, alignment: 4096)
    defer { buffer.deallocate() }
    while let piece = take() {
      do throws(DiskError) {
        let done = finish(piece, try hash(piece, buffer))
        if !progress(done) { throw .stopped(path: path) }
      } catch {
        state.withLock { state in if state.error == nil { state.error = error } }
        return
      }
    }
  }

  func result() throws(DiskError) -> [Hash32] {
    let (hashes, error) = state.withLock { ($0.hashes, $0.error) }
    if let error { throw error }
    return hashes
  }

  private func take() -> Int? {
    state.withLock { state in
      guard state.error == nil, state.next < pieceCount else { return nil }
      defer { state.next += 1 }
      return state.next
    }
  }

  private func finish(_ piece: Int, _ hash: Hash32) -> UInt64 {
    state.withLock { state in
      state.hashes[piece] = hash
      state.doneByteCount += UInt64(byteCount(of: piece))
      return state.doneByteCount
    }
  }

  private func byteCount(of piece: Int) -> Int {
    let start = UInt64(piece) * UInt64(Limit.mediaPieceByteCount)
    return Int(min(UInt64(Limit.mediaPieceByteCount), byteCount - start))
  }

  private func hash(_ piece: Int, _ buffer: UnsafeMutableRawBufferPointer) throws(DiskError) -> Hash32 {
    let bytes = UnsafeMutableRawBufferPointer(rebasing: buffer[..<byteCount(of: piece)])
    let offset = UInt64(piece) * UInt64(Limit.mediaPieceByteCount)
    guard try read(number, bytes, at: offset, path) else { throw .changed(path: path) }
    return MediaTree.pieceHash(of: UnsafeRawBufferPointer(bytes), isOnlyPiece: pieceCount == 1)
  }
}

/// A shared file held open for serving. Safe to use from several threads: reading is positional and nothing else
/// changes.
package final class SharedFileReader: Sendable {
  private let file: Descriptor
  private let path: String
  private let facts: FileFacts

  /// `.changed` when the file is not the one scanned.
  package init(path: String, facts: FileFacts) throws(DiskError) {
    let file = try SharedFile.open(path)
    guard FileFacts(try file.status(path)) == facts else { throw .changed(path: path) }
    self.file = file
    self.path = path
    self.facts = facts
  }

  /// Blocks. The check follows the read, so that bytes are handed on only if nothing had changed by then: a change
  /// before the read shows as well as one during it.
  package func read(offset: UInt64, byteCount: Int) throws(DiskError) -> [UInt8] {
    precondition(
      byteCount >= 0 && offset <= facts.byteCount && UInt64(byteCount) <= facts.byteCount - offset,
      "requests are checked against the manifest before they reach the disk")
    var failure: DiskError?
    let bytes = [UInt8](unsafeUninitializedCapacity: byteCount) { buffer, count in
      do throws(DiskError) {
        let isWhole = try ParleyDisk.read(file.number, UnsafeMutableRawBufferPointer(buffer), at: offset, path)
        if isWhole { count = byteCount } else { failure = .changed(path: path) }
      } catch {
        failure = error
      }
    }
    if let failure { throw failure }
    guard FileFacts(try file.status(path)) == facts else { throw .changed(path: path) }
    return bytes
  }
}
