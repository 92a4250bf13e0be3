import ParleyDisk
import ParleyHashing
import ParleyMachines
import ParleyStore
import ParleyVocabulary
import ParleyWire

/// What is to be done on the disk, in the order in which it was posted.
package enum DiskMail: Sendable {
  // Serving.
  case read(ServedRead, FileSource)
  case forget(MediaID)

  // Downloading, each under the tag of its download.
  /// Open the target and reserve its space; go on with the part file of that name when it is as it was left.
  case land(UInt32, Landing.Target, Landing.Content, resuming: String?)
  /// For others, of what was verified and written.
  case readPart(UInt32, ServedRead)
  /// Go on reserving its space.
  case reserve(UInt32)
  /// Which of these pieces does the part file hold?
  case recheck(UInt32, [PieceCheck])
  /// All that the store knows of the part has been found in it.
  case trust(UInt32)
  case verify(UInt32, PieceCheck, [UInt8])
  case write(UInt32, piece: Int, file: Int = 0, offset: UInt64, [UInt8])
  /// Pieces of a file that is held here already, checked on the way.
  case copy(UInt32, HeldFile, [PieceCheck])
  /// A piece of a file that is held here, for a reader.
  case readPiece(UInt32, FileSource, PieceCheck)
  /// What was written shall survive a crash; then let the store know.
  case synchronize(UInt32, [StoreWrite])
  case finish(UInt32)
  case abort(UInt32)
  /// Give up, but keep the part file; once it is on the disk let the store know.
  case keep(UInt32, [StoreWrite])
  /// Remove a part file of an earlier run.
  case discard(KeptDownload)
}

package enum DiskNews: Sendable {
  case readDone(UInt64, [UInt8])
  case readFailed(UInt64, MediaRefusal)
  /// `asLeft`: of a part that is gone on with, a flag for each file: nobody but the run before has written to it.
  case prepared(UInt32, partName: String, asLeft: [Bool]?)
  case rechecked(UInt32, good: [Int])
  case verified(UInt32, piece: Int, isGood: Bool)
  case written(UInt32, piece: Int)
  case copied(UInt32)
  case pieceRead(UInt32, piece: Int, [UInt8])
  /// The file held here is no longer what was shared.
  case copyFailed(UInt32, DiskError)
  /// `sources`: where each file of the manifest is now; nil for those that were not wanted.
  case landed(UInt32, path: String, sources: [FileSource?])
  case failed(UInt32, DiskError)
}

