import ParleyVocabulary
import ParleyWire

/// Repair is the receiver's: who sees a hole asks somebody who may have it. Reconciliation is the same thing after an
/// exchange of heads.
extension MessagingMachine {
  mutating func scheduleRepair(_ channel: ChannelID, _ now: Instant) {
    guard channels[channel]!.request == nil, channels[channel]!.repairAt == nil else { return }
    channels[channel]!.repairAt = now + jitter.span(MessagingRule.repairJitter.0, MessagingRule.repairJitter.1)
  }

  mutating func repairDue(_ channel: ChannelID, _ now: Instant) -> [MessagingEffect] {
    if let request = channels[channel]!.request, request.deadline <= now {
      if !request.hasProgressed { channels[channel]!.triedInVain(request.peer) }
      channels[channel]!.request = nil
      channels[channel]!.repairAt = now
    }
    guard channels[channel]!.request == nil, let at = channels[channel]!.repairAt, at <= now else { return [] }
    channels[channel]!.repairAt = nil
    // An answer is worth what could be verified of it, or one who sends rubbish would be asked for ever.
    if let asked = channels[channel]!.lastAsked, asked.arrivals == channels[channel]!.arrivalCount {
      channels[channel]!.triedInVain(asked.peer)
    }
    channels[channel]!.lastAsked = nil
    if channels[channel]!.hasFloors { _ = settleFloors(channel, isSure: false, now) }
    return askNext(channel, now)
  }

  /// Asks one holder for what is missing.
  private mutating func askNext(_ channel: ChannelID, _ now: Instant) -> [MessagingEffect] {
    guard !channels[channel]!.lacking.isEmpty, !channels[channel]!.present.isEmpty else { return [] }
    guard recordsByteCount < MessagingRule.recordsByteCountMax / 2 else {
      channels[channel]!.repairAt = now + MessagingRule.repairFirst
      return []
    }
    let heldBack = meters.heldBack(at: now)
    guard channels[channel]!.lacking.contains(where: { !heldBack.contains($0.author) }) else {
      channels[channel]!.repairAt = meters.opens(after: now) ?? now + MessagingRule.repairFirst
      return []
    }
    guard let peer = holder(channels[channel]!) else {
      // Everybody was asked in vain: what nobody has any more is passed over, the rest is asked for again later.
      if settleFloors(channel, isSure: true, now), !channels[channel]!.lacking.isEmpty { return askNext(channel, now) }
      channels[channel]!.forgetRumours()
      channels[channel]!.pauseRepair(now)
      return []
    }
    let ranges = channels[channel]!.nextRanges(but: heldBack)
    let arrivalCount = channels[channel]!.arrivalCount
    let id = nextRequest
    nextRequest += 1
    channels[channel]!.request = .init(
      peer: peer, id: id, deadline: now + MessagingRule.repairTimeout, ranges: ranges, arrivalCount: arrivalCount)
    channels[channel]!.lastAsked = (peer, arrivalCount)
    return [toSession(peer, .want(channel, request: id, ranges))]
  }

  /// True when something is no longer waited for.
  private mutating func settleFloors(_ channel: ChannelID, isSure: Bool, _ now: Instant) -> Bool {
    let records = channels[channel]!.settleFloors(isSure: isSure, channel, now)
    for record in records { enqueue(record) }
    return !records.isEmpty
  }

  /// Whose heads told of it, else an author of what is missing, else anybody; nobody twice in vain.
  private mutating func holder(_ log: ChannelLog) -> PeerID? {
    if let informant = log.informant, log.present[informant] != nil, !log.tried.contains(informant) {
      return informant
    }
    let authors = Set(log.lacking.map(\.author)).filter { log.present[$0] != nil && !log.tried.contains($0) }
    if let author = authors.min() { return author }
    return log.present.keys.filter { !log.tried.contains($0) }.sorted().randomElement(using: &jitter)
  }

  // MARK: Sessions

