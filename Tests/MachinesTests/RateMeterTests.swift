import ParleyVocabulary
import Testing

@testable import ParleyMachines

struct RateMeterTests {
  private func at(_ milliseconds: UInt64) -> Instant { Instant(microseconds: milliseconds * 1_000) }

  @Test func theRateIsThatOfTheLastSeconds() {
    var meter = RateMeter()
    #expect(meter.bytesPerSecond(at: at(0)) == 0)
    meter.note(1_000_000, at: at(0))
    #expect(meter.bytesPerSecond(at: at(0)) == 0)
    for step in 1...20 { meter.note(1_000_000 + UInt64(step) * 100_000, at: at(UInt64(step) * 500)) }
    // 100,000 bytes each half second.
    #expect(meter.bytesPerSecond(at: at(10_000)) == 200_000)
    // Nothing more comes: it fades, and is nothing after the window.
    #expect((1..<200_000).contains(meter.bytesPerSecond(at: at(12_000))))
    #expect(meter.bytesPerSecond(at: at(15_001)) == 0)
  }

  @Test func whatComesCloseTogetherIsNotAllKeptAndLessBeginsAnew() {
    var meter = RateMeter()
    for step in 0...100_000 { meter.note(UInt64(step) * 10, at: Instant(microseconds: UInt64(step) * 10)) }
    #expect((900_000...1_100_000).contains(meter.bytesPerSecond(at: at(1_000))))
    meter.note(5, at: at(1_001))
    #expect(meter.bytesPerSecond(at: at(1_500)) == 0)
    meter.note(.max, at: at(2_001))
    #expect(meter.bytesPerSecond(at: at(2_001)) > 1 << 60)
  }
}
