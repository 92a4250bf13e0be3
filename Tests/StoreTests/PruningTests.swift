import ParleyVocabulary
import Testing

@testable import ParleyStore

struct PruningTests {
  let folder = Folder()
  let clocks = TestClocks(wall: 1_767_225_600_000)
  let store: Store
  let plenty = Retention(days: 30, entryCountMax: 1_000_000)

  init() throws { store = try Store(path: folder.store, clocks: clocks.clocks) }

  private func rows(_ log: LogKey) throws -> [UInt64] {
    try store.entries(in: channel(1), key: log, from: 0, through: .max, byteCountMax: .max).map(\.number)
  }

  @Test func whatIsOlderThanTheDaysGoes() throws {
    try store.add((1...10).map { entry($0) })
    clocks.pass(days: 20)
    try store.add((11...15).map { entry($0) })
    #expect(try store.prune(channel(1), keeping: plenty).floors.isEmpty)
    clocks.pass(days: 10)
    #expect(try store.prune(channel(1), keeping: plenty).removedCount == 0, "thirty days are not over thirty days")
    clocks.pass(milliseconds: 1)
    let step = try store.prune(channel(1), keeping: plenty)
    #expect(step.isDone)
    #expect(step.removedCount == 10)
    #expect(step.floors.map(\.floor) == [10])
    #expect(step.floors.map(\.key) == [entry(1).key])
    #expect(try rows(entry(1).key) == [11, 12, 13, 14, 15])
    #expect(try store.logs(in: channel(1)) == [StoredLog(key: entry(1).key, floor: 10, contiguous: 15)])
    #expect(try store.entryCount(in: channel(1)) == 5)
    // Gone is gone: who still has it may offer it again.
    #expect(try store.add((9...16).map { entry($0) }) == [0, 0, 0, 0, 0, 0, 0, 16])
    #expect(try store.entriesBefore(nil, in: channel(1), limit: 99).map(\.number) == [16, 15, 14, 13, 12, 11])
    #expect(try store.entriesAfter(cursor: 0, in: nil, limit: 99).map(\.cursor) == [11, 12, 13, 14, 15, 16])
  }

  @Test func whatIsKeptForEverStaysBelowTheFloor() throws {
    try store.add((1...10).map { entry($0, kept: $0 % 4 == 1) })
    clocks.pass(days: 31)
    let step = try store.prune(channel(1), keeping: plenty)
    #expect(step.floors.map(\.floor) == [10])
    #expect(try rows(entry(1).key) == [1, 5, 9])
    #expect(try store.keptEntries(in: channel(1), after: 0, limit: 2).map(\.number) == [1, 5])
    #expect(try store.keptEntries(in: channel(1), after: 5, limit: 2).map(\.number) == [9])
    #expect(try store.prune(channel(1), keeping: plenty).removedCount == 0)
    #expect(try store.prune(channel(1), keeping: Retention(days: 30, entryCountMax: 1)).removedCount == 0)
  }

  @Test func whatIsTooMuchGoesInTheSharedOrder() throws {
    // Two logs whose Lamport times interleave, and a third that is newer than both.
    try store.add((1...50).map { entry($0, log: 1, lamport: $0 * 2) })
    try store.add((1...50).map { entry($0, log: 2, lamport: $0 * 2 + 1) })
    try store.add((1...10).map { entry($0, log: 3, lamport: 1_000 + $0) })
    try store.add([entry(1, in: channel(2))])
    let retention = Retention(days: 30, entryCountMax: 60)
    let step = try store.prune(channel(1), keeping: retention)
    #expect(step.isDone)
    #expect(step.floors.map(\.floor) == [25, 25])
    #expect(try store.entryCount(in: channel(1)) == 60)
    #expect(try store.entriesBefore(nil, in: channel(1), limit: 99).map(\.lamport).min() == 52)
    #expect(try store.logs(in: channel(1)).map(\.floor) == [25, 25, 0])
    #expect(try store.prune(channel(1), keeping: retention).removedCount == 0)
    #expect(try store.entryCount(in: channel(2)) == 1)
  }

