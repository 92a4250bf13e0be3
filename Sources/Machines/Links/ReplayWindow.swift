/// Which counters of one instance were seen: the last 64 below the highest (as in RFC 4303 section 3.4.3).
package struct ReplayWindow: Equatable, Sendable {
  private var highest: UInt64 = 0
  private var seen: UInt64 = 0

  package init() {}

  package func isFresh(_ counter: UInt64) -> Bool {
    if counter > highest { return true }
    let age = highest - counter
    return age < 64 && seen & (1 << age) == 0
  }

  /// Only after whatever carried the counter has been authenticated.
  package mutating func accept(_ counter: UInt64) {
    if counter > highest {
      let shift = counter - highest
      seen = shift >= 64 ? 1 : seen << shift | 1
      highest = counter
    } else if highest - counter < 64 {
      seen |= 1 << (highest - counter)
    }
  }
}
