import ParleyVocabulary
import ParleyWire

/// One member that may hold the media, as a download sees it.
struct DownloadSource: Sendable {
  enum Holding: Sendable {
    case unknown
    case all
    case some(PieceSet)
  }

  enum Pending: Sendable {
    case manifest(offset: Int)
    /// The start of the manifest, only to see whether it answers.
    case probe
    case pieceHashes(run: Int)
    case have(first: Int)
    case blocks(BlockRun)

    /// Answers that are still to come.
    var answerCount: Int { if case .blocks(let run) = self { run.missingCount } else { 1 } }
  }

  /// Neighbouring blocks of a piece, asked for in one request and answered under as many numbers.
  struct BlockRun: Sendable {
    let piece: Int
    let first: Int
    let count: Int
    let askedAt: Instant
    /// Bit i: block `first` + i has not come.
    private(set) var missing: UInt64

    init(piece: Int, blocks: Range<Int>, askedAt: Instant) {
      self.piece = piece
      first = blocks.lowerBound
      count = blocks.count
      self.askedAt = askedAt
      missing = count == 64 ? .max : 1 << UInt64(count) - 1
    }

    var missingCount: Int { missing.nonzeroBitCount }
    func lacks(_ index: Int) -> Bool { missing & 1 << UInt64(index) != 0 }
    mutating func take(_ index: Int) { missing &= ~(1 << UInt64(index)) }
  }

  /// Every request has so many of its own; those of its answers are counted from its first.
  static let numbersPerRequest = UInt64(Limit.blocksPerPiece)
  static let windowMin = 16
  static let windowStart = 64
  static let windowMax = 512
  /// How much longer than at its best an answer may take before fewer blocks are asked for at once: what is queued on
  /// the way is also in the way of others' messages.
  static let latencyAllowance = Span.milliseconds(10)

  private(set) var holding = Holding.unknown
  var pending: [UInt64: Pending] = [:]
  /// Questions what it holds that were answered with a part: the answer comes again when it holds more. Value: their
  /// first piece.
  private(set) var listening: [UInt64: Int] = [:]
  /// Asked while it was busy, to be asked again.
  var haveToAsk: Set<Int> = []
  var blocksInFlight = 0
  /// Blocks asked for at once.
  private(set) var window = Self.windowStart
  /// The piece whose blocks are being asked for.
  var requesting: Int?
  /// Pieces it has on the way, as source or helper.
  var pieceCount = 0
  var lastProgress: Instant
  /// Nothing new is asked for until then.
  var pausedUntil: Instant
  /// Silent for two seconds: its pieces went to others, and it gets none until it answers.
  var isSlow = false
  /// Nothing it holds is free; until something is freed or it holds more it need not be looked through again. For one
  /// that holds all and is spared: nothing that nobody else holds.
  var hasNothing = false
  var hasNothingUnheld = false
  /// Answers that may still come for requests that were cancelled.
  var cancelledCount = 0
  /// How long its last whole piece took from first request to last block.
  var pieceDuration: Span?
  /// How often it did not have what it had said, and how often it lost a piece for being slow.
  var falseClaimCount = 0
  var slowCount = 0

  private var latencyMin = Span(microseconds: .max)
  private var roundLatencyMin = Span(microseconds: .max)
  private var roundLeft = Self.windowStart

  init(at now: Instant) {
    lastProgress = now
    pausedUntil = now
  }

  /// Requests go out a quarter of a window at a time: each costs its share of a message, a read, a change of threads.
  var hasRoom: Bool { blocksInFlight <= window - window / 4 }

  func isReady(at now: Instant) -> Bool { !isSlow && pausedUntil <= now }

  func mayBeAsked(at now: Instant) -> Bool { isReady(at: now) && hasRoom }

  var isAskedForManifest: Bool {
    pending.values.contains { if case .manifest = $0 { true } else { false } }
  }

  var isHoldingKnown: Bool { if case .unknown = holding { false } else { true } }
  var holdsAll: Bool { if case .all = holding { true } else { false } }
  var isPartial: Bool { if case .some(let pieces) = holding { pieces.count > 0 } else { false } }
  var isProven: Bool { pieceDuration != nil }
  var part: PieceSet? { if case .some(let pieces) = holding { pieces } else { nil } }

  func holds(_ piece: Int) -> Bool {
    switch holding {
    case .unknown: false
    case .all: true
    case .some(let pieces): pieces.contains(piece)
    }
  }

  mutating func holds(_ new: Holding) {
    holding = new
    hasNothing = false
    hasNothingUnheld = false
    if case .all = new { listening = [:] }
  }

  /// The same question asked again takes the place of the earlier one.
  mutating func listens(_ number: UInt64, from first: Int) {
    listening = listening.filter { $1 != first }
    listening[number] = first
  }

  mutating func forgetListening() { listening = [:] }

  mutating func forgetHolding() {
    holding = .unknown
    listening = [:]
  }

  /// Whether it was asked what it holds from that piece on.
  func hasAsked(from first: Int) -> Bool {
    listening.values.contains(first)
      || pending.values.contains { if case .have(first) = $0 { true } else { false } }
  }

  /// What this answers; nil when nothing is waiting for it.
  mutating func take(_ number: UInt64, _ reply: MediaReply, at now: Instant) -> Pending? {
    let index = Int(number % Self.numbersPerRequest)
    guard let slot = pending.index(forKey: number - UInt64(index)) else { return nil }
    let found = pending.values[slot]
    if case .blocks(var run) = found {
      guard index < run.count, run.lacks(index) else { return nil }
      run.take(index)
      if run.missing == 0 { pending.remove(at: slot) } else { pending.values[slot] = .blocks(run) }
      blocksInFlight -= 1
      if case .block = reply { answered(after: now - run.askedAt) }
    } else {
      guard index == 0 else { return nil }
      pending.remove(at: slot)
    }
    lastProgress = now
    isSlow = false
    return found
  }

  /// Once a window of answers: a quarter fewer when even the fastest of them had waited, else a quarter more.
  private mutating func answered(after latency: Span) {
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

  mutating func shrinkWindow() { window = Self.windowMin }
}
