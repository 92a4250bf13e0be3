import ParleyDisk
import ParleyHashing
import ParleyMachines
import ParleyVocabulary
import ParleyWire
import Synchronization

/// Which bytes of a file somebody wants to read. What lies past its end is not there.
package enum ByteSelection: Equatable, Sendable {
  case all
  case bytes(Range<UInt64>)
  case from(UInt64)
  /// The last so many.
  case last(UInt64)

  /// Nil when there is nothing where it begins, unless everything is wanted of nothing.
  package func range(of byteCount: UInt64) -> Range<UInt64>? {
    switch self {
    case .all: 0..<byteCount
    case .bytes(let range): range.lowerBound < byteCount ? range.clamped(to: 0..<byteCount) : nil
    case .from(let start): start < byteCount ? start..<byteCount : nil
    case .last(let count): count > 0 && byteCount > 0 ? byteCount - min(count, byteCount)..<byteCount : nil
    }
  }
}

/// Verified pieces on their way to somebody who takes them in order. Those not taken yet count as pieces of the
/// download in memory: at most 16, and no more is asked for until some are taken.
struct MediaReader {
  let selection: ByteSelection
  let number: UInt32
  var byteCount: UInt64 = 0
  /// Nil until the manifest is there.
  var range: Range<UInt64>?
  /// Verified.
  var pieces: [Int: [UInt8]] = [:]
  /// The piece to be given next.
  var next = 0
  /// To be read from a file held here.
  var nextToRead = 0
  var end: DownloadEnd?
  /// Woken when something changes.
  var waiters: [CheckedContinuation<Void, Never>] = []

  static let piece = UInt64(Limit.mediaPieceByteCount)
  /// Read ahead from a file held here.
  static let readAheadMax = 4

  /// Past the last piece wanted.
  var pieceEnd: Int {
    guard let range, !range.isEmpty else { return 0 }
    return Int(clamping: (range.upperBound - 1) / Self.piece) + 1
  }
  var isAtEnd: Bool { range != nil && next >= pieceEnd }

  mutating func begin(_ byteCount: UInt64) -> Bool {
    if range != nil { return true }
    guard let range = selection.range(of: byteCount) else { return false }
    self.byteCount = byteCount
    self.range = range
    next = Int(clamping: range.lowerBound / Self.piece)
    nextToRead = next
    return true
  }

  /// The wanted part of the next piece, if it is there.
  mutating func take() -> (piece: Int, bytes: [UInt8])? {
    guard let range, let bytes = pieces.removeValue(forKey: next) else { return nil }
    let start = UInt64(next) * Self.piece
    let lower = max(range.lowerBound, start) - start
    let upper = min(range.upperBound, start + UInt64(bytes.count)) - start
    defer { next += 1 }
    return (next, lower == 0 && upper == bytes.count ? bytes : Array(bytes[Int(lower)..<Int(upper)]))
  }

  mutating func wake() {
    for waiter in waiters { waiter.resume() }
    waiters = []
  }
}

// MARK: - For who reads

extension MediaActor {
  /// So many are read at once; each takes up to 16 MiB.
  package static let readersMax = 8

  /// Ends a reading, from any thread. At once it makes room for another.
  package nonisolated func leaveReading(_ tag: UInt32) {
    endedReaders.withLock { _ = $0.insert(tag) }
    switchboard.media.post(.endReading(tag))
  }

  /// Starts reading to somebody who calls `nextBytes`. Nil when too many do already.
  package func read(_ order: DownloadOrder) -> UInt32? {
    // Of these the news is still on its way.
    for tag in endedReaders.withLock({ $0 }).sorted() { endReading(tag) }
    guard readers.count < Self.readersMax else { return nil }
    let tag = newTag()
    if order.isListed { enlist(order, tag, as: tag) }
    readers[tag] = MediaReader(selection: order.selection, number: tag)
    downloads[tag] = Download(
      machine: Self.machine(order.id, tag, DownloadOptions(isInOrder: true)), order: order, isRecorded: false)
    startReading(tag)
    flush()
    return tag
  }

  /// Once the manifest is there: how long the file is, and what of it is read.
  package func opened(_ tag: UInt32) async throws(DownloadEnd) -> (byteCount: UInt64, range: Range<UInt64>) {
    while true {
      guard let reader = readers[tag] else { throw .cancelled }
      if let range = reader.range { return (reader.byteCount, range) }
      if let end = reader.end { throw end }
      await change(of: tag) { $0.range != nil || $0.end != nil }
    }
  }

  /// What is being read, between `opened` and the end; nil for what is held here, and before and after.
  package func manifest(ofReading tag: UInt32) -> MediaManifest? { downloads[tag]?.machine.manifest }