  mutating func received(_ message: SessionMessage, _ peer: PeerID, _ now: Instant) -> [MessagingEffect] {
    switch message {
    case .heads(let channel, let buckets, let heads, let isLast, let answerWanted):
      return heardHeads(channel, buckets, heads, isLast, answerWanted, peer, now)
    case .summary(let channel, let digests): return heardSummary(channel, digests, peer, now)
    case .want(let channel, let request, let ranges):
      guard channels[channel] != nil else { return [] }
      asks.add(.init(peer: peer, channel: channel, request: request, ranges: ranges))
      return startLoads()
    case .entries(let channel, let request, let entries, let isLast):
      return heardEntries(channel, request, entries, isLast, peer, now)
    case .peerMessage(let id, let json): return heardPeerMessage(id, json, peer)
    case .peerStored(let id): return peerStored(id, peer, now)
    case .livePeerMessage(let id, let json): return heardLivePeerMessage(id, json, peer)
    case .ping, .pong, .prove, .presence, .live, .closing, .direct, .generation, .refused: return []
    }
  }

  private mutating func heardHeads(
    _ channel: ChannelID, _ buckets: BucketSet, _ heads: [Head], _ isLast: Bool, _ answerWanted: Bool, _ peer: PeerID,
    _ now: Instant
  ) -> [MessagingEffect] {
    guard channels[channel] != nil else { return [] }
    channels[channel]!.hear(heads, of: peer, own: ownLogKey, now)
    guard isLast else { return [] }
    channels[channel]!.heardAll(of: peer)
    var effects = tellProofs(channel, to: peer)
    if answerWanted, channels[channel]!.mayAnswerHeads(to: peer, now) {
      effects += headsMessages(channel, buckets, answerWanted: false).map { toSession(peer, $0) }
    }
    if channels[channel]!.hasFloors {
      _ = settleFloors(channel, isSure: false, now)
      effects += askForFloors(channel, now)
    }
    if !channels[channel]!.lacking.isEmpty, channels[channel]!.request == nil { channels[channel]!.repairAt = now }
    return effects + repairDue(channel, now)
  }

  mutating func floorsDue(_ channel: ChannelID, _ now: Instant) -> [MessagingEffect] {
    guard let at = channels[channel]!.floorsDue, at <= now else { return [] }
    _ = settleFloors(channel, isSure: false, now)
    if channels[channel]!.request == nil, !channels[channel]!.lacking.isEmpty { channels[channel]!.repairAt = now }
    return repairDue(channel, now)
  }

  /// Where the logs begin is asked of a few before anything is passed over.
  private mutating func askForFloors(_ channel: ChannelID, _ now: Instant) -> [MessagingEffect] {
    guard channels[channel]!.hasFloors,
      let next = channels[channel]!.unheardForFloors.randomElement(using: &jitter)
    else { return [] }
    return compare(channel, with: next)
  }

  private func toSession(_ peer: PeerID, _ message: SessionMessage) -> MessagingEffect {
    .tell(.links(.send(peer, message)))
  }

  private func headsMessages(_ channel: ChannelID, _ buckets: BucketSet, answerWanted: Bool) -> [SessionMessage] {
    let heads = channels[channel]!.heads(in: buckets, own: ownLogKey)
    var messages: [SessionMessage] = []
    var start = 0
    repeat {
      let end = min(start + SessionMessage.headsCountMax, heads.count)
      messages.append(
        .heads(
          channel, buckets, Array(heads[start..<end]), isLast: end == heads.count,
          answerWanted: answerWanted && end == heads.count))
      start = end
    } while start < heads.count
    return messages
  }

  /// Of few logs all heads; of many the buckets first, so that the cost grows with the difference.
  private mutating func compare(_ channel: ChannelID, with peer: PeerID) -> [MessagingEffect] {
    let log = channels[channel]!
    if log.logs.count > MessagingRule.headsAtOnceMax {
      return [toSession(peer, .summary(channel, log.bucketDigests))]
    }
    return headsMessages(channel, .all, answerWanted: true).map { toSession(peer, $0) }
  }

  private mutating func heardSummary(
    _ channel: ChannelID, _ digests: [UInt8: HeadsDigest], _ peer: PeerID, _ now: Instant
  ) -> [MessagingEffect] {
    guard channels[channel] != nil, channels[channel]!.mayAnswerHeads(to: peer, now) else { return [] }
    let own = channels[channel]!.bucketDigests
    let differing = (UInt8.min...UInt8.max).filter { digests[$0] != own[$0] }
    // Also that nothing differs is an answer: it says that this was heard.
    return headsMessages(channel, BucketSet(differing), answerWanted: !differing.isEmpty).map { toSession(peer, $0) }
  }

