import ParleyVocabulary
import ParleyWire

extension MessagingMachine {
  mutating func submitted(_ channel: ChannelID, _ submission: Submission, _ now: Instant) -> [MessagingEffect] {
    guard var log = channels[channel] else { return [.notify(.failed(submission.request, .notInChannel))] }
    let byteCount = log.submissionsByteCount + submission.json.count
    guard byteCount <= MessagingRule.submissionsByteCountMax,
      recordsByteCount <= MessagingRule.recordsByteCountMax
    else {
      return [
        .notify(
          .failed(
            submission.request,
            .queueFull(byteCount: byteCount, byteCountMax: MessagingRule.submissionsByteCountMax)))
      ]
    }
    log.submissions.append(submission)
    log.submissionsByteCount = byteCount
    channels[channel] = log
    return flushSubmissions(channel, now)
  }

  /// While one entry is on its way to the disk, what is said meanwhile gathers and shares the next: under load the
  /// entries fill.
  mutating func flushSubmissions(_ channel: ChannelID, _ now: Instant) -> [MessagingEffect] {
    var log = channels[channel]!
    guard !log.ownInFlight, let first = log.submissions.first else { return [] }
    var taken = 0
    var byteCount = Entry.overheadByteCount
    for submission in log.submissions {
      let added = Entry.byteCount(ofBody: submission.json.count)
      guard submission.isHidden == first.isHidden, taken < Limit.messagesPerEntryMax,
        byteCount + added <= Limit.entryByteCountMax
      else { break }
      byteCount += added
      taken += 1
    }
    precondition(taken > 0, "the size of a message was checked before it was submitted")
    let batch = log.submissions.prefix(taken)
    log.submissions.removeFirst(taken)
    log.submissionsByteCount -= batch.reduce(0) { $0 + $1.json.count }
    var own = log.logs[ownLogKey] ?? LogState()
    own.queued += 1
    own.announced = max(own.announced, own.queued)
    log.logs[ownLogKey] = own
    log.ownInFlight = true
    log.lamport = log.clock + 1
    log.lastTimestamp = max(log.lastTimestamp, batch.last!.timestamp)
    log.waiting[own.queued] = batch.map(\.request)
    channels[channel] = log
    return [
      .sign(
        channel,
        Entry(
          key: ownLogKey, number: own.queued, lamport: log.lamport, timestamp: log.lastTimestamp,
          isHidden: first.isHidden, items: batch.map { Entry.Item(kind: $0.kind, body: $0.json) }))
    ]
  }

  /// On the wire at once; promised only when it is on the disk.
  mutating func signed(_ channel: ChannelID, _ entry: Entry, _ now: Instant) -> [MessagingEffect] {
    enqueue(.entry(channel, entry))
    // Left meanwhile: its number is taken all the same.
    guard channels[channel] != nil else { return [] }
    channels[channel]!.announceDelay = MessagingRule.announceFirst
    channels[channel]!.announceAt = now + MessagingRule.announceFirst
    return [.tell(.links(.multicast(channel, [.plain(.entry(entry.encoded))])))]
  }

  mutating func acknowledged(
    _ channel: ChannelID, _ peer: PeerID, _ log: Instance, _ number: UInt64, _ now: Instant
  ) -> [MessagingEffect] {
    guard log == instance, var state = channels[channel], var member = state.present[peer] else { return [] }
    // Nobody can have what was not said: a larger number is a lie or a fault.
    let said = state.logs[ownLogKey]?.queued ?? 0
    guard number <= said, number > member.acknowledged else { return [] }
    member.acknowledged = number
    state.present[peer] = member
    channels[channel] = state
    lazyRecords.append(.delivered(channel, log: instance, peer, number: number))
    lazyAt = lazyAt ?? now + MessagingRule.lazyFlush
    return [.notify(.delivered(channel, log: instance, through: number, to: peer))]
  }

  /// Whether this member acknowledges that author's entries: all do up to 32 present, beyond that a choice that both
  /// can compute.
  static func acknowledges(_ member: PeerID, author: PeerID, presentCount: Int) -> Bool {
    guard presentCount > MessagingRule.acknowledgersMax else { return true }
    let mixed = member.value.words.3 ^ author.value.words.3
    return mixed % UInt64(presentCount) < UInt64(MessagingRule.acknowledgersMax)
  }

  mutating func announceDue(_ channel: ChannelID, _ now: Instant) -> [MessagingEffect] {
    var log = channels[channel]!
    guard let at = log.announceAt, at <= now else { return [] }
    let head = log.logs[ownLogKey]?.stored ?? 0
    let lacks = log.present.contains { peer, member in
      member.acknowledged < head
        && Self.acknowledges(peer, author: me, presentCount: log.present.count)
    }
    if lacks || log.ownInFlight {
      log.announceDelay = min(log.announceDelay * 2, MessagingRule.announceSlowest)
      log.announceAt = now + log.announceDelay
    } else {
      log.announceAt = nil
    }
    channels[channel] = log
    return lacks ? [.tell(.membership(.announceHead(channel)))] : []
  }

  mutating func acknowledgeDue(_ channel: ChannelID, _ now: Instant) -> [MessagingEffect] {
    var log = channels[channel]!
    guard let at = log.acknowledgeAt, at <= now else { return [] }
    log.acknowledgeAt = nil
    let authors = log.toAcknowledge.sorted()
    log.toAcknowledge = []
    channels[channel] = log
    return authors.compactMap { author in
      guard let member = log.present[author],
        Self.acknowledges(me, author: author, presentCount: log.present.count),
        let state = log.logs[LogKey(author: author, log: member.instance)], state.stored > 0
      else { return nil }
      return .tell(
        .links(
          .unicast(
            channel, author, [], direct: [.acknowledge(log: member.instance, number: state.stored)])))
    }
  }
}
