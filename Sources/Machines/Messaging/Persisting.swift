import ParleyVocabulary
import ParleyWire

/// A batch that is in the store, where a power cut may take it.
struct UnsyncedBatch: Sendable {
  let id: UInt64
  let records: [MessagingRecord]
  let byteCount: Int
  /// What had been shown when it was committed.
  let shownCursor: UInt64
}

// What the disk has done. Shown once it is committed, promised (acknowledged, `send` returned) once it is synced.
extension MessagingMachine {
  mutating func committed(_ id: UInt64, _ cursors: [UInt64]) -> [MessagingEffect] {
    guard let done = batch, done.id == id else { return [] }
    precondition(cursors.count == done.records.count, "a cursor for each record")
    batch = nil
    var effects = readActs(
      of: zip(done.records, cursors).compactMap { record, cursor in
        guard cursor != 0, case .entry(let channel, let entry) = record else { return nil }
        return (channel, entry)
      })
    var byteCount = 0
    for (record, cursor) in zip(done.records, cursors) {
      byteCount += record.byteCount
      guard cursor != 0 else { continue }
      switch record {
      case .entry(let channel, let entry):
        guard channels[channel] != nil else { continue }
        effects.append(.notify(.entryStored(channel, entry, cursor: cursor)))
        if entry.isHidden { effects.append(.tell(.membership(.hiddenEntryStored(channel, entry)))) }
        shownCursor = max(shownCursor, cursor)
      case .peerMessage(let peer, let id, let json, _):
        effects.append(.notify(.peerMessage(peer, id, json: json, cursor: cursor)))
        shownCursor = max(shownCursor, cursor)
      case .local(let message, _):
        guard channels[message.channel] != nil else { continue }
        effects.append(.notify(.localStored(message, cursor: cursor)))
        shownCursor = max(shownCursor, cursor)
      case .outboxAdd, .outboxRemove, .delivered, .floor: break
      }
    }
    unsynced.append(
      UnsyncedBatch(id: id, records: done.records, byteCount: byteCount, shownCursor: shownCursor))
    unsyncedByteCount += byteCount
    return effects
  }

  mutating func synced(through id: UInt64, _ now: Instant) -> [MessagingEffect] {
    let count = unsynced.prefix { $0.id <= id }.count
    guard count > 0 else { return [] }
    let done = unsynced[..<count]
    unsynced.removeFirst(count)
    var effects: [MessagingEffect] = []
    if let cursor = done.last?.shownCursor, cursor > 0 { effects.append(.notify(.synced(cursor: cursor))) }
    for (channel, entry) in twice.takeWaiting() { effects.append(twice.load(channel, entry)) }
    var changed: Set<ChannelID> = []
    for batch in done {
      unsyncedByteCount -= batch.byteCount
      for record in batch.records { effects += synced(record, &changed, now) }
    }
    for channel in changed.sorted() {
      channels[channel]!.refreshDigest()
      effects.append(headsChanged(channel))
      if channels[channel]!.trustDue != nil { effects += tellTrust(channel, now) }
      effects += flushSubmissions(channel, now)
      if channels[channel]!.request == nil, !channels[channel]!.lacking.isEmpty,
        recordsByteCount < MessagingRule.recordsByteCountMax / 2
      {
        channels[channel]!.repairAt = channels[channel]!.repairAt ?? now
      }
    }
    return effects
  }

  private mutating func synced(
    _ record: MessagingRecord, _ changed: inout Set<ChannelID>, _ now: Instant
  ) -> [MessagingEffect] {
    switch record {
    case .entry(let channel, let entry):
      guard channels[channel] != nil else {
        if entry.key == ownLogKey { departed[channel]?.store(entry.number) }
        return []
      }
      changed.insert(channel)
      return stored(channel, entry, now)
    case .peerMessage(let peer, let id, _, let isOwn):
      return isOwn ? kept(id) : [.tell(.links(.send(peer, .peerStored(id))))]
    case .local(let message, let isAnswered):
      if message.author == me { return kept(message.id) }
      return isAnswered ? [.tell(.links(.send(message.author, .peerStored(message.id))))] : []
    case .outboxAdd(let message, _): return outboxStored(message, now)
    case .floor(let channel, let key, let floor):
      guard channels[channel] != nil else { return [] }
      channels[channel]!.raiseFloor(key, floor)
      changed.insert(channel)
      return []
    case .outboxRemove, .delivered: return []
    }
  }

  /// An entry is on disk: it may be acknowledged, and its sender answered.
  private mutating func stored(_ channel: ChannelID, _ entry: Entry, _ now: Instant) -> [MessagingEffect] {
    channels[channel]!.store(entry.key, entry.number)
    var effects: [MessagingEffect] = []
    if entry.key == ownLogKey {
      channels[channel]!.ownInFlight = channels[channel]!.logs[ownLogKey]!.isInFlight
      for request in channels[channel]!.waiting.removeValue(forKey: entry.number) ?? [] {
        effects.append(.notify(.stored(request, channel, entry.key, number: entry.number)))
      }
    } else if channels[channel]!.present[entry.key.author] != nil {
      acknowledgeSoon(channel, entry.key.author, now)
    }
    return effects
  }

  // MARK: Failures

  mutating func persistFailed(_ id: UInt64, _ reason: String, _ now: Instant) -> [MessagingEffect] {
    guard let failed = batch, failed.id == id else { return [] }
    batch = nil
    return again(failed.records, reason, now)
  }

  /// What was shown is not shown again: the store has it already.
  mutating func syncFailed(_ reason: String, _ now: Instant) -> [MessagingEffect] {
    guard !unsynced.isEmpty else { return [] }
    let failed = unsynced.flatMap(\.records)
    unsynced = []
    unsyncedByteCount = 0
    return again(failed, reason, now)
  }

  private mutating func again(_ failed: [MessagingRecord], _ reason: String, _ now: Instant) -> [MessagingEffect] {
    records = failed + records
    recordsByteCount = records.reduce(0) { $0 + $1.byteCount }
    retryAt = now + MessagingRule.retryDisk
    var effects: [MessagingEffect] = []
    // Callers are told now; what they said stays in memory and is tried again.
    for channel in channels.keys.sorted() {
      for request in channels[channel]!.waiting.values.flatMap({ $0 }) {
        effects.append(.notify(.failed(request, .disk(reason))))
      }
      channels[channel]!.waiting = [:]
      // Those without a number yet are let go: their callers shall not wait for a disk that may never take them.
      for submission in channels[channel]!.submissions.waiting {
        effects.append(.notify(.failed(submission.request, .diskRefuses(reason))))
      }
      channels[channel]!.submissions = SubmissionQueue()
    }
    for id in keptRequests.keys.sorted(by: { $0.text < $1.text }) {
      effects.append(.notify(.failed(keptRequests[id]!, .disk(reason))))
    }
    keptRequests = [:]
    return effects + outbox.failRequests().map { .notify(.failed($0, .disk(reason))) }
  }
}