  private mutating func startLoads() -> [MessagingEffect] {
    var effects: [MessagingEffect] = []
    while let (id, ask) = asks.start() {
      effects.append(.load(id, ask.channel, ask.ranges, byteCountMax: MessagingRule.answerByteCountMax))
    }
    return effects
  }

  mutating func loaded(_ id: LoadID, _ entries: [[UInt8]]) -> [MessagingEffect] {
    guard let load = asks.finish(id) else { return [] }
    var messages: [SessionMessage] = []
    var part: [[UInt8]] = []
    var byteCount = SessionMessage.entriesOverheadByteCount
    for entry in entries {
      let added = entry.count + SessionMessage.entryOverheadByteCount
      if byteCount + added > Limit.sealedPayloadByteCountMax - 16, !part.isEmpty {
        messages.append(.entries(load.channel, request: load.request, part, isLast: false))
        part = []
        byteCount = SessionMessage.entriesOverheadByteCount
      }
      part.append(entry)
      byteCount += added
    }
    messages.append(.entries(load.channel, request: load.request, part, isLast: true))
    return messages.map { toSession(load.peer, $0) } + startLoads()
  }

  private mutating func heardEntries(
    _ channel: ChannelID, _ request: UInt64, _ entries: [[UInt8]], _ isLast: Bool, _ peer: PeerID, _ now: Instant
  ) -> [MessagingEffect] {
    guard channels[channel] != nil else { return [] }
    var effects: [MessagingEffect] = []
    let isAsked = channels[channel]!.request.map { $0.peer == peer && $0.id == request } ?? false
    for bytes in entries { effects += heard(channel, bytes, isAsked: isAsked, now) }
    guard let active = channels[channel]!.request, active.peer == peer, active.id == request else { return effects }
    channels[channel]!.request!.came(entries)
    // Who drips what nobody can use does not keep others from being asked.
    if channels[channel]!.arrivalCount > active.arrivalCount {
      channels[channel]!.request!.deadline = now + MessagingRule.repairTimeout
      channels[channel]!.request!.arrivalCount = channels[channel]!.arrivalCount
    }
    if isLast {
      channels[channel]!.answeredToTheEnd(channels[channel]!.request!)
      if !channels[channel]!.request!.hasProgressed { channels[channel]!.triedInVain(peer) }
      channels[channel]!.request = nil
      // The signatures of this answer are checked before the next question is put.
      channels[channel]!.repairAt = now
    }
    return effects
  }

  mutating func sessionFailed(_ peer: PeerID, _ now: Instant) -> [MessagingEffect] {
    for channel in channels.keys where channels[channel]!.request?.peer == peer {
      channels[channel]!.request = nil
      channels[channel]!.triedInVain(peer)
      channels[channel]!.repairAt = now + .milliseconds(100)
    }
    asks.forget(peer)
    outbox.sessionFailed(peer, now)
    return []
  }

  // MARK: Reconciliation

  mutating func syncDue(_ channel: ChannelID, _ now: Instant) -> [MessagingEffect] {
    guard let at = channels[channel]!.syncAt, at <= now else { return [] }
    let log = channels[channel]!
    let differing = log.present.keys.filter { log.differs(from: $0) }.sorted()
    let others = differing.filter { !log.comparedWith.contains($0) }
    guard let peer = (others.isEmpty ? differing : others).randomElement(using: &jitter) else {
      channels[channel]!.syncAt = nil
      channels[channel]!.patientUntil = nil
      return []
    }
    // While entries arrive the digests differ all the time: patience, but not for ever.
    if log.hasSynced, let until = log.patientUntil, now < until, let arrival = log.lastArrival,
      now - arrival < MessagingRule.digestPatience
    {
      channels[channel]!.syncAt = arrival + MessagingRule.digestPatience
      return []
    }
    if others.isEmpty { channels[channel]!.comparedWith = [] }
    channels[channel]!.comparedWith.insert(peer)
    if log.hurriedCount > 0 {
      channels[channel]!.hurriedCount -= 1
      channels[channel]!.patientUntil = now
      channels[channel]!.syncAt = now + jitter.span(MessagingRule.unevenJitter.0, MessagingRule.unevenJitter.1)
    } else {
      channels[channel]!.patientUntil = now + log.syncDelay + MessagingRule.digestPatience
      channels[channel]!.syncAt = now + log.syncDelay
      channels[channel]!.syncDelay = min(log.syncDelay * 2, MessagingRule.syncSlowest)
    }
    return compare(channel, with: peer)
  }
}
