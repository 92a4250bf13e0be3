import ParleyVocabulary
import ParleyWire

extension MessagingMachine {
  mutating func submitted(_ channel: ChannelID, _ submission: Submission, _ now: Instant) -> [MessagingEffect] {
    guard channels[channel] != nil else { return [.notify(.failed(submission.request, .notInChannel))] }
    if let reason = exclusion(channel, submission) { return [.notify(.failed(submission.request, .excluded(reason)))] }
    let byteCount = channels[channel]!.submissions.byteCount + submission.json.count
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
    channels[channel]!.submissions.append(submission)
    return flushSubmissions(channel, now)
  }

  /// While one entry is on its way to the disk, what is said meanwhile gathers and shares the next: under load the
  /// entries fill.
  mutating func flushSubmissions(_ channel: ChannelID, _ now: Instant) -> [MessagingEffect] {
    guard !channels[channel]!.ownInFlight, let first = channels[channel]!.submissions.first else { return [] }
    var taken = 0
    var byteCount = Entry.overheadByteCount
    for submission in channels[channel]!.submissions.waiting {
      let added = Entry.byteCount(ofBody: submission.json.count)
      guard submission.isHidden == first.isHidden, taken < Limit.messagesPerEntryMax,
        byteCount + added <= Limit.entryByteCountMax
      else { break }
      byteCount += added
      taken += 1
    }
    precondition(taken > 0, "the size of a message was checked before it was submitted")
    return [.sign(channel, channels[channel]!.makeEntry(ownLogKey, isHidden: first.isHidden, messageCount: taken))]
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
    guard log == instance, let member = channels[channel]?.present[peer] else { return [] }
    // Nobody can have what was not said: a larger number is a lie or a fault.
    let said = channels[channel]!.logs[ownLogKey]?.queued ?? 0
    guard number <= said, number > member.acknowledged else { return [] }
    channels[channel]!.present[peer]!.acknowledged = number
    lazyRecords.append(.delivered(channel, log: instance, peer, number: number))
    lazyAt = lazyAt ?? now + MessagingRule.lazyFlush
    let after = max(member.acknowledged, channels[channel]!.logs[ownLogKey]?.floor ?? 0)
    guard number > after else { return [] }
    return [.notify(.delivered(channel, log: instance, after: after, through: number, to: peer))]
  }

  /// Whether this member acknowledges that author's entries: all do below 64 present; beyond that a choice that both
  /// can compute, of 32 to 63. The count is taken as the power of two below it, so that two who count differently
  /// mostly choose alike, and otherwise one chooses some of whom the other chose.
  static func acknowledges(_ member: PeerID, author: PeerID, presentCount: Int) -> Bool {
    let rounded = UInt64(1) << UInt64(max(0, Int.bitWidth - 1 - presentCount.leadingZeroBitCount))
    guard rounded > MessagingRule.acknowledgersMax else { return true }
    let mixed = member.value.words.3 ^ author.value.words.3
    return mixed % rounded < MessagingRule.acknowledgersMax
  }

  mutating func acknowledgeSoon(_ channel: ChannelID, _ author: PeerID, _ now: Instant) {
    channels[channel]!.toAcknowledge.insert(author)
    channels[channel]!.acknowledgeAt = channels[channel]!.acknowledgeAt ?? now + MessagingRule.acknowledgeWithin
  }

  mutating func announceDue(_ channel: ChannelID, _ now: Instant) -> [MessagingEffect] {
    guard let at = channels[channel]!.announceAt, at <= now else { return [] }
    let head = channels[channel]!.logs[ownLogKey]?.stored ?? 0
    let present = channels[channel]!.present
    let lacks = present.contains { peer, member in
      member.acknowledged < head && Self.acknowledges(peer, author: me, presentCount: present.count)
    }
    if lacks || channels[channel]!.ownInFlight {
      let delay = min(channels[channel]!.announceDelay * 2, MessagingRule.announceSlowest)
      channels[channel]!.announceDelay = delay
      channels[channel]!.announceAt = now + delay
    } else {
      channels[channel]!.announceAt = nil
    }
    return lacks ? [.tell(.membership(.announceHead(channel)))] : []
  }

  mutating func acknowledgeDue(_ channel: ChannelID, _ now: Instant) -> [MessagingEffect] {
    guard let at = channels[channel]!.acknowledgeAt, at <= now else { return [] }
    channels[channel]!.acknowledgeAt = nil
    let authors = channels[channel]!.toAcknowledge.sorted()
    channels[channel]!.toAcknowledge = []
    let log = channels[channel]!
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

extension ChannelLog {
  /// Our next entry, of the first messages that wait.
  mutating func makeEntry(_ own: LogKey, isHidden: Bool, messageCount: Int) -> Entry {
    let batch = submissions.take(messageCount)
    let number = takeOwnNumber(own)
    ownInFlight = true
    lamport = clock + 1
    lastTimestamp = max(lastTimestamp, batch.last!.timestamp)
    waiting[number] = batch.map(\.request)
    return Entry(
      key: own, number: number, lamport: lamport, timestamp: lastTimestamp, isHidden: isHidden,
      items: batch.map { Entry.Item(kind: $0.kind, body: $0.json) })
  }
}

/// What waits to be said, oldest first.
struct SubmissionQueue: Sendable {
  private var items: [Submission] = []
  private var start = 0
  private(set) var byteCount = 0

  var first: Submission? { start < items.count ? items[start] : nil }
  var waiting: ArraySlice<Submission> { items[start...] }

  mutating func append(_ submission: Submission) {
    items.append(submission)
    byteCount += submission.json.count
  }

  mutating func take(_ count: Int) -> [Submission] {
    let taken = Array(items[start..<start + count])
    start += count
    byteCount -= taken.reduce(0) { $0 + $1.json.count }
    if start * 2 > items.count {
      items.removeFirst(start)
      start = 0
    }
    return taken
  }
}
