import ParleyVocabulary
import ParleyWire

// Acts of owned channels on their way to the fold. What does not count is kept and handed on like all else; whoever
// shows, counts or searches asks the fold.
extension MessagingMachine {
  /// Before what came with them is shown.
  func readActs(of entries: [(ChannelID, Entry)]) -> [MessagingEffect] {
    guard !governances.isEmpty else { return [] }
    var found: [ChannelID: [Entry]] = [:]
    for (channel, entry) in entries where governances[channel] != nil && Act.mayHoldActs(entry) {
      found[channel, default: []].append(entry)
    }
    return found.keys.sorted().map { .readActs($0, found[$0]!) }
  }

  mutating func actsRead(_ channel: ChannelID, _ acts: [Act], _ now: Instant) -> [MessagingEffect] {
    guard let change = governances[channel]?.take(acts), !change.isNothing else { return [] }
    var effects = [governed(channel, change)]
    if channels[channel] != nil {
      effects.append(.tell(.membership(.governed(channel, governances[channel]!))))
      effects += tellTrust(channel, now)
    }
    if !change.toReload.isEmpty { effects.append(.loadActs(channel, change.toReload)) }
    return effects
  }

  /// Places of entries that must not go because they are old: acts of those who may have a right, and what newcomers
  /// say first. Others cannot fill the disk so. Attributes are kept until they can change nothing any more, which is
  /// soon where there are many (`AttributeBook`).
  package func kept(of records: [MessagingRecord]) -> Set<Int> {
    Set(
      records.indices.filter { index in
        guard case .entry(let channel, let entry) = records[index], entry.isHidden else { return false }
        return AttributeAct.mayHold(entry) || isKept(entry, in: channel)
      })
  }

  private func isKept(_ entry: Entry, in channel: ChannelID) -> Bool {
    guard let governance = governances[channel], Act.mayHoldActs(entry) else { return false }
    return governance.candidates.contains(entry.key.author)
      || entry.number <= MessagingRule.joinedWithin && entry.items.contains { $0.kind == JoinedKind.code }
  }

  /// Whom to talk to. Who is refused now may have been let in again by an act that is still on its way, and be the only
  /// one who has it: while something is lacking of those who have a right, new refusals wait, but not for long.
  mutating func tellTrust(_ channel: ChannelID, _ now: Instant) -> [MessagingEffect] {
    guard let governance = governances[channel], channels[channel] != nil else { return [] }
    var trust = governance.trust
    let told = channels[channel]!.toldTrust
    let isNew = trust.refused.keys.contains { told?.refused[$0] == nil }
    let isLacking = channels[channel]!.lacking.contains { governance.candidates.contains($0.author) }
    if isNew, isLacking, channels[channel]!.trustDue.map({ now < $0 }) ?? true {
      channels[channel]!.trustDue = channels[channel]!.trustDue ?? now + MessagingRule.refusalPatience
      trust.refused = trust.refused.filter { told?.refused[$0.key] != nil }
    } else {
      channels[channel]!.trustDue = nil
    }
    guard trust != told else { return [] }
    channels[channel]!.toldTrust = trust
    return [.tell(.links(.trustChanged(channel, trust)))]
  }

  mutating func trustDue(_ channel: ChannelID, _ now: Instant) -> [MessagingEffect] {
    guard let at = channels[channel]!.trustDue, at <= now else { return [] }
    return tellTrust(channel, now)
  }

  func governed(_ channel: ChannelID, _ change: Governance.Change) -> MessagingEffect {
    .notify(.governed(channel, governances[channel]!, change))
  }

  /// Why nobody would be shown it. Whoever was let in by an invitation says so first.
  func exclusion(_ channel: ChannelID, _ submission: Submission) -> VoidReason? {
    let reason = governances[channel]?.troubleSaying(me, isHidden: submission.isHidden, at: submission.timestamp)
    switch reason {
    case .notAdmitted, .removed: return submission.kind == JoinedKind.code ? nil : reason
    default: return reason
    }
  }

  /// Our clock there: what is far ahead of it has not moved it.
  package func lamport(in channel: ChannelID) -> UInt64 { channels[channel]?.lamport ?? 0 }
}