/// Files on a thread of their own: reads for serving, pieces verified and written, landings. Two of these run, so that
/// a slow target does not hold up what is served.
package actor DiskActor {
  private let executor: ThreadExecutor
  private struct ReaderKey: Hashable {
    let media: MediaID
    let file: Int
  }
  private var readers: [ReaderKey: SharedFileReader] = [:]
  private var landings: [UInt32: Landing] = [:]
  /// Hashed to see what is in part files.
  package private(set) var recheckedByteCount: UInt64 = 0

  package nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

  package init(executor: ThreadExecutor) { self.executor = executor }

  // MARK: Sharing

  package func list(
    _ path: String, progress: @Sendable (Int) -> Bool
  ) throws(DiskError) -> SharedListing { try SharedListing.of(path, progress: progress) }

  /// Reads and hashes what is not known. `progress`: bytes done and in all; false stops it.
  package func scan(
    _ listing: SharedListing, known: [Int: [Hash32]], progress: @Sendable (UInt64, UInt64) -> Bool
  ) throws(DiskError) -> ScannedShare { try SharedFile.scan(listing, known: known, progress: progress) }

  /// The first bytes of a file, for telling what it is.
  package func head(of source: FileSource) throws(DiskError) -> [UInt8] {
    try SharedFileReader(source).read(offset: 0, byteCount: Int(min(source.facts.byteCount, 32)))
  }

  /// What was shared in an earlier run, if it is still what it was; nil when what was stored of it makes no sense.
  package func restore(_ stored: StoredShare) throws(DiskError) -> HeldFile? { try HeldFile(restoring: stored) }

  // MARK: Serving and downloading

  /// Works off the mailbox until it is closed; what happened is posted to the media actor.
  package func run(_ mailbox: Mailbox<DiskMail>, _ switchboard: Switchboard) async {
    while true {
      let mail = await mailbox.next()
      if mail.isEmpty { return }
      for letter in mail {
        if let news = take(letter, switchboard.store) { switchboard.media.post(.disk(news)) }
        switch letter {
        // Behind what waits: pieces that have come are written meanwhile.
        case .land(let tag, _, _, _), .reserve(let tag):
          if landings[tag]?.isReserved == false { mailbox.post(.reserve(tag)) }
        default: continue
        }
      }
    }
  }

  private func take(_ letter: DiskMail, _ store: Mailbox<StoreMail>) -> DiskNews? {
    switch letter {
    case .read(let read, let source):
      do { return .readDone(read.id, try self.read(read, source)) } catch { return .readFailed(read.id, .changed) }
    case .forget(let media):
      readers = readers.filter { $0.key.media != media }
      return nil
    case .land(let tag, let target, let content, let partName): return land(tag, target, content, partName)
    case .readPart(let tag, let read):
      let bytes = try? landings[tag]?.read(offset: read.offset, byteCount: read.byteCount, file: read.file)
      return bytes.map { .readDone(read.id, $0) } ?? .readFailed(read.id, .unknown)
    case .reserve(let tag):
      return attempt(tag) { (landing) throws(DiskError) in
        try landing.reserveMore()
        return nil
      }
    case .recheck(let tag, let checks): return recheck(tag, checks)
    case .trust(let tag):
      landings[tag]?.trust()
      return nil
    case .verify(let tag, let check, let bytes):
      return .verified(tag, piece: check.piece, isGood: check.accepts(bytes))
    case .write(let tag, let piece, let file, let offset, let bytes):
      return attempt(tag) { (landing) throws(DiskError) in
        try landing.write(bytes, at: offset, file: file)
        return .written(tag, piece: piece)
      }
    case .copy(let tag, let file, let checks): return copy(tag, file, checks)
    case .readPiece(let tag, let source, let check):
      do throws(DiskError) {
        return .pieceRead(tag, piece: check.piece, try Self.read(check, source))
      } catch {
        return .copyFailed(tag, error)
      }
    case .synchronize(let tag, let writes):
      return attempt(tag) { (landing) throws(DiskError) in
        try landing.synchronize()
        store.post(.apply(writes))
        return nil
      }
    case .finish(let tag):
      return attempt(tag) { (landing) throws(DiskError) in
        let path = try landing.finish()
        landings[tag] = nil
        return .landed(tag, path: path, sources: (try? landing.sources(at: path)) ?? [])
      }
    case .abort(let tag):
      landings.removeValue(forKey: tag)?.abort(keepingPart: false)
      return nil
    case .keep(let tag, let writes):
      guard let landing = landings.removeValue(forKey: tag) else { return nil }
      if landing.abort(keepingPart: true) { store.post(.apply(writes)) }
      return nil
    case .discard(let download):
      download.removePart()
      return nil
    }
  }

  /// What is asked of a download that was given up is let go.
  private func attempt(_ tag: UInt32, _ act: (Landing) throws(DiskError) -> DiskNews?) -> DiskNews? {
    guard let landing = landings[tag] else { return nil }
    do throws(DiskError) { return try act(landing) } catch { return .failed(tag, error) }
  }

  /// Keeps at most 64 files open.
  private func read(_ read: ServedRead, _ source: FileSource) throws(DiskError) -> [UInt8] {
    try bytes(read.media, read.file, source, offset: read.offset, byteCount: read.byteCount)
  }

  private func bytes(
    _ media: MediaID, _ file: Int, _ source: FileSource, offset: UInt64, byteCount: Int
  ) throws(DiskError) -> [UInt8] {
    let key = ReaderKey(media: media, file: file)
    if readers[key] == nil {
      if readers.count >= 64 { readers = [:] }
      readers[key] = try SharedFileReader(source)
    }
    do { return try readers[key]!.read(offset: offset, byteCount: byteCount) } catch {
      readers[key] = nil
      throw error
    }
  }

  private func land(
    _ tag: UInt32, _ target: Landing.Target, _ content: Landing.Content, _ partName: String?
  ) -> DiskNews {
    do throws(DiskError) {
      if let partName, let landing = try resumed(target, content, partName) {
        landings[tag] = landing
        return .prepared(tag, partName: partName, asLeft: (0..<content.fileCount).map { landing.isAsLeft(file: $0) })
      }
      let landing = try Landing(target, content)
      landings[tag] = landing
      return .prepared(tag, partName: landing.partName, asLeft: nil)
    } catch {
      return .failed(tag, error)
    }
  }

  /// Nil when it is gone or was changed: that one is of no use any more. What keeps it from being opened for now is an
  /// error, and the part stays.
  private func resumed(
    _ target: Landing.Target, _ content: Landing.Content, _ partName: String
  ) throws(DiskError) -> Landing? {
    do throws(DiskError) { return try Landing(target, content, resuming: partName) } catch {
      switch error {
      case .noSuchFile, .notARegularFile, .notAFolder, .changed: return nil
      default: throw error
      }
    }
  }

  private static func read(
    _ check: PieceCheck, _ source: FileSource
  ) throws(DiskError) -> [UInt8] {
    let bytes = try SharedFileReader(source).read(offset: check.place.offset, byteCount: check.place.byteCount)
    guard check.accepts(bytes) else { throw .changed(path: source.root) }
    return bytes
  }

  private func recheck(_ tag: UInt32, _ checks: [PieceCheck]) -> DiskNews? {
    guard let landing = landings[tag] else { return nil }
    let good = checks.filter { check in
      let place = check.place
      guard landing.hasData(offset: place.offset, byteCount: place.byteCount, file: place.file),
        let bytes = try? landing.read(offset: place.offset, byteCount: place.byteCount, file: place.file)
      else {
        return false
      }
      recheckedByteCount += UInt64(bytes.count)
      return check.accepts(bytes)
    }
    return .rechecked(tag, good: good.map(\.piece))
  }

  private func copy(_ tag: UInt32, _ held: HeldFile, _ checks: [PieceCheck]) -> DiskNews? {
    guard let landing = landings[tag] else { return nil }
    // Another file may stand there by the next time.
    defer { readers = [:] }
    for check in checks {
      let (source, place) = (held.sources[check.place.file], check.place)
      let bytes: [UInt8]
      do throws(DiskError) {
        bytes = try self.bytes(
          held.manifest.id, place.file, source, offset: place.offset, byteCount: place.byteCount)
        guard check.accepts(bytes) else { throw .changed(path: source.path) }
      } catch {
        return .copyFailed(tag, error)
      }
      do throws(DiskError) { try landing.write(bytes, at: place.offset, file: place.file) } catch {
        return .failed(tag, error)
      }
    }
    return .copied(tag)
  }
}
