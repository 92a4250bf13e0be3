import ParleyVocabulary

/// What of one room this node heard in the last second, its own messages included, and what it may still say. Above 20
/// messages a second those of low priority are not sent, then those of normal priority; of high priority 200 are. Who
/// comes later is the one that is not sent.
///
/// What was let through cannot be taken back, so it counts only against what is no more important: twenty low ones do
/// not keep a normal one away.
package struct RoomRate: Sendable {
  package enum Rank: Int, Sendable, CaseIterable, Comparable {
    case low, normal, high
    package static func < (a: Self, b: Self) -> Bool { a.rawValue < b.rawValue }
  }

  package static let countMax = 20
  package static let highCountMax = 200
  package static let window = Span.seconds(1)

  /// How many messages a second, of this rank and above, keep one more of it away.
  package static func limit(of rank: Rank) -> Int { rank == .high ? highCountMax : countMax }

  /// When the last ones were heard, of each rank at most as many as can matter.
  private var heard: [Rank: [Instant]] = [:]

  package init() {}

  /// A message was heard.
  package mutating func note(_ rank: Rank, at now: Instant) {
    var times = recent(rank, now)
    times.append(now)
    heard[rank] = Array(times.suffix(Self.highCountMax))
  }

  /// Whether a message may be said now; if so, it counts.
  package mutating func admit(_ rank: Rank, at now: Instant) -> Bool {
    let limit = Self.limit(of: rank)
    let count = Rank.allCases.filter { $0 >= rank }.reduce(0) { $0 + recent($1, now).count }
    guard count < limit else { return false }
    note(rank, at: now)
    return true
  }

  private func recent(_ rank: Rank, _ now: Instant) -> [Instant] {
    (heard[rank] ?? []).filter { now < $0 + Self.window }
  }
}