  @Test func theLastHiddenEntryOfALogStays() throws {
    try store.add((1...20).map { entry($0, hidden: $0 == 4 || $0 == 9) })
    clocks.pass(days: 31)
    #expect(try store.prune(channel(1), keeping: plenty).removedCount == 19)
    #expect(try store.logs(in: channel(1)) == [StoredLog(key: entry(1).key, floor: 20, contiguous: 20)])
    #expect(try store.lastHiddenEntries(in: channel(1)).map(\.number) == [9])
    #expect(try rows(entry(1).key) == [9])
    #expect(try store.entryCount(in: channel(1)) == 0)
    for _ in 0..<2 { #expect(try store.prune(channel(1), keeping: plenty).removedCount == 0) }
    // Another takes its place.
    try store.add([entry(21, hidden: true), entry(22)])
    #expect(try store.prune(channel(1), keeping: plenty).removedCount == 1)
    #expect(try rows(entry(1).key) == [21, 22])
    #expect(try store.logs(in: channel(1)).map(\.floor) == [20])
  }

  @Test func hiddenEntriesCountAsMuchAsOthers() throws {
    try store.add((1...300).map { entry($0, hidden: true) })
    #expect(try store.prune(channel(1), keeping: Retention(days: 30, entryCountMax: 100)).removedCount == 200)
    #expect(try store.logs(in: channel(1)).map(\.floor) == [200])
    #expect(try store.lastHiddenEntries(in: channel(1)).map(\.number) == [300])
  }

  @Test func holesBelowTheFloorAreNotWaitedFor() throws {
    try store.add([1, 2, 5, 6].map { entry($0) })
    clocks.pass(days: 31)
    try store.add([8, 9, 12].map { entry($0) })
    let step = try store.prune(channel(1), keeping: plenty)
    #expect(step.floors.map(\.floor) == [6])
    let beyond = RangeSet([8..<10, 12..<13] as [Range<UInt64>])
    #expect(
      try store.logs(in: channel(1)) == [StoredLog(key: entry(1).key, floor: 6, contiguous: 6, beyond: beyond)])
    #expect(try store.add([entry(4), entry(7)]) == [0, 8])
    #expect(try store.logs(in: channel(1)).map(\.contiguous) == [9])
    #expect(try store.entryCount(in: channel(1)) == 4)
  }

  /// Written before 31, which is old enough, so older still, whenever it came.
  @Test func whatLiesBeforeAnOldEntryGoesWithIt() throws {
    try store.add([entry(31)])
    clocks.pass(days: 31)
    for start in stride(from: UInt64(1), through: 21, by: 10) { try store.add((start..<start + 10).map { entry($0) }) }
    var steps = 0
    while true {
      let step = try store.prune(channel(1), keeping: plenty, countMax: 10)
      #expect(step.removedCount <= 10)
      steps += 1
      if step.isDone { break }
    }
    #expect(steps == 4)
    #expect(try store.logs(in: channel(1)) == [StoredLog(key: entry(1).key, floor: 31, contiguous: 31)])
    #expect(try rows(entry(1).key) == [])
  }

