import ParleyVocabulary
import ParleyWire

/// Entries of channels and messages from peer to peer: numbered, signed, persisted before promised, acknowledged,
/// repaired and reconciled. Never learns what a message says.
package struct MessagingMachine: Sendable {
  package let me: PeerID
  package let instance: Instance
  var channels: [ChannelID: ChannelLog] = [:]
  var outbox: [PeerID: PeerQueue] = [:]
  /// How far our log of this run went in channels that we left: should we come back, no number is given twice.
  var departed: [ChannelID: LogState] = [:]
  var jitter: Jitter

  /// Records wait here for the one batch in flight to be written.
  var records: [MessagingRecord] = []
  var recordsByteCount = 0
  /// Not worth a commit of their own.
  var lazyRecords: [MessagingRecord] = []
  var lazyAt: Instant?
  var batch: (id: UInt64, records: [MessagingRecord])?
  var retryAt: Instant?
  var nextBatch: UInt64 = 1
  var nextRequest: UInt64 = 1
  var nextLoad: UInt64 = 1
  var loads: [LoadID: (peer: PeerID, channel: ChannelID, request: UInt64)] = [:]
  /// Requests that others wait on while one of theirs is being answered.
  var asked: [PeerID: [(channel: ChannelID, request: UInt64, ranges: [LogRange])]] = [:]
  package private(set) var refusedCount: UInt64 = 0

  package init(me: PeerID, instance: Instance, seed: UInt64) {
    self.me = me
    self.instance = instance
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
      return joined(channel, logs, lamport)
    case .left(let channel): return left(channel)
    case .outboxRestored(let messages):
      for message in messages { outbox[message.peer, default: PeerQueue()].add(message, nil) }
      return messages.map(\.peer).reduce(into: []) { peers, peer in
        if !peers.contains(peer) { peers.append(peer) }
      }.flatMap { sendOutbox(to: $0, now) }
    case .submitted(let channel, let submission): return submitted(channel, submission, now)
    case .entrySigned(let channel, let entry): return signed(channel, entry, now)
    case .entryHeard(let channel, let bytes, _): return heard(channel, bytes, now)
    case .entryVerified(let channel, let entry, let isGenuine): return verified(channel, entry, isGenuine, now)
    case .persisted(let batch, let cursors): return persisted(batch, cursors, now)
    case .persistFailed(let batch, let reason): return persistFailed(batch, reason, now)
    case .loaded(let load, let entries): return loaded(load, entries)
    case .memberPresent(let channel, let peer, let instance, let facts):
      return memberPresent(channel, peer, instance, facts, now)
    case .presenceHeard(let channel, let peer, let facts): return presenceHeard(channel, peer, facts, now)
    case .memberGone(let channel, let peer): return memberGone(channel, peer, now)
    case .acknowledged(let channel, let peer, let log, let number):
      return acknowledged(channel, peer, log, number, now)
    case .sessionMessage(let peer, let message): return received(message, peer, now)
    case .sessionFailed(let peer): return sessionFailed(peer, now)
    case .told(let request, let message, let queuedAt): return told(request, message, queuedAt)
    case .woke: return woke(now)
    }
  }

  /// Numbers of ours that are on their way to the disk since before we left are taken, whatever the disk said.
  private mutating func joined(_ channel: ChannelID, _ logs: [RestoredLog], _ lamport: UInt64) -> [MessagingEffect] {
    var log = ChannelLog(logs: logs, lamport: lamport)
    if let own = departed.removeValue(forKey: channel) {
      var state = log.logs[ownLogKey] ?? LogState()
      state.stored = max(state.stored, own.stored)
      state.queued = max(state.stored, own.queued)
      state.announced = max(state.announced, state.queued)
      log.logs[ownLogKey] = state
      log.ownInFlight = state.stored < state.queued
      log.digest = log.currentDigest
    }
    channels[channel] = log
    return [headsChanged(channel)]
  }

  private mutating func left(_ channel: ChannelID) -> [MessagingEffect] {
    guard let log = channels.removeValue(forKey: channel) else { return [] }
    departed[channel] = log.logs[ownLogKey]
    let requests = log.submissions.map(\.request) + log.waiting.values.flatMap { $0 }
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
    guard batch == nil, retryAt == nil, !records.isEmpty else { return [] }
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

  private mutating func persistFailed(_ id: UInt64, _ reason: String, _ now: Instant) -> [MessagingEffect] {
    guard let failed = batch, failed.id == id else { return [] }
    batch = nil
    records = failed.records + records
    recordsByteCount = records.reduce(0) { $0 + $1.byteCount }
    retryAt = now + MessagingRule.retryDisk
    var effects: [MessagingEffect] = []
    // Callers are told now; what they said stays in memory and is tried again.
    for channel in channels.keys.sorted() {
      for request in channels[channel]!.waiting.values.flatMap({ $0 }) {
        effects.append(.notify(.failed(request, .disk(reason))))
      }
      channels[channel]!.waiting = [:]
    }
    for peer in outbox.keys.sorted() {
      effects += outbox[peer]!.failRequests().map { .notify(.failed($0, .disk(reason))) }
    }
    return effects
  }

  private mutating func persisted(_ id: UInt64, _ cursors: [UInt64], _ now: Instant) -> [MessagingEffect] {
    guard let done = batch, done.id == id else { return [] }
    precondition(cursors.count == done.records.count, "a cursor for each record")
    batch = nil
    var effects: [MessagingEffect] = []
    var changed: Set<ChannelID> = []
    for (record, cursor) in zip(done.records, cursors) {
      switch record {
      case .entry(let channel, let entry):
        guard channels[channel] != nil else {
          if entry.key == ownLogKey { departed[channel]?.stored = entry.number }
          continue
        }
        effects += stored(channel, entry, cursor, now)
        changed.insert(channel)
      case .peerMessage(let peer, let id, let json, let isOwn):
        if !isOwn { effects.append(.tell(.links(.send(peer, .peerStored(id))))) }
        if cursor != 0 { effects.append(.notify(.peerMessage(peer, id, json: json, cursor: cursor))) }
      case .outboxAdd(let message, _): effects += outboxStored(message, now)
      case .outboxRemove, .delivered: break
      }
    }
    for channel in changed.sorted() {
      channels[channel]!.digest = channels[channel]!.currentDigest
      effects.append(headsChanged(channel))
      effects += flushSubmissions(channel, now)
      if channels[channel]!.request == nil, !channels[channel]!.lacking.isEmpty,
        recordsByteCount < MessagingRule.recordsByteCountMax / 2
      {
        channels[channel]!.repairAt = channels[channel]!.repairAt ?? now
      }
    }
    return effects
  }

  /// An entry is on disk: it may be shown, acknowledged, and its sender answered.
  private mutating func stored(
    _ channel: ChannelID, _ entry: Entry, _ cursor: UInt64, _ now: Instant
  ) -> [MessagingEffect] {
    var log = channels[channel]!
    var state = log.logs[entry.key] ?? LogState()
    if entry.number == state.stored + 1 {
      state.stored += 1
      // Numbers beyond a hole that has just been closed are on disk already, or follow in this batch.
      while state.stored < state.queued, state.wasStoredBeyond.contains(state.stored + 1) {
        state.stored += 1
        state.wasStoredBeyond.remove(state.stored)
      }
    } else if entry.number > state.stored {
      state.wasStoredBeyond.insert(entry.number)
    }
    log.logs[entry.key] = state
    var effects: [MessagingEffect] = []
    if entry.key == ownLogKey {
      log.ownInFlight = log.logs[ownLogKey]!.stored < log.logs[ownLogKey]!.queued
      for request in log.waiting.removeValue(forKey: entry.number) ?? [] {
        effects.append(.notify(.stored(request, channel, entry.key, number: entry.number)))
      }
    } else if log.present[entry.key.author] != nil {
      log.toAcknowledge.insert(entry.key.author)
      log.acknowledgeAt = log.acknowledgeAt ?? now + MessagingRule.acknowledgeWithin
    }
    channels[channel] = log
    if cursor != 0 {
      effects.append(.notify(.entryStored(channel, entry, cursor: cursor)))
      if entry.isHidden { effects.append(.tell(.membership(.hiddenEntryStored(channel, entry)))) }
    }
    return effects
  }

  // MARK: Time

  private var nextDue: Instant? {
    ([retryAt, lazyAt] + channels.values.map(\.nextDue) + outbox.values.map(\.nextDue)).compactMap { $0 }.min()
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
      effects += holesDue(channel, now)
      effects += repairDue(channel, now)
      effects += syncDue(channel, now)
    }
    for peer in outbox.keys.sorted() { effects += resendDue(peer, now) }
    return effects
  }
}
