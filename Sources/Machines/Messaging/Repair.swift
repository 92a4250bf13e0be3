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
    var log = channels[channel]!
    if let request = log.request, request.deadline <= now {
      if !request.hasProgressed { log.tried.insert(request.peer) }
      log.request = nil
      log.repairAt = now
    }
    channels[channel] = log
    guard log.request == nil, let at = log.repairAt, at <= now else { return [] }
    return askNext(channel, now)
  }

  /// Asks one holder for what is missing.
  private mutating func askNext(_ channel: ChannelID, _ now: Instant) -> [MessagingEffect] {
    var log = channels[channel]!
    log.repairAt = nil
    defer { channels[channel] = log }
    // An answer is worth what could be verified of it, or one who sends rubbish would be asked for ever.
    if let asked = log.lastAsked, asked.arrivals == log.arrivalCount { log.tried.insert(asked.peer) }
    log.lastAsked = nil
    guard !log.lacking.isEmpty, !log.present.isEmpty,
      recordsByteCount < MessagingRule.recordsByteCountMax / 2
    else { return [] }
    guard let peer = holder(log) else {
      // Everybody was asked in vain: again later, whoever is there then.
      log.tried = []
      log.repairAt = now + log.repairDelay
      log.repairDelay = min(log.repairDelay * 2, MessagingRule.repairSlowest)
      return []
    }
    var ranges: [LogRange] = []
    for key in log.lacking.sorted() {
      ranges += log.logs[key]!.missing(key, countMax: 8)
      if ranges.count >= SessionMessage.rangesCountMax { break }
    }
    let id = nextRequest
    nextRequest += 1
    log.request = .init(peer: peer, id: id, deadline: now + MessagingRule.repairTimeout)
    log.lastAsked = (peer, log.arrivalCount)
    return [
      .tell(
        .links(
          .send(peer, .want(channel, request: id, Array(ranges.prefix(SessionMessage.rangesCountMax))))))
    ]
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
    case .heads(let channel, let heads, let isLast, let answerWanted):
      return heardHeads(channel, heads, isLast, answerWanted, peer, now)
    case .want(let channel, let request, let ranges): return wanted(channel, request, ranges, peer)
    case .entries(let channel, let request, let entries, let isLast):
      return heardEntries(channel, request, entries, isLast, peer, now)
    case .peerMessage(let id, let json): return heardPeerMessage(id, json, peer)
    case .peerStored(let id): return peerStored(id, peer, now)
    case .ping, .pong, .prove, .presence, .live, .closing, .direct: return []
    }
  }

  private mutating func heardHeads(
    _ channel: ChannelID, _ heads: [Head], _ isLast: Bool, _ answerWanted: Bool, _ peer: PeerID, _ now: Instant
  ) -> [MessagingEffect] {
    guard channels[channel] != nil else { return [] }
    for head in heads where head.number > 0 { channels[channel]!.announce(head.key, head.number) }
    guard isLast else { return [] }
    channels[channel]!.informant = peer
    channels[channel]!.hasSynced = true
    channels[channel]!.tried.remove(peer)
    channels[channel]!.repairDelay = .milliseconds(250)
    if !channels[channel]!.lacking.isEmpty, channels[channel]!.request == nil { channels[channel]!.repairAt = now }
    let answer = answerWanted ? headsMessages(channel, answerWanted: false).map { toSession(peer, $0) } : []
    return answer + repairDue(channel, now)
  }

  private func toSession(_ peer: PeerID, _ message: SessionMessage) -> MessagingEffect {
    .tell(.links(.send(peer, message)))
  }

  private func headsMessages(_ channel: ChannelID, answerWanted: Bool) -> [SessionMessage] {
    // Of a log with a hole the highest number that is here: who lacks it asks for what we have of the rest.
    let heads = channels[channel]!.logs.map { key, log in
      Head(key: key, number: max(log.stored, log.wasStoredBeyond.max() ?? 0))
    }.filter { $0.number > 0 }.sorted { $0.key < $1.key }
    var messages: [SessionMessage] = []
    var start = 0
    repeat {
      let end = min(start + SessionMessage.headsCountMax, heads.count)
      messages.append(
        .heads(
          channel, Array(heads[start..<end]), isLast: end == heads.count,
          answerWanted: answerWanted && end == heads.count))
      start = end
    } while start < heads.count
    return messages
  }

  private mutating func wanted(
    _ channel: ChannelID, _ request: UInt64, _ ranges: [LogRange], _ peer: PeerID
  ) -> [MessagingEffect] {
    guard channels[channel] != nil else { return [] }
    if loads.values.contains(where: { $0.peer == peer }) {
      // One answer at a time to each; what waits is bounded.
      if asked[peer, default: []].count < 4 { asked[peer, default: []].append((channel, request, ranges)) }
      return []
    }
    let id = LoadID(nextLoad)
    nextLoad += 1
    loads[id] = (peer, channel, request)
    return [.load(id, channel, ranges, byteCountMax: MessagingRule.answerByteCountMax)]
  }

  mutating func loaded(_ id: LoadID, _ entries: [[UInt8]]) -> [MessagingEffect] {
    guard let load = loads.removeValue(forKey: id) else { return [] }
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
    var effects = messages.map { toSession(load.peer, $0) }
    if var waiting = asked[load.peer], !waiting.isEmpty {
      let next = waiting.removeFirst()
      asked[load.peer] = waiting.isEmpty ? nil : waiting
      effects += wanted(next.channel, next.request, next.ranges, load.peer)
    }
    return effects
  }

  private mutating func heardEntries(
    _ channel: ChannelID, _ request: UInt64, _ entries: [[UInt8]], _ isLast: Bool, _ peer: PeerID, _ now: Instant
  ) -> [MessagingEffect] {
    guard channels[channel] != nil else { return [] }
    var effects: [MessagingEffect] = []
    for bytes in entries { effects += heard(channel, bytes, now) }
    guard var active = channels[channel]!.request, active.peer == peer, active.id == request else { return effects }
    if !entries.isEmpty {
      active.hasProgressed = true
    }
    active.deadline = now + MessagingRule.repairTimeout
    channels[channel]!.request = isLast ? nil : active
    if isLast {
      if !active.hasProgressed { channels[channel]!.tried.insert(peer) }
      // The signatures of this answer are checked before the next question is put.
      channels[channel]!.repairAt = now
    }
    return effects
  }

  mutating func sessionFailed(_ peer: PeerID, _ now: Instant) -> [MessagingEffect] {
    for channel in channels.keys where channels[channel]!.request?.peer == peer {
      channels[channel]!.request = nil
      channels[channel]!.tried.insert(peer)
      channels[channel]!.repairAt = now + .milliseconds(100)
    }
    asked[peer] = nil
    outbox[peer]?.sessionFailed(now)
    return []
  }

  // MARK: Reconciliation

  mutating func syncDue(_ channel: ChannelID, _ now: Instant) -> [MessagingEffect] {
    var log = channels[channel]!
    guard let at = log.syncAt, at <= now else { return [] }
    let differing = log.present.filter { $0.value.facts.digest != log.digest }.keys.sorted()
    guard !differing.isEmpty else {
      channels[channel]!.syncAt = nil
      return []
    }
    // While entries arrive the digests differ all the time: patience.
    if log.hasSynced, let arrival = log.lastArrival, now - arrival < MessagingRule.digestPatience {
      channels[channel]!.syncAt = arrival + MessagingRule.digestPatience
      return []
    }
    let peer = differing.randomElement(using: &jitter)!
    log.syncAt = now + log.syncDelay
    log.syncDelay = min(log.syncDelay * 2, MessagingRule.syncSlowest)
    channels[channel] = log
    return headsMessages(channel, answerWanted: true).map { toSession(peer, $0) }
  }
}
