import Glibc

/// Where the store takes the time from; both in milliseconds.
package struct StoreClocks: Sendable {
  /// Since 1970, by this machine's clock: 1970 itself where no battery keeps it, and anything when somebody sets it.
  package var wall: @Sendable () -> Int64
  /// Since the machine started, awake or asleep. Never jumps.
  package var boot: @Sendable () -> Int64

  package init(wall: @escaping @Sendable () -> Int64, boot: @escaping @Sendable () -> Int64) {
    self.wall = wall
    self.boot = boot
  }

  package static let system = StoreClocks(wall: { read(CLOCK_REALTIME) }, boot: { read(CLOCK_BOOTTIME) })

  private static func read(_ clock: clockid_t) -> Int64 {
    var now = timespec()
    clock_gettime(clock, &now)
    return Int64(now.tv_sec) * 1_000 + Int64(now.tv_nsec) / 1_000_000
  }
}

/// By this clock things in the store grow old, in milliseconds. It never goes back, and no clock that is set wrongly
/// makes it leap: while the store is open it goes on with the machine's uptime, and an opening adds what has passed
/// since the last write by the time of day, at least nothing and at most 7 days. It starts at the time of day, and says
/// nothing about it.
struct AgeClock {
  /// At most so much is believed to have passed between two openings: a store opened once a week ages rightly, and a
  /// clock that comes up a year ahead takes a quarter of the usual 30 days at most.
  static let closedMax: Int64 = 7 * 24 * 3_600 * 1_000
  /// Far beyond every year that a date can name, and far below what sums could overflow.
  private static let readingMax: Int64 = 1 << 53

  private let clocks: StoreClocks
  private let startAge: Int64
  private let startBoot: Int64

  /// The first one of a store.
  init(clocks: StoreClocks) {
    self.clocks = clocks
    startAge = Self.clamped(clocks.wall())
    startBoot = clocks.boot()
  }

  /// The clock showed `age` when the store was last written, and the time of day was `wall`.
  init(age: Int64, wall: Int64, clocks: StoreClocks) {
    self.clocks = clocks
    let passed = Self.clamped(clocks.wall()) - Self.clamped(wall)
    startAge = Self.clamped(Self.clamped(age) + min(max(passed, 0), Self.closedMax))
    startBoot = clocks.boot()
  }

  var now: Int64 { Self.clamped(startAge + max(0, Self.clamped(clocks.boot()) - Self.clamped(startBoot))) }
  var wall: Int64 { Self.clamped(clocks.wall()) }

  private static func clamped(_ value: Int64) -> Int64 { min(max(value, 0), readingMax) }
}
