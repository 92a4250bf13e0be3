import ParleyVocabulary
import ParleyWire

/// Other runs of our own identity. That their presence is heard says nothing: it may have been recorded before a backup
/// of the profile was restored. Whoever answers there with our key, now, is one too many.
struct Elsewhere: Equatable, Sendable {
  static let again = Span.seconds(1)
  static let runCountMax = 8

  /// The incarnation each was heard under last.
  private var runs: [Instance: UInt64] = [:]
  private var dialAt: Instant?

  func incarnation(of instance: Instance) -> UInt64? { runs[instance] }

  /// True when it is to be looked whether it lives.
  mutating func hear(_ instance: Instance, _ incarnation: UInt64, at now: Instant) -> Bool {
    if runs[instance] == nil, runs.count == Self.runCountMax, let other = runs.keys.min() { runs[other] = nil }
    runs[instance] = max(incarnation, runs[instance] ?? 0)
    guard dialAt.map({ $0 <= now }) ?? true else { return false }
    dialAt = now + Self.again
    return true
  }
}

extension LinksMachine {
  mutating func lookElsewhere(
    _ claim: LiveClaim, _ address: Address?, _ now: Instant
  ) -> [LinksEffect] {
    guard case .presence(let presence, _) = claim, presence.instance != instance, presence.tcpPort != 0, let address,
      elsewhere.hear(presence.instance, presence.incarnation, at: now)
    else { return [] }
    let link = LinkID(nextDial)
    nextDial += 2
    dials[link] = Dial(peer: me)
    return [.dial(link, address.with(port: presence.tcpPort), expecting: me, channels: channels.sorted())]
  }

  /// A handshake with ourselves: an address of our own, or a copy of this profile that runs now.
  func metOurselves(_ other: Instance) -> [LinksEffect] {
    guard other != instance, let incarnation = elsewhere.incarnation(of: other) else { return [] }
    return [.tell(.login(.seenElsewhere(incarnation: incarnation, isAfterUs: other > instance)))]
  }

  /// Its profile is an older copy, and nobody here listens to it until it knows how far it had come.
  mutating func report(
    _ presence: Presence, _ channel: ChannelID, _ address: Address?, _ now: Instant
  ) -> [LinksEffect] {
    guard let address, var known = peers[presence.author], known.instance != presence.instance,
      known.reportAt.map({ $0 <= now }) ?? true
    else { return [] }
    known.reportAt = now + MembershipRule.reportAgain
    peers[presence.author] = known
    let frame = DatagramFrame.suspect(presence.author, incarnation: known.incarnation)
    return [.unicast(channel, to: address, [.plain(frame)], direct: nil)]
  }
}
