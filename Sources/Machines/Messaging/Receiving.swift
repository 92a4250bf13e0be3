import ParleyVocabulary
import ParleyWire

extension MessagingMachine {
  /// Decoded and looked up before the signature is checked: a repeated entry costs no verification.
  mutating func heard(
    _ channel: ChannelID, _ bytes: [UInt8], isAsked: Bool, _ now: Instant
  ) -> [MessagingEffect] {
    guard channels[channel] != nil else { return [] }
    guard let entry = try? Entry(decoding: bytes[...]) else {
      refuse()
      return []
    }
    guard channels[channel]!.logs[entry.key]?.has(entry.number) != true else {
      return heardAgain(channel, entry, now)
    }
    guard recordsByteCount < MessagingRule.recordsByteCountMax else { return [] }
    // What was asked for came at our own pace.
    guard isAsked || meters.isOpen(entry.key.author, at: now) else {
      return meters.excess(of: entry.key.author, at: now)
        .map { [.notify(.overLimit(channel, entry.key.author, $0))] } ?? []
    }
    return [.verify(channel, entry)]
  }

  mutating func verified(
    _ channel: ChannelID, _ entry: Entry, _ isGenuine: Bool, _ now: Instant
  ) -> [MessagingEffect] {
    guard channels[channel] != nil else { return [] }
    guard isGenuine else {
      refuse()
      return []
    }
    guard channels[channel]!.logs[entry.key]?.has(entry.number) != true else { return verifiedAgain(channel, entry) }
    guard channels[channel]!.accepts(entry.key) else { return [] }
    twice.note(channel, entry)
    if entry.key.author != me {
      meters.charge(entry.key.author, byteCount: MessagingRecord.byteCount(of: entry), at: now)
    }
    for ready in channels[channel]!.take(entry, now) { enqueue(.entry(channel, ready)) }
    if channels[channel]!.lacking.contains(entry.key) { scheduleRepair(channel, now) }
    return []
  }

  mutating func holesDue(_ channel: ChannelID, _ now: Instant) -> [MessagingEffect] {
    for entry in channels[channel]!.passHoles(now) { enqueue(.entry(channel, entry)) }
    return []
  }

  // MARK: Members

  mutating func memberPresent(
    _ channel: ChannelID, _ peer: PeerID, _ instance: Instance, _ facts: PresenceFacts, _ now: Instant
  ) -> [MessagingEffect] {
    guard channels[channel] != nil else { return [] }
    if let earlier = channels[channel]!.present[peer]?.instance, earlier != instance {
      channels[channel]!.forget(peer)
      uneven(channel, now)
    }
    channels[channel]!.present[peer] = .init(instance: instance, facts: facts)
    // What we said before it came is announced to it.
    if channels[channel]!.logs[ownLogKey] != nil {
      channels[channel]!.announceDelay = MessagingRule.announceFirst
      channels[channel]!.announceAt = now + MessagingRule.announceFirst
    }
    channels[channel]!.progressed()
    return presenceHeard(channel, peer, facts, now) + sendOutbox(to: peer, now)
  }

  mutating func presenceHeard(
    _ channel: ChannelID, _ peer: PeerID, _ facts: PresenceFacts, _ now: Instant
  ) -> [MessagingEffect] {
    guard let member = channels[channel]?.present[peer] else { return [] }
    channels[channel]!.present[peer]!.facts = facts
    let key = LogKey(author: peer, log: member.instance)
    if facts.head > 0 { channels[channel]!.announce(key, facts.head) }
    if facts.wantsAcknowledgement, let state = channels[channel]!.logs[key], state.stored >= facts.head {
      acknowledgeSoon(channel, peer, now)
    }
    if channels[channel]!.lacking.contains(key) { scheduleRepair(channel, now) }
    guard facts.digest == channels[channel]!.digest else {
      if channels[channel]!.differs(from: peer) { channels[channel]!.compareLater(now) }
      return []
    }
    channels[channel]!.agreed()
    // Who holds the same holds what we said: also beyond those who acknowledge by themselves.
    return acknowledged(channel, peer, instance, channels[channel]!.logs[ownLogKey]?.stored ?? 0, now)
  }

  mutating func memberGone(_ channel: ChannelID, _ peer: PeerID, _ now: Instant) -> [MessagingEffect] {
    guard channels[channel] != nil else { return [] }
    guard channels[channel]!.present.removeValue(forKey: peer) != nil else { return [] }
    channels[channel]!.forget(peer)
    twice.forget(peer, channel)
    if !channels[channel]!.present.isEmpty { uneven(channel, now) }
    if channels[channel]!.request?.peer == peer {
      channels[channel]!.request = nil
      channels[channel]!.repairAt = now
    }
    if !channels.values.contains(where: { $0.present[peer] != nil }) { outbox.pause(peer) }
    return []
  }

  private mutating func uneven(_ channel: ChannelID, _ now: Instant) {
    channels[channel]!.isUneven(now, after: jitter.span(MessagingRule.unevenJitter.0, MessagingRule.unevenJitter.1))
  }

  func isPresent(_ peer: PeerID) -> Bool { channels.values.contains { $0.present[peer] != nil } }
}

extension ChannelLog {
  /// Somebody's digest is ours.
  mutating func agreed() {
    hasSynced = true
    guard syncAt != nil, !present.keys.contains(where: { differs(from: $0) }) else { return }
    syncDelay = MessagingRule.digestPatience
    syncAt = nil
    patientUntil = nil
    comparedWith = []
    hurriedCount = 0
  }

  /// Somebody's digest is another.
  mutating func compareLater(_ now: Instant) {
    guard syncAt == nil else { return }
    syncAt = now + (hasSynced ? MessagingRule.digestPatience : .milliseconds(30))
    patientUntil = patientUntil ?? now + MessagingRule.digestPatience * 2
  }

  /// What one who went said last may have reached only some: compare soon, whatever arrives.
  mutating func isUneven(_ now: Instant, after wait: Span) {
    syncAt = min(syncAt ?? now + wait, now + wait)
    patientUntil = now
    comparedWith = []
    hurriedCount = MessagingRule.unevenOthers
  }
}
