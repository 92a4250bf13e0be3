import ParleyVocabulary

/// So many units a second, and as many at once as `burst`; what is not used gathers up to that. Counts never trap,
/// whatever is asked.
package struct RateAllowance: Equatable, Sendable {
  /// 2^40 units are 2^60 millionths: sums of two stay in 64 bits.
  private static let unitsMax: UInt64 = 1 << 40

  private let perSecond: Int64
  private let burst: Int64
  /// Millionths of a unit that may be used now; below 0 what is owed.
  private var left: Int64
  private var countedAt: Instant?

  package init(perSecond: UInt64, burst: UInt64) {
    self.perSecond = Int64(min(perSecond, Self.unitsMax))
    self.burst = Int64(min(burst, Self.unitsMax)) * 1_000_000
    left = self.burst
  }

  package init(_ rate: MemberLimits.Rate) { self.init(perSecond: rate.perSecond, burst: rate.atOnce) }

  /// Whether nothing is used of it.
  package mutating func isFull(at now: Instant) -> Bool {
    refill(now)
    return left == burst
  }

  /// Whether anything may be used.
  package mutating func isOpen(at now: Instant) -> Bool {
    refill(now)
    return left > 0
  }

  /// True when so many were there, and are used now.
  package mutating func take(_ count: UInt64, at now: Instant) -> Bool {
    refill(now)
    let needed = Int64(min(count, Self.unitsMax)) * 1_000_000
    guard needed <= left else { return false }
    left -= needed
    return true
  }

  /// What has been used already, also when it was more than there was; at most one burst is owed.
  package mutating func charge(_ count: UInt64, at now: Instant) {
    refill(now)
    left = max(-burst, left - Int64(min(count, Self.unitsMax)) * 1_000_000)
  }

  /// When something may be used again.
  package func opens(after now: Instant) -> Instant {
    guard left <= 0 else { return now }
    return now + Span(microseconds: -left / max(1, perSecond) + 1)
  }

  private mutating func refill(_ now: Instant) {
    defer { countedAt = max(countedAt ?? now, now) }
    guard let countedAt, now > countedAt else { return }
    // A unit a second is a millionth a microsecond.
    let (gained, isMore) = (now - countedAt).microseconds.multipliedReportingOverflow(by: perSecond)
    left = isMore || gained >= burst - left ? burst : left + gained
  }
}

/// An allowance for each of many. Who uses nothing takes no room; when all use something and there are too many, some
/// begin anew.
struct Allowances<Key: Hashable & Sendable>: Sendable {
  private let rate: MemberLimits.Rate
  private let countMax: Int
  private var used: [Key: RateAllowance] = [:]

  init(_ rate: MemberLimits.Rate, countMax: Int = 4_096) {
    self.rate = rate
    self.countMax = countMax
  }

  var count: Int { used.count }

  mutating func take(_ key: Key, at now: Instant) -> Bool {
    makeRoom(key, now)
    return used[key, default: RateAllowance(rate)].take(1, at: now)
  }

  private mutating func makeRoom(_ key: Key, _ now: Instant) {
    guard used[key] == nil, used.count >= countMax else { return }
    used = used.filter { _, allowance in
      var allowance = allowance
      return !allowance.isFull(at: now)
    }
    // Sources that are made up: half of them go, so that the next look is far away.
    if used.count >= countMax {
      for key in Array(used.keys.prefix(countMax / 2)) { used[key] = nil }
    }
  }
}
