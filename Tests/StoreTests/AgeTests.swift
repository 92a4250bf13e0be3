import ParleyVocabulary
import Testing

@testable import ParleyStore

/// How old things are must not hang on a clock that anybody can set.
struct AgeTests {
  let folder = Folder()
  /// 1 January 2026.
  let today: Int64 = 1_767_225_600_000
  let day = TestClocks.day

  private func open(_ clocks: TestClocks) throws -> Store { try Store(path: folder.store, clocks: clocks.clocks) }

  @Test func whileOpenItGoesWithTheUptime() throws {
    let clocks = TestClocks(wall: today)
    let store = try open(clocks)
    #expect(store.age == today)
    clocks.pass(days: 3, milliseconds: 7)
    #expect(store.age == today + 3 * day + 7)
    for wall in [0, -5, today + 400 * day, .max, .min] {
      clocks.set(wall: wall)
      #expect(store.age == today + 3 * day + 7)
      try store.add([entry(1)])
    }
  }

  @Test(arguments: [
    (days: Int64(2), believed: Int64(2)), (days: 0, believed: 0), (days: -20_454, believed: 0), (days: 6, believed: 6),
    (days: 400, believed: 7), (days: 8, believed: 7),
  ]) func anOpeningBelievesTheTimeOfDayWithinBounds(_ closed: (days: Int64, believed: Int64)) throws {
    let clocks = TestClocks(wall: today)
    do {
      let store = try open(clocks)
      try store.add([entry(1)])
      // The end of a run is written too, not only its batches.
      clocks.pass(days: 1)
    }
    clocks.restartMachine()
    clocks.set(wall: today + day + closed.days * day)
    let store = try open(clocks)
    #expect(store.age == today + day + closed.believed * day)
  }

  @Test func aClockThatStartsIn1970GoesOnFromThere() throws {
    let clocks = TestClocks(wall: 0)
    do {
      let store = try open(clocks)
      #expect(store.age == 0)
      try store.add([entry(1)])
    }
    // The network has told the time meanwhile.
    clocks.set(wall: today)
    let store = try open(clocks)
    #expect(store.age == 7 * day)
    #expect(try store.prune(channel(1), keeping: Retention(days: 8, entryCountMax: 100)).removedCount == 0)
  }

  @Test func noLeapOfTheClockDeletesAnything() throws {
    let clocks = TestClocks(wall: today)
    let retention = Retention(days: 30, entryCountMax: 1_000)
    do { try open(clocks).add((1...5).map { entry($0) }) }
    for wall in [today + 365 * day, 0, today + 365 * day, today] {
      clocks.set(wall: wall)
      let store = try open(clocks)
      #expect(try store.prune(channel(1), keeping: retention).removedCount == 0)
    }
    // Thirty days that did pass.
    let store = try open(clocks)
    clocks.pass(days: 31)
    #expect(try store.prune(channel(1), keeping: retention).removedCount == 5)
  }

  @Test func batchesWriteItSoACrashLosesNothing() throws {
    let clocks = TestClocks(wall: today)
    let store = try open(clocks)
    clocks.pass(days: 40)
    try store.add([entry(1)])
    let copy = folder.path + "/copy"
    write(contents(folder.store), to: copy)
    write(contents(folder.store + "-wal"), to: copy + "-wal")
    clocks.set(wall: 0)
    clocks.restartMachine()
    #expect(try Store(path: copy, clocks: clocks.clocks).age == today + 40 * day)
  }

  @Test func whatCameBeforeThereWereAgesIsAsOldAsTheClock() throws {
    do {
      let store = try open(TestClocks(wall: today))
      let note = StoredPeerMessage(peer: peer(2), isOwn: false, id: message("a"), json: [1])
      try store.apply([
        .entry(entry(1)), .peerMessage(note), .outboxAdd(OutboxItem(peer: peer(2), id: message("b"), json: [])),
      ])
      // Stored while the clock stood a year ahead, and before there was an age.
      try store.database.script(
        """
        UPDATE entries SET stored_at = 1798761600000; UPDATE outbox SET queued_at = 0;
        UPDATE sequence SET age = -1, wall = -1;
        """)
      let copy = folder.path + "/copy"
      write(contents(folder.store), to: copy)
      write(contents(folder.store + "-wal"), to: copy + "-wal")
    }
    let clocks = TestClocks(wall: today)
    let store = try Store(path: folder.path + "/copy", clocks: clocks.clocks)
    #expect(try store.database.rows("SELECT stored_at FROM entries") { $0.integer(0) } == [today])
    #expect(try store.outbox().map(\.queuedAt) == [today])
    clocks.pass(days: 29)
    #expect(try store.prune(channel(1), keeping: Retention(days: 30, entryCountMax: 100)).removedCount == 0)
    clocks.pass(days: 2)
    #expect(try store.prune(channel(1), keeping: Retention(days: 30, entryCountMax: 100)).removedCount == 1)
  }
}
