import ParleyDisk
import ParleyHashing
import ParleyMachines
import ParleyVocabulary
import ParleyWire

/// Files on a thread of their own: reads for serving, pieces verified and written, landings. Two of these run, so that
/// a slow target does not hold up what is served.
package actor DiskActor {
  private let executor: ThreadExecutor
  private var readers: [MediaID: SharedFileReader] = [:]
  private var landings: [UInt32: Landing] = [:]

  package nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

  package init(executor: ThreadExecutor) { self.executor = executor }

  // MARK: Sharing

  /// Reads and hashes the whole file.
  package func scan(_ path: String) throws(DiskError) -> ScannedFile { try SharedFile.scan(path) }

  package func facts(of path: String) throws(DiskError) -> FileFacts { try FileFacts(path: path) }

  /// The first bytes of a file, for telling what it is.
  package func head(of path: String) throws(DiskError) -> [UInt8] {
    let facts = try FileFacts(path: path)
    return try SharedFileReader(path: path, facts: facts).read(offset: 0, byteCount: Int(min(facts.byteCount, 32)))
  }

  // MARK: Serving

  /// Keeps at most 64 files open.
  package func read(_ read: ServedRead, path: String, facts: FileFacts) throws(DiskError) -> [UInt8] {
    if readers[read.media] == nil {
      if readers.count >= 64 { readers = [:] }
      readers[read.media] = try SharedFileReader(path: path, facts: facts)
    }
    do { return try readers[read.media]!.read(offset: read.offset, byteCount: read.byteCount) } catch {
      readers[read.media] = nil
      throw error
    }
  }

  package func forget(_ media: MediaID) { readers[media] = nil }

  // MARK: Downloading

  /// Opens the target and reserves the space.
  package func land(_ tag: UInt32, _ target: Landing.Target, byteCount: UInt64) throws(DiskError) {
    landings[tag] = try Landing(target, byteCount: byteCount)
  }

  package func accepts(_ check: PieceCheck, _ bytes: [UInt8]) -> Bool { check.accepts(bytes) }

  package func write(_ tag: UInt32, _ bytes: [UInt8], at offset: UInt64) throws(DiskError) {
    try landings[tag]?.write(bytes, at: offset)
  }

  /// Syncs and names the file; says the path.
  package func finish(_ tag: UInt32) throws(DiskError) -> String? {
    guard let landing = landings[tag] else { return nil }
    let path = try landing.finish()
    landings[tag] = nil
    return path
  }

  package func abort(_ tag: UInt32) {
    landings.removeValue(forKey: tag)?.abort(keepingPart: false)
  }

  /// A copy of what is held here already, verified on the way.
  package func copy(
    _ tag: UInt32, from path: String, facts: FileFacts, hashes: [Hash32], progress: @Sendable (UInt64) -> Void
  ) throws(DiskError) {
    let reader = try SharedFileReader(path: path, facts: facts)
    var offset: UInt64 = 0
    for (piece, expected) in hashes.enumerated() {
      let count = Int(min(UInt64(Limit.mediaPieceByteCount), facts.byteCount - offset))
      let bytes = try reader.read(offset: offset, byteCount: count)
      guard PieceCheck(piece: piece, expected: expected, isOnlyPiece: hashes.count == 1).accepts(bytes) else {
        throw .changed(path: path)
      }
      try landings[tag]?.write(bytes, at: offset)
      offset += UInt64(count)
      progress(offset)
    }
  }
}