  /// The next bytes, at most a piece; nil at the end.
  package func nextBytes(_ tag: UInt32) async throws(DownloadEnd) -> [UInt8]? {
    while true {
      guard let reader = readers[tag] else { throw .cancelled }
      if reader.isAtEnd { return nil }
      if let (piece, bytes) = readers[tag]!.take() {
        taken(tag, piece, bytes.count)
        return bytes
      }
      if let end = reader.end { throw end }
      await change(of: tag) { $0.isAtEnd || $0.end != nil || $0.pieces[$0.next] != nil }
    }
  }

  /// Looks again at the moment at which it begins to wait: between the caller's look and that one this actor may have
  /// done something else.
  private func change(of tag: UInt32, _ isThere: (MediaReader) -> Bool) async {
    await withCheckedContinuation { continuation in
      if let reader = readers[tag], !isThere(reader) {
        readers[tag]!.waiters.append(continuation)
      } else {
        continuation.resume()
      }
    }
  }

  /// Nobody reads it any more.
  func endReading(_ tag: UInt32) {
    endedReaders.withLock { _ = $0.remove(tag) }
    let isUnderWay = downloads[tag] != nil
    fail(tag, .cancelled)
    guard var reader = readers.removeValue(forKey: tag) else { return }
    reader.wake()
    // What broke before stays listed, so that the reason can be looked up.
    if isUnderWay { listed[reader.number] = nil }
  }

  private func taken(_ tag: UInt32, _ piece: Int, _ byteCount: Int) {
    let number = readers[tag]!.number
    if let done = listed[number]?.doneByteCount {
      listed[number]!.measure(done + UInt64(byteCount), at: SystemClock.now())
    }
    if downloads[tag]?.isOnNetwork == true { download(tag, .pieceWritten(piece)) } else { readMore(tag) }
    flush()
  }
}

// MARK: - Where the pieces come from

extension MediaActor {
  private func startReading(_ tag: UInt32) {
    let order = downloads[tag]!.order
    guard let file = held[order.id], file.manifest.files.count == 1 else { return startOnNetwork(tag) }
    downloads[tag]!.way = .copying(file, nextPiece: 0)
    guard beginReading(tag, file.manifest) else { return }
    readMore(tag)
  }

  /// The manifest is there: asked for is only what is wanted and not given yet.
  func prepareReader(_ tag: UInt32, _ manifest: MediaManifest) {
    guard manifest.files.count == 1 else {
      return fail(tag, .media(.severalFiles(count: manifest.files.count)))
    }
    guard beginReading(tag, manifest), let reader = readers[tag] else { return }
    let wanted = reader.next..<max(reader.next, reader.pieceEnd)
    var holding = PieceSet(pieceCount: Int(clamping: manifest.files[0].pieceCount))
    for piece in 0..<holding.pieceCount where !wanted.contains(piece) || reader.pieces[piece] != nil {
      holding.insert(piece)
    }
    download(tag, .prepared(holding: holding))
  }

  private func beginReading(_ tag: UInt32, _ manifest: MediaManifest) -> Bool {
    let byteCount = manifest.files[0].byteCount
    guard readers[tag]?.begin(byteCount) == true else {
      fail(tag, .outOfRange(byteCount: byteCount))
      return false
    }
    if let range = readers[tag]!.range {
      listed[readers[tag]!.number]?.byteCount = UInt64(range.count)
      listed[readers[tag]!.number]?.state = .running
    }
    readers[tag]!.wake()
    return true
  }

  func give(_ tag: UInt32, _ piece: Int, _ bytes: [UInt8]) {
    guard let reader = readers[tag] else { return }
    // Read from a file that was found changed behind it, and fetched again.
    guard piece >= reader.next else { return download(tag, .pieceWritten(piece)) }
    readers[tag]!.pieces[piece] = bytes
    readers[tag]!.wake()
  }

  /// From the file held here, a few pieces ahead of the reader.
  private func readMore(_ tag: UInt32) {
    guard case .copying(let file, _)? = downloads[tag]?.way, let reader = readers[tag] else { return }
    if reader.isAtEnd { return endOfReading(tag) }
    let hashes = file.hashes[0]
    let layout = MediaLayout(file.manifest)
    let end = min(reader.pieceEnd, reader.next + MediaReader.readAheadMax)
    for piece in reader.nextToRead..<max(reader.nextToRead, end) {
      let check = PieceCheck(
        piece: piece, layout.place(of: piece), expected: hashes[piece], isOnlyPiece: hashes.count == 1)
      serveDisk.post(.readPiece(tag, file.sources[0], check))
    }
    readers[tag]!.nextToRead = max(reader.nextToRead, end)
  }

  /// Everything that was wanted has been taken.
  func endOfReading(_ tag: UInt32) {
    guard let done = downloads.removeValue(forKey: tag) else { return }
    if let number = number(of: tag) { listed[number] = nil }
    readers[tag]?.wake()
    closeIdle(done.wanted)
    startNext()
  }
}
