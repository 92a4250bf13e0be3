import ParleyVocabulary

/// How far Lamport times of others move our clock. What they signed is kept and ordered as it is, but a time far ahead,
/// which only a fault or ill will makes, must neither use up the counter nor take our own messages to the end of time.
package enum LamportRule {
  /// Our clock's highest value at a start: there is room for 2⁶¹ more steps.
  static let startMax = Limit.counterMax / 2

  static func heard(_ lamport: UInt64, by clock: UInt64) -> UInt64 {
    lamport > clock && lamport - clock <= Limit.lamportAheadMax ? lamport : clock
  }

  /// The clock after a restart, from the highest time of each log on the disk: our own count, and those of others as if
  /// they were heard in order.
  package static func restored(_ maxima: [(author: PeerID, lamport: UInt64)], me: PeerID) -> UInt64 {
    let own = maxima.lazy.filter { $0.author == me }.map(\.lamport).max() ?? 0
    return maxima.map(\.lamport).sorted().reduce(min(own, startMax)) { heard($1, by: $0) }
  }
}
