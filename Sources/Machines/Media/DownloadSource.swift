import ParleyVocabulary

/// One member that may hold the media, as a download sees it.
struct DownloadSource {
  enum Holding {
    case unknown
    case all
    case some(PieceSet)
  }

  enum Pending {
    case manifest(offset: Int)
    /// The start of the manifest, only to see whether it answers.
    case probe
    case pieceHashes(first: Int, count: Int)
    case have(first: Int)
    case block(piece: Int, block: Int, askedAt: Instant)
  }

  static let windowMin = 16
  static let windowStart = 64
  static let windowMax = 512
  /// How much longer than at its best an answer may take before fewer blocks are asked for at once: what is queued on
  /// the way is also in the way of others' messages.
  static let latencyAllowance = Span.milliseconds(10)

  var holding = Holding.unknown
  var pending: [UInt64: Pending] = [:]
  /// Questions what it holds that were answered with a part: the answer comes again when it holds more. Value: their
  /// first piece.
  var listening: [UInt64: Int] = [:]
  /// Asked while it was busy, to be asked again.
  var haveToAsk: Set<Int> = []
  var blocksInFlight = 0
  /// Blocks asked for at once.
  private(set) var window = Self.windowStart
  /// The piece whose blocks are being asked for.
  var requesting: Int?
  var lastProgress: Instant
  /// Nothing new is asked for until then.
  var pausedUntil: Instant
  /// Silent for two seconds: its pieces went to others, and it gets none until it answers.
  var isSlow = false
  /// Answers that may still come for requests that were cancelled.
  var cancelledCount = 0
  /// How long its last whole piece took from first request to last block.
  var pieceDuration: Span?

  private var latencyMin = Span(microseconds: .max)
  private var roundLatencyMin = Span(microseconds: .max)
  private var roundLeft = Self.windowStart

  init(at now: Instant) {
    lastProgress = now
    pausedUntil = now
  }

  /// Requests go out a quarter of a window at a time, so that many share a write, a read and a change of threads.
  var hasRoom: Bool { blocksInFlight <= window - window / 4 }

  func isReady(at now: Instant) -> Bool { !isSlow && pausedUntil <= now }

  var holdsAll: Bool { if case .all = holding { true } else { false } }

  func holds(_ piece: Int) -> Bool {
    switch holding {
    case .unknown: false
    case .all: true
    case .some(let pieces): pieces.contains(piece)
    }
  }

  /// Once a window of answers: a quarter fewer when even the fastest of them had waited, else a quarter more.
  mutating func answered(after latency: Span) {
    latencyMin = min(latencyMin, latency)
    roundLatencyMin = min(roundLatencyMin, latency)
    roundLeft -= 1
    guard roundLeft <= 0 else { return }
    let waited = roundLatencyMin.microseconds - latencyMin.microseconds
    if waited > Self.latencyAllowance.microseconds {
      window = max(Self.windowMin, window - window / 4)
    } else {
      window = min(Self.windowMax, window + window / 4)
    }
    roundLatencyMin = Span(microseconds: .max)
    roundLeft = window
  }

  /// The same question asked again takes the place of the earlier one.
  mutating func listens(_ number: UInt64, from first: Int) {
    listening = listening.filter { $1 != first }
    listening[number] = first
  }

  /// Whether it was asked what it holds from that piece on.
  func hasAsked(from first: Int) -> Bool {
    listening.values.contains(first)
      || pending.values.contains { if case .have(first) = $0 { true } else { false } }
  }

  mutating func shrinkWindow() { window = Self.windowMin }
}

/// A piece on its way: all its blocks come from one source, so a wrong one has one culprit.
struct IncomingPiece {
  let source: PeerID
  let assignedAt: Instant
  private(set) var bytes: [UInt8]
  private(set) var next = 0
  private var receivedCount = 0

  /// `memory`: as long, and of any content.
  init(source: PeerID, byteCount: Int, at now: Instant, memory: [UInt8]? = nil) {
    self.source = source
    assignedAt = now
    bytes = memory ?? [UInt8](repeating: 0, count: byteCount)
  }

  var blockCount: Int { (bytes.count + Limit.mediaBlockByteCount - 1) / Limit.mediaBlockByteCount }
  var isRequested: Bool { next == blockCount }
  var isWhole: Bool { receivedCount == blockCount }

  mutating func takeNext() -> Int {
    defer { next += 1 }
    return next
  }

  /// False when the block is not as long as it must be. Each block is put once: the machine forgets a request with its
  /// answer.
  mutating func put(_ block: ArraySlice<UInt8>, at index: Int) -> Bool {
    let start = index * Limit.mediaBlockByteCount
    guard block.count == min(Limit.mediaBlockByteCount, bytes.count - start) else { return false }
    bytes.withUnsafeMutableBytes { buffer in
      block.withUnsafeBytes {
        buffer.baseAddress!.advanced(by: start).copyMemory(from: $0.baseAddress!, byteCount: $0.count)
      }
    }
    receivedCount += 1
    return true
  }
}

/// Memory of whole pieces that were written, for those to come: fresh memory costs a fault every page.
struct SparePieces {
  private var memory: [[UInt8]] = []

  mutating func keep(_ bytes: [UInt8]) { if bytes.count == Limit.mediaPieceByteCount { memory.append(bytes) } }

  mutating func piece(from source: PeerID, byteCount: Int, at now: Instant) -> IncomingPiece {
    let bytes = byteCount == Limit.mediaPieceByteCount ? memory.popLast() : nil
    return IncomingPiece(source: source, byteCount: byteCount, at: now, memory: bytes)
  }
}

/// Something fetched in parts of one size from one source: a manifest, or piece hashes.
struct PartAssembly {
  let source: PeerID
  private(set) var bytes: [UInt8]
  private let partByteCount: Int
  private var nextOffset = 0
  private var missingByteCount: Int

  init(source: PeerID, byteCount: Int, partByteCount: Int) {
    self.source = source
    self.partByteCount = partByteCount
    bytes = [UInt8](repeating: 0, count: byteCount)
    missingByteCount = byteCount
  }

  var isWhole: Bool { missingByteCount == 0 }

  /// The next part to ask for.
  mutating func takeNext() -> Range<Int>? {
    guard nextOffset < bytes.count else { return nil }
    defer { nextOffset += partByteCount }
    return nextOffset..<min(nextOffset + partByteCount, bytes.count)
  }

  /// False when it is not as long as the part at that offset.
  mutating func put(_ part: ArraySlice<UInt8>, at offset: Int) -> Bool {
    guard part.count == min(partByteCount, bytes.count - offset) else { return false }
    bytes.replaceSubrange(offset..<offset + part.count, with: part)
    missingByteCount -= part.count
    return true
  }
}
