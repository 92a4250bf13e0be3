import ParleyVocabulary
import ParleyWire

extension MessagingMachine {
  /// Decoded and looked up before the signature is checked: a repeated entry costs no verification.
  mutating func heard(_ channel: ChannelID, _ bytes: [UInt8], _ now: Instant) -> [MessagingEffect] {
    guard let log = channels[channel] else { return [] }
    guard let entry = try? Entry(decoding: bytes[...]) else {
      refuse()
      return []
    }
    guard log.logs[entry.key]?.has(entry.number) != true else { return acknowledgeAgain(channel, entry, now) }
    guard recordsByteCount < MessagingRule.recordsByteCountMax else { return [] }
    return [.verify(channel, entry)]
  }

  /// Whoever repeats an entry has not heard our acknowledgement.
  private mutating func acknowledgeAgain(_ channel: ChannelID, _ entry: Entry, _ now: Instant) -> [MessagingEffect] {
    guard channels[channel]!.present[entry.key.author] != nil else { return [] }
    channels[channel]!.toAcknowledge.insert(entry.key.author)
    channels[channel]!.acknowledgeAt = channels[channel]!.acknowledgeAt ?? now + MessagingRule.acknowledgeWithin
    return []
  }

  mutating func verified(
    _ channel: ChannelID, _ entry: Entry, _ isGenuine: Bool, _ now: Instant
  ) -> [MessagingEffect] {
    guard var log = channels[channel] else { return [] }
    guard isGenuine else {
      refuse()
      return []
    }
    guard log.logs[entry.key] != nil || log.logs.count < MessagingRule.logsPerChannelMax else { return [] }
    var state = log.logs[entry.key] ?? LogState()
    guard !state.has(entry.number) else { return [] }
    log.lastArrival = now
    log.arrivalCount += 1
    log.repairDelay = .milliseconds(250)
    log.hear(entry.lamport)
    log.announce(entry.key, entry.number)
    state = log.logs[entry.key] ?? state
    if entry.number == state.queued + 1 {
      enqueue(.entry(channel, entry))
      state.queued += 1
      state.advance()
      while let next = state.held.removeValue(forKey: state.queued + 1) {
        log.heldByteCount -= MessagingRecord.entry(channel, next).byteCount
        enqueue(.entry(channel, next))
        state.queued += 1
        state.advance()
      }
      state.holeSince = state.held.isEmpty ? nil : now
      log.tried = []
    } else {
      let byteCount = MessagingRecord.entry(channel, entry).byteCount
      // Beyond the bound it is let go: repair asks for it again, in order.
      if log.heldByteCount + byteCount <= MessagingRule.heldByteCountMax {
        state.held[entry.number] = entry
        log.heldByteCount += byteCount
        state.holeSince = state.holeSince ?? now
      }
    }
    log.logs[entry.key] = state
    log.note(entry.key)
    channels[channel] = log
    if state.isLacking { scheduleRepair(channel, now) }
    return []
  }

  /// A hole that nobody can fill does not hide what comes after it.
  mutating func holesDue(_ channel: ChannelID, _ now: Instant) -> [MessagingEffect] {
    for key in channels[channel]!.lacking.sorted() {
      var log = channels[channel]!
      guard var state = log.logs[key], let since = state.holeSince, now - since >= MessagingRule.holePatience else {
        continue
      }
      if log.request == nil || log.present.isEmpty {
        for number in state.held.keys.sorted() {
          let entry = state.held.removeValue(forKey: number)!
          log.heldByteCount -= MessagingRecord.entry(channel, entry).byteCount
          enqueue(.entry(channel, entry))
          state.beyond.insert(number)
        }
        state.holeSince = nil
      } else {
        state.holeSince = now
      }
      log.logs[key] = state
      channels[channel] = log
    }
    return []
  }

  // MARK: Members

  mutating func memberPresent(
    _ channel: ChannelID, _ peer: PeerID, _ instance: Instance, _ facts: PresenceFacts, _ now: Instant
  ) -> [MessagingEffect] {
    guard channels[channel] != nil else { return [] }
    channels[channel]!.present[peer] = .init(instance: instance, facts: facts)
    // What we said before it came is announced to it.
    if channels[channel]!.logs[ownLogKey] != nil {
      channels[channel]!.announceDelay = MessagingRule.announceFirst
      channels[channel]!.announceAt = now + MessagingRule.announceFirst
    }
    channels[channel]!.tried = []
    return presenceHeard(channel, peer, facts, now) + sendOutbox(to: peer, now)
  }

  mutating func presenceHeard(
    _ channel: ChannelID, _ peer: PeerID, _ facts: PresenceFacts, _ now: Instant
  ) -> [MessagingEffect] {
    guard var log = channels[channel], var member = log.present[peer] else { return [] }
    member.facts = facts
    log.present[peer] = member
    let key = LogKey(author: peer, log: member.instance)
    if facts.head > 0 { log.announce(key, facts.head) }
    if facts.wantsAcknowledgement, let state = log.logs[key], state.stored >= facts.head {
      log.toAcknowledge.insert(peer)
      log.acknowledgeAt = log.acknowledgeAt ?? now + MessagingRule.acknowledgeWithin
    }
    if facts.digest == log.digest {
      log.hasSynced = true
      log.syncDelay = MessagingRule.digestPatience
      if !log.present.values.contains(where: { $0.facts.digest != log.digest }) { log.syncAt = nil }
    } else if log.syncAt == nil {
      log.syncAt = now + (log.hasSynced ? MessagingRule.digestPatience : .milliseconds(30))
    }
    channels[channel] = log
    if log.logs[key]?.isLacking == true { scheduleRepair(channel, now) }
    return []
  }

  mutating func memberGone(_ channel: ChannelID, _ peer: PeerID, _ now: Instant) -> [MessagingEffect] {
    guard var log = channels[channel] else { return [] }
    log.present[peer] = nil
    if log.request?.peer == peer {
      log.request = nil
      log.repairAt = now
    }
    channels[channel] = log
    if !channels.values.contains(where: { $0.present[peer] != nil }) { outbox[peer]?.pause() }
    return []
  }

  func isPresent(_ peer: PeerID) -> Bool { channels.values.contains { $0.present[peer] != nil } }
}
