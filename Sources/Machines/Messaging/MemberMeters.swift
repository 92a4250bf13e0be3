import ParleyVocabulary
import ParleyWire

/// What the entries of each author have cost here. Only genuine ones count, or anybody could use up another's share;
/// whose share is used up is not verified when it comes unasked, and asked for at the limit's rate: nothing is lost,
/// and heads agree in the end.
struct MemberMeters: Sendable {
  private struct Meter: Sendable {
    var entries: RateAllowance
    var asked: RateAllowance
    var bytes: RateAllowance

    mutating func takesUnasked(at now: Instant) -> Bool {
      let hasEntries = entries.isOpen(at: now)
      return bytes.isOpen(at: now) && hasEntries
    }

    mutating func isAskedFor(at now: Instant) -> Bool {
      let hasEntries = asked.isOpen(at: now)
      return bytes.isOpen(at: now) && hasEntries
    }

    func isAskedFor(after now: Instant) -> Instant { max(asked.opens(after: now), bytes.opens(after: now)) }
  }

  private static let countMax = 4_096
  static let reportAgain = Span.seconds(60)

  private let limits: MemberLimits
  private var meters: [PeerID: Meter] = [:]
  /// Those that were over one of their limits when last looked at.
  private var over: Set<PeerID> = []
  private var reportedAt: [PeerID: Instant] = [:]

  init(_ limits: MemberLimits) { self.limits = limits }

  mutating func isOpen(_ author: PeerID, at now: Instant) -> Bool {
    guard over.contains(author) else { return true }
    let isOpen = meters[author]?.takesUnasked(at: now) != false
    if isOpen, meters[author]?.isAskedFor(at: now) != false { over.remove(author) }
    return isOpen
  }

  /// A genuine entry that was not here.
  mutating func charge(_ author: PeerID, byteCount: Int, at now: Instant) {
    if meters[author] == nil, meters.count >= Self.countMax { forgetSome() }
    var meter =
      meters[author]
      ?? Meter(
        entries: RateAllowance(limits.entries), asked: RateAllowance(limits.entriesAsked),
        bytes: RateAllowance(limits.entryBytes))
    meter.entries.charge(1, at: now)
    meter.asked.charge(1, at: now)
    meter.bytes.charge(UInt64(byteCount), at: now)
    let takesUnasked = meter.takesUnasked(at: now)
    if !meter.isAskedFor(at: now) || !takesUnasked { over.insert(author) }
    meters[author] = meter
  }

  /// Whose entries are not asked for now.
  mutating func heldBack(at now: Instant) -> Set<PeerID> {
    for author in over { _ = isOpen(author, at: now) }
    return over.filter { meters[$0]?.isAskedFor(at: now) == false }
  }

  /// When one of them may be asked for again; nil when none is held back.
  func opens(after now: Instant) -> Instant? {
    over.compactMap { meters[$0]?.isAskedFor(after: now) }.filter { $0 > now }.min()
  }

  /// What to tell of it; nil when that was told a minute ago.
  mutating func excess(of author: PeerID, at now: Instant) -> MemberExcess? {
    if let at = reportedAt[author], now - at < Self.reportAgain { return nil }
    if reportedAt.count >= Self.countMax { reportedAt = [:] }
    reportedAt[author] = now
    let hasEntries = meters[author]?.entries.isOpen(at: now) ?? true
    return hasEntries ? .entryBytes : .entries
  }

  private mutating func forgetSome() {
    for author in meters.keys.filter({ !over.contains($0) }).sorted().prefix(Self.countMax / 2) {
      meters[author] = nil
    }
    // With as many as that over their limits at once, they begin anew.
    if meters.count >= Self.countMax {
      meters = [:]
      over = []
    }
  }
}
