import ParleyVocabulary
import Testing

@testable import ParleyStore

struct EntryTests {
  let folder = Folder()
  let store: Store

  init() throws { store = try Store(path: folder.store) }

  @Test func entriesComeBackWithTheirCursors() throws {
    let first = entry(1, log: .max, hidden: true, bytes: [])
    let second = entry(2, log: .max, lamport: Limit.counterMax)
    #expect(try store.add([first, second]) == [1, 2])
    var stored = [first, second]
    stored[0].cursor = 1
    stored[1].cursor = 2
    #expect(try store.entriesAfter(cursor: 0, in: nil, limit: 10) == stored)
    #expect(try store.entriesAfter(cursor: 1, in: channel(1), limit: 10) == [stored[1]])
    #expect(try store.entriesAfter(cursor: 0, in: channel(1), limit: 1) == [stored[0]])
    #expect(try store.entriesAfter(cursor: .max, in: nil, limit: 10) == [])
    #expect(try store.entriesBefore(nil, in: channel(1), limit: 10) == [stored[1]])
    #expect(try store.lamportMax(in: channel(1)) == Limit.counterMax)
    #expect(try store.entryCount(in: channel(1)) == 2)
    #expect(try store.entryCount(in: channel(2)) == 0)
    #expect(try store.lamportMaxima(in: channel(1)).map(\.lamport) == [Limit.counterMax])
    #expect(try store.lamportMax(in: channel(2)) == 0)
    #expect(try store.lamportMaxima(in: channel(2)).isEmpty)
  }

  @Test func duplicatesChangeNothing() throws {
    try store.add([entry(1), entry(3)])
    let again = [entry(1, bytes: [0]), entry(3, lamport: 99, bytes: [0]), entry(2), entry(2, bytes: [0])]
    #expect(try store.add(again) == [0, 0, 3, 0])
    #expect(try store.entriesAfter(cursor: 0, in: nil, limit: 9).map(\.bytes) == [1, 3, 2].map { entry($0).bytes })
    #expect(try store.lamportMax(in: channel(1)) == 3)
    #expect(try store.entryCount(in: channel(1)) == 3)
    // The same number in another log, of another author and in another channel is another entry.
    #expect(try store.add([entry(1, log: 8), entry(1, author: 2), entry(1, in: channel(2))]) == [4, 5, 6])
  }

