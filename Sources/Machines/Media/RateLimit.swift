import ParleyVocabulary

/// So many bytes a second, on average: a bucket that fills at that rate and holds what comes in a fifth of a second.
/// What is taken beyond it is owed.
package struct RateLimit: Equatable, Sendable {
  package let bytesPerSecond: UInt64
  /// Below 0: owed.
  private var byteCount: Int64
  private var filledAt: Instant?

  package init(bytesPerSecond: UInt64) {
    precondition((1...1 << 40).contains(bytesPerSecond), "a limit is 1 byte to 1 TiB a second")
    self.bytesPerSecond = bytesPerSecond
    byteCount = 0
    byteCount = burst
  }

  /// The most that is there after a pause: a fifth of a second, and a block at least.
  package var burst: Int64 { max(Int64(Limit.mediaBlockByteCount), Int64(bytesPerSecond / 5)) }

  /// What may be taken now; 0 or less: nothing.
  package mutating func available(at now: Instant) -> Int64 {
    // A clock that stands or goes back fills nothing.
    let since = filledAt.map { (now - $0).microseconds } ?? 0
    if since > 0 || filledAt == nil { filledAt = now }
    // A minute pays for what can be owed, a few reads; of 60 × 2^40 bytes nothing overflows.
    let product = bytesPerSecond.multipliedFullWidth(by: UInt64(min(max(0, since), 60_000_000)))
    let filled = Int64(UInt64(1_000_000).dividingFullWidth(product).quotient)
    byteCount = min(burst, byteCount + filled)
    return byteCount
  }

  package mutating func take(_ count: Int) { byteCount -= Int64(count) }

  /// When something may be taken again.
  package func opens(after now: Instant) -> Instant {
    guard byteCount <= 0 else { return now }
    // Up to 2^40 bytes a second and few bytes owed: nothing overflows. A millisecond more than needed is slept through.
    let microseconds = (1 - byteCount) * 1_000_000 / Int64(bytesPerSecond)
    return now + Span(microseconds: max(1_000, microseconds))
  }
}
