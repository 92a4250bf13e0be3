import ParleyVocabulary

/// Bounds and times of messaging.
enum MessagingRule {
  static let submissionsByteCountMax = 4 << 20
  static let recordsByteCountMax = 8 << 20
  static let heldByteCountMax = 2 << 20
  static let batchByteCountMax = 1 << 20
  /// Committed and not synced; beyond it no batch is begun.
  static let unsyncedByteCountMax = 4 << 20
  static let acknowledgeWithin = Span.milliseconds(10)
  static let announceFirst = Span.milliseconds(250)
  static let announceSlowest = Span.seconds(8)
  static let repairJitter = (Span.milliseconds(20), Span.milliseconds(80))
  static let repairTimeout = Span.seconds(2)
  static let repairFirst = Span.milliseconds(250)
  static let repairSlowest = Span.seconds(60)
  static let headsAnswerEvery = Span.seconds(1)
  static let digestPatience = Span.seconds(2)
  static let unevenJitter = (Span.milliseconds(30), Span.milliseconds(300))
  static let unevenOthers = 2
  static let syncSlowest = Span.seconds(30)
  static let refusalPatience = Span.seconds(10)
  static let holePatience = Span.seconds(3)
  static let retryDisk = Span.seconds(1)
  static let resendPeer = Span.seconds(3)
  static let lazyFlush = Span.seconds(1)
  static let answerByteCountMax = 768 << 10
  /// Answers being read from the disk at once; who asks meanwhile waits, four requests each.
  static let loadsMax = 4
  static let asksPerPeerMax = 4
  static let asksMax = 4_096
  static let acknowledgersMax: UInt64 = 32
  static let logsPerChannelMax = 100_000
  static let rumouredLogsMax = 16_384
  /// Up to so many logs their heads are compared at once, beyond it their buckets first.
  static let headsAtOnceMax = 64
  /// So many entries of a log may hold a `joined` that is kept for ever.
  static let joinedWithin: UInt64 = 4
  /// So many members are asked from where on they hold a log before the lowest is taken for its beginning.
  static let floorWitnesses = 8
  /// Or so long where there are fewer: a newcomer does not see everybody at once.
  static let floorPatience = Span.seconds(2)
  /// After which the run of an author who is not there is taken to be over.
  static let floorPatienceForAbsent = Span.seconds(3_600)
}

/// How much may wait for peers who are away, and how long.
package struct OutboxLimits: Equatable, Sendable {
  package var countMax: Int
  package var byteCountMax: Int
  package var lifetime: Span

  /// By default 10,000 messages, 64 MiB, 7 days.
  package init(countMax: Int = 10_000, byteCountMax: Int = 64 << 20, lifetime: Span = .seconds(7 * 86_400)) {
    self.countMax = countMax
    self.byteCountMax = byteCountMax
    self.lifetime = lifetime
  }
}