  @Test func numbersThatAreNoCountersAreRefused() throws {
    for bad in [entry(0), entry(Limit.counterMax + 1), entry(2, lamport: .max)] {
      #expect(throws: StoreError.self) { try store.add([entry(1), bad]) }
      #expect(try store.logs(in: channel(1)) == [])
    }
    #expect(try store.add([entry(Limit.counterMax)]) == [1])
    #expect(
      throws: StoreError.outOfRange(field: "incarnation", value: .max, min: 0, max: Limit.counterMax)
    ) {
      try store.apply([
        .member(.init(channel: channel(1), peer: peer(1), displayName: "", isOnline: true, incarnation: .max))
      ])
    }
  }

  @Test func headsFollowHolesHoweverTheyFill() throws {
    var generator = SeededGenerator(state: 1)
    var present: Set<UInt64> = []
    for number in (1...200).map(UInt64.init).shuffled(using: &generator) {
      try store.add([entry(number)])
      present.insert(number)
      let contiguous = (1...201).first { !present.contains($0) }! - 1
      let beyond = RangeSet(present.filter { $0 > contiguous }.map { $0..<$0 + 1 })
      let expected = StoredLog(key: entry(1).key, contiguous: contiguous, beyond: beyond)
      #expect(try store.logs(in: channel(1)) == [expected])
      #expect(try store.entryCount(in: channel(1)) == present.count)
    }
    let reopened = try Store(path: try copied())
    #expect(try reopened.logs(in: channel(1)) == [StoredLog(key: entry(1).key, contiguous: 200)])
    #expect(try reopened.add([entry(201)]) == [201])
    #expect(try reopened.logs(in: channel(1)).map(\.contiguous) == [201])
  }

  private func copied() throws -> String {
    let path = folder.path + "/copy"
    for suffix in ["", "-wal"] { write(contents(folder.store + suffix), to: path + suffix) }
    return path
  }

  @Test func orderIsThatOfTheVocabulary() throws {
    var generator = SeededGenerator(state: 42)
    var entries: [StoredEntry] = []
    for index in 0..<600 {
      let author = [0x00, 0x7F, 0x80, 0xFF].randomElement(using: &generator)! as UInt8
      let log = [1, 1 << 62, 1 << 63, .max, generator.next()].randomElement(using: &generator)! as UInt64
      let lamport = UInt64.random(in: 1...20, using: &generator)
      let hidden = index % 7 == 0
      entries.append(entry(UInt64(index + 1), author: author, log: log, lamport: lamport, hidden: hidden))
    }
    try store.add(entries)
    let wanted = entries.filter { !$0.isHidden }.map(\.order).sorted(by: >)
    #expect(try store.entriesBefore(nil, in: channel(1), limit: 1_000).map(\.order) == wanted)
    // Page by page, from one place to the next.
    var pages: [OrderKey] = []
    while true {
      let page = try store.entriesBefore(pages.last, in: channel(1), limit: 37)
      if page.isEmpty { break }
      pages += page.map(\.order)
    }
    #expect(pages == wanted)
    #expect(try store.entriesBefore(nil, in: channel(1), limit: -1) == [])
    let keys = Set(entries.map(\.key)).sorted()
    #expect(try store.logs(in: channel(1)).map(\.key) == keys)
    let hidden = Dictionary(grouping: entries.filter(\.isHidden), by: \.key).values
    let last = hidden.map { $0.max { $0.number < $1.number }! }.sorted { $0.key < $1.key }
    #expect(try store.lastHiddenEntries(in: channel(1)).map(\.order) == last.map(\.order))
  }

  @Test func aRangeStopsAtItsBytesButNeverAtNothing() throws {
    try store.add((1...10).map { entry($0, bytes: [UInt8](repeating: 1, count: 100)) } + [entry(12)])
    func numbers(_ from: UInt64, _ through: UInt64, _ byteCountMax: Int) throws -> [UInt64] {
      try store.entries(in: channel(1), key: entry(1).key, from: from, through: through, byteCountMax: byteCountMax)
        .map(\.number)
    }
    #expect(try numbers(2, 9, 300) == [2, 3, 4])
    #expect(try numbers(2, 9, 299) == [2, 3])
    #expect(try numbers(2, 9, 0) == [2])
    #expect(try numbers(0, .max, .max) == [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12])
    #expect(try numbers(11, 11, 1_000) == [])
    #expect(try numbers(9, 8, 1_000) == [])
    #expect(try store.entries(in: channel(1), key: entry(1, log: 1).key, from: 1, through: 9, byteCountMax: 9) == [])
  }

  @Test func cursorsRiseOverEntriesAndPeerMessagesAndNeverComeBack() throws {
    let note = StoredPeerMessage(peer: peer(2), isOwn: false, id: message("a"), json: [1])
    #expect(try store.apply([.entry(entry(1)), .peerMessage(note), .entry(entry(2))]) == [1, 2, 3])
    #expect(try store.apply([.forgetChannel(channel(1))]) == [0])
    #expect(try store.entriesAfter(cursor: 0, in: nil, limit: 9) == [])
    #expect(store.lastCursor == 3)
    let reopened = try Store(path: try copied())
    #expect(reopened.lastCursor == 3)
    #expect(try reopened.add([entry(1)]) == [4])
  }

  @Test func aForgottenChannelLeavesNothingAndOthersStay() throws {
    for place in [1, 2] as [UInt8] {
      try store.apply([
        .entry(entry(1, in: channel(place))), .share(share(1, in: place)), .share(share(2 + place, in: place)),
        .download(download(place, in: place)), .delivered(channel(place), log: Instance(1), peer: peer(1), number: 1),
        .member(.init(channel: channel(place), peer: peer(1), displayName: "Ana", isOnline: true, incarnation: 1)),
      ])
    }
    // In one batch with a new entry of each, before and after.
    let cursors = try store.apply([
      .entry(entry(2, in: channel(2))), .entry(entry(2)), .forgetChannel(channel(1)), .entry(entry(3, in: channel(2))),
    ])
    #expect(cursors == [3, 4, 0, 5])
    #expect(try store.logs(in: channel(1)) == [])
    #expect(try store.members(in: channel(1)) == [])
    #expect(try store.delivered(in: channel(1)).count == 0)
    #expect(try store.shares().map(\.id) == [media(1), media(4)])
    #expect(try store.channels(announcing: media(1)) == [channel(2)])
    #expect(try store.downloads().map(\.id) == [media(2)])
    #expect(try store.logs(in: channel(2)).map(\.contiguous) == [3])
    #expect(try store.members(in: channel(2)).count == 1)
    #expect(try store.delivered(in: channel(2)).count == 1)
    #expect(try store.add([entry(1)]) == [6])
  }

  @Test func aHundredThousandEntries() throws {
    let logs: [UInt64] = [1, 2, 1 << 63]
    for start in stride(from: UInt64(0), to: 100_000, by: 1_000) {
      try store.add(
        (1...1_000 as ClosedRange<UInt64>).map { offset in
          let index = start + offset
          return entry(index / 3 + 1, log: logs[Int(index % 3)], lamport: index, hidden: index % 10 == 0)
        })
    }
    // Index 1 … 100,000: log 1 (remainder 0) has 2 … 33,334; log 2 (1) 1 … 33,334; the last (2) 1 … 33,333.
    #expect(try store.entryCount(in: channel(1)) == 100_000)
    #expect(try store.lamportMax(in: channel(1)) == 100_000)
    #expect(try store.logs(in: channel(1)).map(\.contiguous) == [0, 33_334, 33_333])
    #expect(try store.logs(in: channel(1)).map { $0.beyond.ranges.map(\.count) } == [[33_333], [], []])
    try store.add([entry(1, log: 1)])
    #expect(try store.logs(in: channel(1)).map(\.contiguous) == [33_334, 33_334, 33_333])
    let page = try store.entriesBefore(entry(33_334, log: 2, lamport: 100_000).order, in: channel(1), limit: 3)
    #expect(page.map(\.lamport) == [99_999, 99_998, 99_997])
  }

  /// Each must find its rows by an index: none may walk the table or sort.
  @Test func pagesAreFoundByIndex() throws {
    let plans = [
      try store.database.rows(
        """
        EXPLAIN QUERY PLAN SELECT bytes FROM entries
        WHERE channel = 1 AND hidden = 0 AND (lamport, author, instance, number) < (1, x'01', x'01', 1)
        ORDER BY lamport DESC, author DESC, instance DESC, number DESC LIMIT 1
        """
      ) { $0.text(3) },
      try store.database.rows(
        "EXPLAIN QUERY PLAN SELECT bytes FROM entries WHERE channel = 1 AND cursor > 1 ORDER BY cursor LIMIT 1"
      ) { $0.text(3) },
      try store.database.rows(
        "EXPLAIN QUERY PLAN SELECT bytes FROM entries WHERE log = 1 AND number BETWEEN 1 AND 2 ORDER BY number"
      ) { $0.text(3) },
    ]
    for plan in plans {
      #expect(plan.count == 1, "\(plan)")
      #expect(plan.first?.hasPrefix("SEARCH entries USING") == true, "\(plan)")
    }
  }

  @Test func headsEndBeforeAGapAndBeforeATimeFarAhead() throws {
    try store.add([entry(1), entry(2), entry(4)])
    try store.add([entry(1, log: 10, lamport: 5), entry(2, log: 10, lamport: 900), entry(3, log: 10, lamport: 7)])
    try store.add([entry(1, author: 2, log: 11)])
    #expect(
      try store.heads(of: peer(1), in: channel(1), lamportMax: 100) == [Instance(9): 2, Instance(10): 1])
    #expect(
      try store.heads(of: peer(1), in: channel(1), lamportMax: 900) == [Instance(9): 2, Instance(10): 3])
    #expect(try store.heads(of: peer(3), in: channel(1), lamportMax: 900).isEmpty)
  }

  @Test func hiddenEntriesOfALogComeNewestFirst() throws {
    try store.add([entry(1, hidden: true), entry(2), entry(3, kept: true), entry(4, hidden: true)])
    #expect(
      try store.hiddenEntries(in: channel(1), of: entry(1).key, before: 4, limit: 9).map(\.number) == [3, 1])
    #expect(try store.lastHiddenEntries(in: channel(1)).map(\.number) == [4])
  }
}
