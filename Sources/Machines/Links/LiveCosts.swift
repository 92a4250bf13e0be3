import ParleyVocabulary
import ParleyWire

/// What a peer's presences and live objects have cost.
struct LiveCosts: Equatable, Sendable {
  private var presences: RateAllowance?
  private var liveObjects: RateAllowance?
  private var liveBytes: RateAllowance?

  /// Nil when there was room for it.
  mutating func excess(of claim: LiveClaim, _ limits: MemberLimits, at now: Instant) -> MemberExcess? {
    switch claim {
    case .presence:
      var allowance = presences ?? RateAllowance(limits.presences)
      defer { presences = allowance }
      return allowance.take(1, at: now) ? nil : .presences
    case .live(let live, _): return liveExcess(byteCount: live.json.count, limits, at: now)
    }
  }

  /// Of a live object, or of what was said to us alone and is for nobody who is absent.
  mutating func liveExcess(byteCount: Int, _ limits: MemberLimits, at now: Instant) -> MemberExcess? {
    var (objects, bytes) = (
      liveObjects ?? RateAllowance(limits.liveObjects), liveBytes ?? RateAllowance(limits.liveBytes)
    )
    defer { (liveObjects, liveBytes) = (objects, bytes) }
    guard objects.take(1, at: now) else { return .liveObjects }
    return bytes.take(UInt64(byteCount), at: now) ? nil : .liveObjects
  }
}

extension DatagramFrame {
  /// Whether a signature has to be checked for it. Parts of entries cost one when they are whole.
  var holdsEntry: Bool {
    switch self {
    case .entry, .fragment: true
    default: false
    }
  }

  var isSigned: Bool {
    switch self {
    case .presence, .live, .entry: true
    case .fragment, .liveFragment, .direct, .suspect, .whoHas: false
    }
  }
}

extension LinksMachine {
  /// Once a minute for each member.
  mutating func report(
    _ channel: ChannelID, _ peer: PeerID, _ excess: MemberExcess, _ now: Instant
  ) -> [LinksEffect] {
    if let at = reportedAt[peer], now - at < MemberMeters.reportAgain { return [] }
    if reportedAt.count >= 4_096 { reportedAt = [:] }
    reportedAt[peer] = now
    return [.report(channel, peer, excess)]
  }
}