  @Test func aFloorThatIsSetClosesTheHolesBelowIt() throws {
    try store.add([1, 2, 6, 7, 9].map { entry($0) })
    let key = entry(1).key
    try store.apply([.floor(channel(1), key, 5)])
    let nine = RangeSet([9..<10] as [Range<UInt64>])
    #expect(try store.logs(in: channel(1)) == [StoredLog(key: key, floor: 5, contiguous: 7, beyond: nine)])
    try store.apply([.floor(channel(1), key, 3), .floor(channel(1), entry(1, log: 77).key, 40)])
    #expect(try store.logs(in: channel(1)).map(\.floor) == [5, 40])
    #expect(try store.logs(in: channel(1)).map(\.contiguous) == [7, 40])
    #expect(try store.add([entry(4), entry(40, log: 77), entry(41, log: 77)]) == [0, 0, 6])
    // What was here below it is still shown until it is old.
    #expect(try rows(key) == [1, 2, 6, 7, 9])
    #expect(try store.entryCount(in: channel(1)) == 4)
    clocks.pass(days: 31)
    #expect(try store.prune(channel(1), keeping: plenty).removedCount == 6)
    #expect(try store.logs(in: channel(1)).map(\.floor) == [9, 41])
    #expect(
      throws: StoreError.outOfRange(field: "floor", value: .max, min: 0, max: Limit.counterMax)
    ) { try store.apply([.floor(channel(1), key, .max)]) }
  }

  @Test func deliveriesOfALogThatIsGoneGoToo() throws {
    try store.add((1...4).map { entry($0, log: 5) } + (1...4).map { entry($0, log: 6) })
    // Another author's log of the same number: its end is not that of mine.
    try store.add([entry(1, author: 9, log: 6, lamport: 0)])
    for log in [5, 6] as [UInt64] {
      try store.apply([.delivered(channel(1), log: Instance(log), peer: peer(3), number: 4)])
    }
    clocks.pass(days: 31)
    try store.add([entry(5, log: 6)])
    #expect(try store.prune(channel(1), keeping: plenty).removedCount == 9)
    #expect(try store.delivered(in: channel(1)).map(\.log) == [Instance(6)])
  }

  @Test func whatWasPrunedStaysSoAfterARestart() throws {
    try store.add((1...10).map { entry($0) })
    #expect(try store.prune(channel(1), keeping: Retention(days: 30, entryCountMax: 4)).removedCount == 6)
    let copy = folder.path + "/copy"
    write(contents(folder.store), to: copy)
    write(contents(folder.store + "-wal"), to: copy + "-wal")
    let again = try Store(path: copy, clocks: clocks.clocks)
    #expect(try again.logs(in: channel(1)) == [StoredLog(key: entry(1).key, floor: 6, contiguous: 10)])
    #expect(try again.entryCount(in: channel(1)) == 4)
    #expect(try again.add([entry(6), entry(11)]) == [0, 11])
  }

  /// Against a plain model, whatever comes in which order: what is kept and what is gone follow from the rules alone.
  @Test(arguments: [1, 2, 3, 4, 5, 6] as [UInt64]) func anythingInAnyOrder(seed: UInt64) throws {
    var generator = SeededGenerator(state: seed)
    let retention = Retention(days: 10, entryCountMax: 60)
    var model = Model()
    for _ in 0..<40 {
      var batch: [StoredEntry] = []
      for _ in 0..<Int.random(in: 1...30, using: &generator) {
        let log = UInt64.random(in: 1...4, using: &generator)
        let next = UInt64(model.tops[log, default: 1])
        let number = UInt64.random(in: max(1, next > 8 ? next - 8 : 1)...next + 3, using: &generator)
        model.tops[log] = max(Int(next), Int(number) + 1)
        batch.append(entry(number, log: log, lamport: number * 3 + log, hidden: number.isMultiple(of: 7)))
      }
      let cursors = try store.add(batch)
      for (entry, cursor) in zip(batch, cursors) {
        #expect(model.add(entry, at: store.age) == (cursor != 0), "\(entry.key.log) \(entry.number)")
      }
      clocks.pass(days: Int64.random(in: 0...2, using: &generator))
      for _ in 0..<100 where try store.prune(channel(1), keeping: retention, countMax: 5).isDone { break }
      model.prune(at: store.age, retention)
      for log in try store.logs(in: channel(1)) {
        #expect(try rows(log.key) == model.numbers(log.key))
        #expect(log.floor == model.floors[log.key] ?? 0)
        let above = model.numbers(log.key).filter { $0 > log.floor }
        var contiguous = log.floor
        while above.contains(contiguous + 1) { contiguous += 1 }
        #expect(log.contiguous == contiguous)
        #expect(log.beyond == RangeSet(above.filter { $0 > contiguous }.map { $0..<$0 + 1 }))
      }
      #expect(try store.entryCount(in: channel(1)) == model.countedCount)
      #expect(model.countedCount <= 60)
    }
    #expect(model.floors.values.contains { $0 > 0 }, "the case is not an empty one")
  }

  /// Neither end is found by reading the table, or by sorting it.
  @Test func whatGoesIsFoundByIndex() throws {
    let plans = [
      try store.database.rows(
        """
        EXPLAIN QUERY PLAN SELECT author, instance, number FROM entries WHERE channel = 1
        ORDER BY lamport, author, instance, number
        """
      ) { $0.text(3) },
      try store.database.rows(
        """
        EXPLAIN QUERY PLAN SELECT author, instance, number, stored_at FROM entries WHERE channel = 1 ORDER BY cursor
        """
      ) { $0.text(3) },
    ]
    #expect(
      plans == [
        ["SEARCH entries USING COVERING INDEX entries_by_order (channel=?)"],
        ["SEARCH entries USING INDEX entries_by_channel (channel=?)"],
      ])
  }
}

/// What pruning means, said slowly.
private struct Model {
  struct Stored {
    var entry: StoredEntry
    var storedAt: Int64
  }
  var tops: [UInt64: Int] = [:]
  var stored: [Stored] = []
  var floors: [LogKey: UInt64] = [:]

  var countedCount: Int { stored.count { $0.entry.number > floors[$0.entry.key] ?? 0 } }
  func numbers(_ key: LogKey) -> [UInt64] { stored.filter { $0.entry.key == key }.map(\.entry.number).sorted() }

  mutating func add(_ entry: StoredEntry, at age: Int64) -> Bool {
    guard entry.number > floors[entry.key] ?? 0,
      !stored.contains(where: { $0.entry.key == entry.key && $0.entry.number == entry.number })
    else { return false }
    stored.append(Stored(entry: entry, storedAt: age))
    return true
  }

  mutating func prune(at age: Int64, _ retention: Retention) {
    let counted = stored.filter { $0.entry.number > floors[$0.entry.key] ?? 0 }
    let surplus = counted.sorted { $0.entry.order < $1.entry.order }
      .prefix(max(0, counted.count - retention.entryCountMax))
    // A hidden entry that stayed below its floor until there was a later one.
    let left = stored.filter { item in
      item.entry.number <= floors[item.entry.key] ?? 0
        && surplus.last.map { item.entry.order < $0.entry.order } ?? false
    }
    let old = stored.filter { age - $0.storedAt > Int64(retention.days) * TestClocks.day }
    var targets: [LogKey: UInt64] = [:]
    for item in surplus + left + old { targets[item.entry.key] = max(targets[item.entry.key] ?? 0, item.entry.number) }
    for (key, target) in targets {
      let lastHidden = stored.filter { $0.entry.key == key && $0.entry.isHidden }.map(\.entry.number).max()
      stored.removeAll { $0.entry.key == key && $0.entry.number <= target && $0.entry.number != lastHidden }
      // The hidden one that stays below the floor moves nothing.
      if target > floors[key] ?? 0 { floors[key] = target }
    }
  }
}
