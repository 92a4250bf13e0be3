import Glibc
import ParleyHashing
import ParleyVocabulary
import Synchronization

/// Pieces of files handed out to threads, in order: of a large file each thread takes a piece, small ones are one piece
/// each.
final class HashingWork: Sendable {
  private struct Progress {
    var hashes: [Hash32]
    var error: DiskError?
  }

  private struct State {
    var nextFile = 0
    var nextPiece = 0
    var doneByteCount: UInt64
    var progress: [Progress]
    var isStopped = false
  }

  private let listing: SharedListing
  private let folder: OpenFolder?
  private let pieceCounts: [Int]
  private let isKnown: [Bool]
  private let state: Mutex<State>

  init(_ listing: SharedListing, known: [Int: [Hash32]]) throws(DiskError) {
    self.listing = listing
    folder = listing.isFolder ? try OpenFolder(listing.path) : nil
    let counts = listing.files.map { Int(MediaTree.pieceCount(byteCount: $0.source.facts.byteCount)) }
    pieceCounts = counts
    let isKnown = counts.indices.map { known[$0]?.count == counts[$0] }
    self.isKnown = isKnown
    let zero = Hash32(Bytes32(words: (0, 0, 0, 0)))
    state = Mutex(
      State(
        doneByteCount: zip(listing.files, isKnown).reduce(0) { $0 + ($1.1 ? $1.0.source.facts.byteCount : 0) },
        progress: counts.indices.map { file in
          Progress(hashes: isKnown[file] ? known[file]! : .init(repeating: zero, count: counts[file]))
        }))
  }

  /// Pieces to be hashed.
  var unitCount: Int { zip(pieceCounts, isKnown).reduce(0) { $0 + ($1.1 ? 0 : $1.0) } }

  /// Hashes until nothing is left for this thread or `progress`, given the bytes done so far about once a mebibyte,
  /// says to stop.
  func run(_ progress: (UInt64) -> Bool) {
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: Limit.mediaPieceByteCount, alignment: 4096)
    defer { buffer.deallocate() }
    var open: (file: Int, reader: SharedFileReader)?
    var told: UInt64 = 0
    while let (file, piece) = take() {
      do throws(DiskError) {
        if open?.file != file {
          open = nil
          open = (file, try reader(of: file))
        }
        let done = finish(file, piece, try hash(file, piece, open!.reader, buffer))
        guard done - told >= UInt64(Limit.mediaPieceByteCount) else { continue }
        told = done
        if !progress(done) { stop() }
      } catch {
        fail(file, piece, error)
      }
    }
  }

  func stop() { state.withLock { $0.isStopped = true } }

  func result() throws(DiskError) -> ScannedShare {
    let (all, isStopped) = state.withLock { ($0.progress, $0.isStopped) }
    if isStopped { throw .stopped(path: listing.path) }
    var skipped = listing.skipped
    var files: [ScannedFile] = []
    for (file, progress) in zip(listing.files, all) {
      if let error = progress.error {
        guard listing.isFolder else { throw error }
        skipped.add(file.components.joined(separator: "/"), error.reason)
        continue
      }
      files.append(
        ScannedFile(
          components: file.components, source: file.source, isExecutable: file.isExecutable,
          pieceHashes: progress.hashes,
          root: MediaTree.root(pieceHashes: progress.hashes, byteCount: file.source.facts.byteCount)))
    }
    guard !files.isEmpty else { throw .noFiles(path: listing.path, skippedCount: skipped.count) }
    return ScannedShare(
      path: listing.path, name: listing.name, isFolder: listing.isFolder, files: files, skipped: skipped)
  }

  private func take() -> (file: Int, piece: Int)? {
    state.withLock { state in
      while !state.isStopped, state.nextFile < pieceCounts.count {
        let isDone = isKnown[state.nextFile] || state.progress[state.nextFile].error != nil
        if isDone || state.nextPiece >= pieceCounts[state.nextFile] {
          state.nextFile += 1
          state.nextPiece = 0
          continue
        }
        defer { state.nextPiece += 1 }
        return (state.nextFile, state.nextPiece)
      }
      return nil
    }
  }

  private func reader(of file: Int) throws(DiskError) -> SharedFileReader {
    let reader: SharedFileReader
    switch folder {
    case .some(let folder): reader = try SharedFileReader(listing.files[file].source, in: folder)
    case nil: reader = try SharedFileReader(listing.files[file].source)
    }
    if pieceCounts[file] > 1 { reader.adviseSequential() }
    return reader
  }

  private func finish(_ file: Int, _ piece: Int, _ hash: Hash32) -> UInt64 {
    state.withLock { state in
      state.progress[file].hashes[piece] = hash
      state.doneByteCount += UInt64(byteCount(file, piece))
      return state.doneByteCount
    }
  }

  private func fail(_ file: Int, _ piece: Int, _ error: DiskError) {
    state.withLock { state in
      if state.progress[file].error == nil { state.progress[file].error = error }
    }
  }

  private func byteCount(_ file: Int, _ piece: Int) -> Int {
    let start = UInt64(piece) * UInt64(Limit.mediaPieceByteCount)
    return Int(min(UInt64(Limit.mediaPieceByteCount), listing.files[file].source.facts.byteCount - start))
  }

  private func hash(
    _ file: Int, _ piece: Int, _ reader: SharedFileReader, _ buffer: UnsafeMutableRawBufferPointer
  ) throws(DiskError) -> Hash32 {
    let offset = UInt64(piece) * UInt64(Limit.mediaPieceByteCount)
    let byteCount = byteCount(file, piece)
    let isOnlyPiece = pieceCounts[file] == 1
    if !isOnlyPiece, byteCount == Limit.mediaPieceByteCount, reader.isHole(offset: offset, byteCount: byteCount) {
      try reader.check()
      return MediaTree.zeroPieceHash
    }
    let bytes = UnsafeMutableRawBufferPointer(rebasing: buffer[..<byteCount])
    try reader.read(into: bytes, offset: offset)
    return MediaTree.pieceHash(of: UnsafeRawBufferPointer(bytes), isOnlyPiece: isOnlyPiece)
  }
}
