import ParleyVocabulary
import ParleyWire

/// Entries of channels and messages from peer to peer: numbered, signed, persisted before promised, acknowledged,
/// repaired and reconciled. Never learns what a message says.
package struct MessagingMachine: Sendable {
  package let me: PeerID
  package let instance: Instance
  var channels: [ChannelID: ChannelLog] = [:]
  var outbox: Outbox
  var liveAnswers = LiveAnswers()
  /// Calls that wait for what they said, and is no entry, to be on the disk.
  var keptRequests: [MessageID: RequestID] = [:]
  /// How far our log of this run went in channels that we left: should we come back, no number is given twice.
  var departed: [ChannelID: LogState] = [:]
  /// Of owned channels.
  package internal(set) var governances: [ChannelID: Governance] = [:]
  var jitter: Jitter

  /// Records wait here for the one batch in flight to be written.
  var records: [MessagingRecord] = []
  var recordsByteCount = 0
  /// Not worth a commit of their own.
  var lazyRecords: [MessagingRecord] = []
  var lazyAt: Instant?
  var batch: (id: UInt64, records: [MessagingRecord])?
  /// Committed, not synced, by batch.
  var unsynced: [UnsyncedBatch] = []
  var unsyncedByteCount = 0
  /// Of what the application was shown last.
  var shownCursor: UInt64 = 0
  var retryAt: Instant?
  var nextBatch: UInt64 = 1
  var nextRequest: UInt64 = 1
  var asks = AskQueue()
  var meters: MemberMeters
  var twice = SignedTwice()
  package private(set) var refusedCount: UInt64 = 0

  package init(
    me: PeerID, instance: Instance, seed: UInt64, outbox limits: OutboxLimits = OutboxLimits(),
    members: MemberLimits = MemberLimits()
  ) {
    meters = MemberMeters(members)
    self.me = me
    self.instance = instance
    outbox = Outbox(limits)
    jitter = Jitter(seed: seed)
  }

  var ownLogKey: LogKey { LogKey(author: me, log: instance) }

  package mutating func handle(_ event: MessagingEvent, at now: Instant) -> [MessagingEffect] {
    var effects = step(event, now)
    effects += flushRecords(now)
    if let due = nextDue { effects.append(.wake(at: due)) }
    return effects
  }

  private mutating func step(_ event: MessagingEvent, _ now: Instant) -> [MessagingEffect] {
    switch event {
    case .joined(let channel, let logs, let lamport):
      guard channels[channel] == nil else { return [] }
      return joined(channel, logs, lamport, now)
    case .left(let channel): return left(channel)
    case .owned(let channel, let ownership):
      if governances[channel] == nil { governances[channel] = Governance(ownership) }
      return [governed(channel, Governance.Change())]
    case .actsStored(let channel, let entries):
      return governances[channel] == nil ? [] : [.readActs(channel, entries)]
    case .actsRead(let channel, let acts): return actsRead(channel, acts, now)
    case .outboxRestored(let messages): return outboxRestored(messages, now)
    case .pruned(let channel, let floors): return pruned(channel, floors)
    case .submitted(let channel, let submission): return submitted(channel, submission, now)
    case .entrySigned(let channel, let entry): return signed(channel, entry, now)
    case .entryHeard(let channel, let bytes, _): return heard(channel, bytes, isAsked: false, now)
    case .entryVerified(let channel, let entry, let isGenuine): return verified(channel, entry, isGenuine, now)
    case .committed(let batch, let cursors): return committed(batch, cursors)
    case .synced(let batch): return synced(through: batch, now)
    case .persisted(let batch, let cursors): return committed(batch, cursors) + synced(through: batch, now)
    case .syncFailed(let reason): return syncFailed(reason, now)
    case .persistFailed(let batch, let reason): return persistFailed(batch, reason, now)
    case .loaded(let load, let entries): return compared(load, entries, now) ?? loaded(load, entries)
    case .memberPresent(let channel, let peer, let instance, let facts):
      return memberPresent(channel, peer, instance, facts, now)
    case .presenceHeard(let channel, let peer, let facts): return presenceHeard(channel, peer, facts, now)
    case .memberGone(let channel, let peer): return memberGone(channel, peer, now)
    case .acknowledged(let channel, let peer, let log, let number):
      return acknowledged(channel, peer, log, number, now)
    case .sessionMessage(let peer, let message): return received(message, peer, now)
    case .sessionFailed(let peer): return sessionFailed(peer, now)
    case .told(let request, let message, let queuedAt): return told(request, message, queuedAt, now)
    case .submittedLive(let channel, let live): return submittedLive(channel, live)
    case .toldLive(let peer, let live): return toldLive(peer, live)
    case .directed(let channel, let submission, let receivers, let isLive, let queuedAt):
      return directed(channel, submission, to: receivers, isLive: isLive, queuedAt, now)
    case .liveHeard(let channel, let author, let json): return heardLive(channel, json, author)
    case .woke: return woke(now)
    }
  }

  private mutating func joined(_ channel: ChannelID, _ logs: [RestoredLog], _ lamport: UInt64, _ now: Instant)
    -> [MessagingEffect]
  {
    channels[channel] = ChannelLog(logs: logs, lamport: lamport)
    if let own = departed.removeValue(forKey: channel) { channels[channel]!.merge(ownLogKey, own) }
    let governance = governances[channel].map { MessagingEffect.tell(.membership(.governed(channel, $0))) }
    return [headsChanged(channel)] + (governance.map { [$0] } ?? []) + tellTrust(channel, now)
  }

  private mutating func pruned(_ channel: ChannelID, _ floors: [LogFloor]) -> [MessagingEffect] {
    guard channels[channel] != nil else { return [] }
    for floor in floors { channels[channel]!.raiseFloor(floor.key, floor.floor) }
    channels[channel]!.refreshDigest()
    return [headsChanged(channel)]
  }

  private mutating func left(_ channel: ChannelID) -> [MessagingEffect] {
    governances[channel] = nil
    guard let log = channels.removeValue(forKey: channel) else { return [] }
    departed[channel] = log.logs[ownLogKey]
    twice.left(channel)
    let requests = log.submissions.waiting.map(\.request) + log.waiting.values.flatMap { $0 }
    return requests.map { .notify(.failed($0, .notInChannel)) }
  }

  mutating func refuse() { refusedCount += 1 }

  func headsChanged(_ channel: ChannelID) -> MessagingEffect {
    let log = channels[channel]!
    return .tell(
      .membership(
        .headsChanged(channel, log.digest, head: log.logs[ownLogKey]?.stored ?? 0, lamport: log.lamport)))
  }

  // MARK: The disk

  mutating func enqueue(_ record: MessagingRecord) {
    records.append(record)
    recordsByteCount += record.byteCount
  }

  /// One batch at a time: what gathers meanwhile shares the next commit.
  private mutating func flushRecords(_ now: Instant) -> [MessagingEffect] {
    guard batch == nil, retryAt == nil, !records.isEmpty, unsyncedByteCount <= MessagingRule.unsyncedByteCountMax
    else { return [] }
    var taken: [MessagingRecord] = lazyRecords
    lazyRecords = []
    lazyAt = nil
    var byteCount = 0
    var count = 0
    for record in records {
      if byteCount > MessagingRule.batchByteCountMax { break }
      byteCount += record.byteCount
      count += 1
    }
    taken += records.prefix(count)
    records.removeFirst(count)
    recordsByteCount -= byteCount
    let id = nextBatch
    nextBatch += 1
    batch = (id, taken)
    return [.persist(batch: id, taken)]
  }

  // MARK: Time

  private var nextDue: Instant? {
    ([retryAt, lazyAt, outbox.nextDue] + channels.values.map(\.nextDue)).compactMap { $0 }.min()
  }

  private mutating func woke(_ now: Instant) -> [MessagingEffect] {
    if let at = retryAt, at <= now { retryAt = nil }
    if let at = lazyAt, at <= now {
      records += lazyRecords
      recordsByteCount += lazyRecords.reduce(0) { $0 + $1.byteCount }
      lazyRecords = []
      lazyAt = nil
    }
    var effects: [MessagingEffect] = []
    for channel in channels.keys.sorted() {
      effects += acknowledgeDue(channel, now)
      effects += announceDue(channel, now)
      effects += trustDue(channel, now)
      effects += holesDue(channel, now)
      effects += floorsDue(channel, now)
      effects += repairDue(channel, now)
      effects += syncDue(channel, now)
    }
    return effects + outboxDue(now)
  }
}
