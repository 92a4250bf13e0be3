import ParleyVocabulary
import ParleyWire

/// Bounds and times of messaging.
enum MessagingRule {
  static let submissionsByteCountMax = 4 << 20
  static let recordsByteCountMax = 8 << 20
  static let heldByteCountMax = 2 << 20
  static let batchByteCountMax = 1 << 20
  static let acknowledgeWithin = Span.milliseconds(10)
  static let announceFirst = Span.milliseconds(250)
  static let announceSlowest = Span.seconds(8)
  static let repairJitter = (Span.milliseconds(20), Span.milliseconds(80))
  static let repairTimeout = Span.seconds(2)
  static let repairSlowest = Span.seconds(8)
  static let digestPatience = Span.seconds(2)
  static let syncSlowest = Span.seconds(30)
  static let holePatience = Span.seconds(3)
  static let retryDisk = Span.seconds(1)
  static let resendPeer = Span.seconds(3)
  static let lazyFlush = Span.seconds(1)
  static let answerByteCountMax = 768 << 10
  static let acknowledgersMax = 32
  static let logsPerChannelMax = 100_000
}

/// How far one log is here.
struct LogState: Equatable, Sendable {
  /// Every number up to this is on the disk.
  var stored: UInt64
  /// Every number up to this is on the disk or on its way there.
  var queued: UInt64
  /// On the disk or on its way, above `queued`.
  var beyond: Set<UInt64> = []
  /// Genuine, waiting for what comes before.
  var held: [UInt64: Entry] = [:]
  /// The highest number that somebody said exists.
  var announced: UInt64
  /// Above `stored` but on the disk.
  var wasStoredBeyond: Set<UInt64> = []
  var holeSince: Instant?

  init(contiguous: UInt64 = 0, beyond: [UInt64] = []) {
    stored = contiguous
    queued = contiguous
    self.beyond = Set(beyond)
    wasStoredBeyond = self.beyond
    announced = max(contiguous, beyond.max() ?? 0)
  }

  func has(_ number: UInt64) -> Bool { number <= queued || beyond.contains(number) || held[number] != nil }
  var isLacking: Bool { announced > queued }

  mutating func advance() {
    while beyond.remove(queued + 1) != nil { queued += 1 }
  }

  /// What is missing, lowest first, at most `countMax` runs.
  func missing(_ key: LogKey, countMax: Int) -> [LogRange] {
    guard isLacking else { return [] }
    var ranges: [LogRange] = []
    var from = queued + 1
    for number in (held.keys + Array(beyond)).sorted() where number > queued {
      if number > from { ranges.append(LogRange(key: key, from: from, through: number - 1)) }
      from = number + 1
      if ranges.count == countMax { return ranges }
    }
    if from <= announced { ranges.append(LogRange(key: key, from: from, through: announced)) }
    return ranges
  }
}

/// One channel's entries as far as the machine must know them: heads, holes, who has what.
struct ChannelLog: Sendable {
  struct Present: Equatable, Sendable {
    let instance: Instance
    var facts: PresenceFacts
    /// Our current log as far as this member has it on disk.
    var acknowledged: UInt64 = 0
  }

  struct Request: Equatable, Sendable {
    let peer: PeerID
    let id: UInt64
    var deadline: Instant
    var hasProgressed = false
  }

  var logs: [LogKey: LogState] = [:]
  var lacking: Set<LogKey> = []
  var heldByteCount = 0
  var lamport: UInt64
  var lastTimestamp: UInt64 = 0
  var digest: HeadsDigest
  var submissions: [Submission] = []
  var submissionsByteCount = 0
  /// Requests answered once the entry of that number is on disk.
  var waiting: [UInt64: [RequestID]] = [:]
  var ownInFlight = false
  var present: [PeerID: Present] = [:]

  var acknowledgeAt: Instant?
  var toAcknowledge: Set<PeerID> = []
  var announceAt: Instant?
  var announceDelay = MessagingRule.announceFirst

  var request: Request?
  var repairAt: Instant?
  var repairDelay = Span.milliseconds(250)
  /// Asked in vain since the last progress.
  var tried: Set<PeerID> = []
  /// Whose heads told what exists: asked first.
  var informant: PeerID?

  var syncAt: Instant?
  var syncDelay = MessagingRule.digestPatience
  var hasSynced = false
  var lastArrival: Instant?
  /// New and genuine entries so far.
  var arrivalCount: UInt64 = 0
  /// Who was asked last, and the count then.
  var lastAsked: (peer: PeerID, arrivals: UInt64)?

  init(logs restored: [RestoredLog], lamport: UInt64) {
    self.lamport = min(lamport, LamportRule.startMax)
    for log in restored { logs[log.key] = LogState(contiguous: log.contiguous, beyond: log.beyond) }
    for (key, state) in logs where state.isLacking { lacking.insert(key) }
    digest = HeadsDigest(of: [:])
    digest = currentDigest
  }

  /// Of what is on the disk.
  var currentDigest: HeadsDigest {
    HeadsDigest(
      of: logs.mapValues(\.stored),
      beyond: logs.compactMapValues { $0.wasStoredBeyond.isEmpty ? nil : $0.wasStoredBeyond })
  }

  /// The clock that a new entry follows: a newcomer without history starts at the median of those present.
  var clock: UInt64 {
    guard !hasSynced, !present.isEmpty else { return lamport }
    let heard = present.values.map(\.facts.lamport).sorted()
    return max(lamport, min(heard[heard.count / 2], LamportRule.startMax))
  }

  mutating func note(_ key: LogKey) {
    if logs[key]?.isLacking == true { lacking.insert(key) } else { lacking.remove(key) }
  }

  mutating func hear(_ lamport: UInt64) {
    self.lamport = LamportRule.heard(lamport, by: self.lamport)
  }

  /// Somebody says this number exists.
  mutating func announce(_ key: LogKey, _ number: UInt64) {
    guard logs[key] != nil || logs.count < MessagingRule.logsPerChannelMax else { return }
    var log = logs[key] ?? LogState()
    guard number > log.announced else { return }
    log.announced = number
    logs[key] = log
    note(key)
  }

  var nextDue: Instant? {
    [acknowledgeAt, announceAt, request?.deadline, repairAt, syncAt, lacking.isEmpty ? nil : holeDue]
      .compactMap { $0 }.min()
  }

  private var holeDue: Instant? {
    lacking.lazy.compactMap { self.logs[$0]?.holeSince }.min().map { $0 + MessagingRule.holePatience }
  }
}
