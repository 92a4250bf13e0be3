import ParleyVocabulary
import Testing

@testable import ParleyMachines

struct RateLimitTests {
  private func at(_ milliseconds: UInt64) -> Instant { Instant(microseconds: milliseconds * 1_000) }

  @Test func overTimeNoMoreIsTakenThanTheRateAllows() {
    var limit = RateLimit(bytesPerSecond: 1_000_000)
    var taken = 0
    var now = at(5_000)
    while now < at(15_000) {
      if limit.available(at: now) > 0 {
        limit.take(Limit.mediaBlockByteCount)
        taken += Limit.mediaBlockByteCount
      } else {
        now = limit.opens(after: now)
      }
    }
    // Ten seconds, the bucket's fifth of a second before, and a block that is owed.
    #expect((9_900_000...10_220_000).contains(taken))
  }

  @Test func afterAPauseThereIsAFifthOfASecond() {
    var limit = RateLimit(bytesPerSecond: 1_000_000)
    #expect(limit.available(at: at(0)) == 200_000)
    limit.take(200_000)
    #expect(limit.available(at: at(0)) == 0)
    #expect(limit.available(at: at(100)) == 100_000)
    #expect(limit.available(at: at(3_600_000)) == 200_000)
    // A clock that goes back fills nothing, and takes nothing away.
    #expect(limit.available(at: at(1_000)) == 200_000)
    limit.take(1_200_000)
    #expect(limit.available(at: at(3_600_100)) == -900_000)
    #expect(limit.opens(after: at(3_600_100)) >= at(3_601_000))
  }

  @Test func theSmallestAndTheLargestLimitDoNotTrap() {
    for rate: UInt64 in [1, 1 << 40] {
      var limit = RateLimit(bytesPerSecond: rate)
      limit.take(1 << 20)
      _ = limit.available(at: at(0))
      _ = limit.opens(after: at(0))
      #expect(limit.available(at: Instant(microseconds: .max / 4)) <= limit.burst)
    }
  }
}
