import CSQLite
import ParleyVocabulary
import Testing

@testable import ParleyStore

/// Texts by entry: in these tests an entry's bytes are the texts of its messages, one a line.
private func lines(_ entry: StoredEntry) -> [(place: Int, text: String)] {
  String(decoding: entry.bytes, as: UTF8.self).split(separator: "\n", omittingEmptySubsequences: false).enumerated()
    .map { (place: $0.offset, text: String($0.element)) }
}

private let first = channel(1)

private func said(_ texts: [String], after number: UInt64, in place: ChannelID) -> [StoredEntry] {
  texts.enumerated().map { entry(number + UInt64($0.offset) + 1, in: place, bytes: Array($0.element.utf8)) }
}

extension Store {
  fileprivate func search(
    _ text: String, in place: ChannelID, limit: Int, matchCountMax: Int = Store.searchStepCountMax
  ) throws -> [FoundEntry] {
    var search = StoreSearch(text, in: place, limit: limit)
    while !search.isOver { try goOn(&search, matchCountMax: matchCountMax) }
    return try found(search)
  }

  fileprivate func indexAll() throws { while isIndexBehind { try index(lines) } }

  /// The texts found, newest first.
  fileprivate func found(_ text: String, in place: ChannelID = first, limit: Int = 100) throws -> [String] {
    try search(text, in: place, limit: limit).flatMap { hit in hit.places.map { lines(hit.entry)[$0].text } }
  }

  fileprivate func say(_ texts: [String], in place: ChannelID = first) throws {
    try add(said(texts, after: try logs(in: place).first?.contiguous ?? 0, in: place))
  }

  /// Rows of the index, found or not.
  fileprivate func indexRowCount() throws -> Int64 {
    // There is no index before the first step.
    if indexedCursor == 0 { return 0 }
    return try database.first("SELECT count(*) FROM search") { $0.integer(0) } ?? 0
  }

  fileprivate func checkIndex() throws {
    if indexedCursor == 0 { return }
    try database.run("INSERT INTO search (search, rank) VALUES ('integrity-check', 1)")
  }
}

extension StaticString: @retroactive CustomTestStringConvertible {
  public var testDescription: String { "\(self)" }
}

struct SearchTests {
  let folder = Folder()
  let store: Store

  init() throws { store = try Store(path: folder.store) }

  static let texts = [
    "Lunch at noon, café Müller?", "明天下午开会，请带笔记本", "🎉 Geburtstag 🎂 heute", "今日は会議があります。東京タワーで",
    "회의는 세 시에 시작합니다", "الاجتماعُ غدًا في السَّاعة الثالثة", "बैठक कल है", "ประชุมพรุ่งนี้เช้า", "👨‍👩‍👧 in 🇩🇪, 👍🏽 ❤️",
    "C++ or C#? it's 100% \"quoted\" AND NEAR(x) a*b^c col:umn", "混ぜてmixしたtext開会式", "plan_v2.final.pdf", "שָׁלוֹם לכולם",
  ]

  @Test(arguments: [
    // Words, prefixes of the last one, accents, case, several words in any order.
    ("lunch", [0]), ("LUNCH no", [0]), ("noon lunch", [0]), ("lun noon", []), ("cafe", [0]), ("CAFÉ", [0]),
    ("cafe\u{301} muller", [0]), ("lunch dinner", []),
    // Chinese, Japanese, Korean: any part, in its order.
    ("开会", [1]), ("会开", []), ("开 会", [1]), ("会", [1, 3, 10]), ("請", []), ("请带笔记本", [1]), ("会議", [3]), ("タワー", [3]),
    ("東京", [3]), ("회의", [4]), ("의는", [4]), ("시작", [4]), ("회시", []),
    // Arabic with and without vowel signs and hamza, Hebrew with and without points, Hindi, Thai.
    ("الاجتماع", [5]), ("الاِجتماعُ", [5]), ("الساعة", [5]), ("السَّاعَة", [5]), ("غدا", [5]), ("שלום", [12]),
    ("שָׁלוֹם", [12]),
    ("बैठक", [6]), ("कल", [6]), ("काल", []), ("ประชุม", [7]), ("พรุ่งนี้", [7]), ("เช้า", [7]),
    // Emoji, with and without what selects and joins them.
    ("🎉", [2]), ("🎂", [2]), ("🎉🎂", []), ("🎂 🎉", [2]), ("❤", [8]), ("❤️", [8]), ("👍", [8]), ("👍🏽", [8]), ("👍🏿", []),
    ("👨‍👩‍👧", [8]), ("👧", [8]), ("👧👨", []), ("🇩🇪", [8]), ("🇪", []), ("🇪🇩", []),
    // Mixed.
    ("mix", [10]), ("mixした", [10]), ("text開", [10]), ("開会式", [10]), ("plan", [11]), ("v2.final", [11]),
    ("v2 pdf", [11]),
    // What FTS5 would take for syntax.
    ("c++", [9]), ("C#", [9]), ("100%", [9]), ("it's", [9]), ("\"quoted\"", [9]), ("AND", [9]), ("NEAR", [9]),
    ("NEAR(x)", [9]), ("NOT", []), ("lunch OR heute", []), ("lunch NOT heute", []), ("a*b^c", [9]), ("col:umn", [9]),
    ("tokens:lunch", []), ("lunch*", [0]), ("^lunch", []), ("-lunch", [0]), ("\"lunch", [0]), ("lunch\" \"heute", []),
    ("(", []), ("\"", []), ("\"\"", []), ("*", []), ("{lunch}: +", []), ("lunch\0heute", []), ("') DROP TABLE", []),
    ("", []), (" \n\u{3000}", []), ("«»", []), ("\u{200D}\u{FE0F}", []),
  ])
  func everyLanguageIsFound(_ query: String, _ wanted: [Int]) throws {
    try store.say(Self.texts)
    try store.indexAll()
    #expect(try store.found(query) == wanted.reversed().map { Self.texts[$0] })
  }

  @Test func theNewestComeFirstInTheSharedOrderAndChannelsApart() throws {
    var generator = SeededGenerator(state: 5)
    var entries: [StoredEntry] = []
    for number in 1...300 as ClosedRange<UInt64> {
      let author = UInt8.random(in: 1...3, using: &generator)
      let lamport = UInt64.random(in: 1...50, using: &generator)
      let isHidden = number % 11 == 0
      let text = number % 3 == 0 ? "red\nblue\nred" : "blue"
      entries.append(entry(number, author: author, lamport: lamport, hidden: isHidden, bytes: Array(text.utf8)))
    }
    try store.add(entries + [entry(1, in: channel(2), bytes: Array("red elsewhere".utf8))])
    try store.indexAll()
    let wanted = entries.filter { !$0.isHidden && $0.number % 3 == 0 }.sorted { $0.order > $1.order }
      .map(\.order)
    let all = try store.search("red", in: channel(1), limit: 1_000)
    #expect(all.map(\.entry.order) == wanted)
    #expect(all.allSatisfy { $0.places == [2, 0] })
    let seven = try store.search("red", in: channel(1), limit: 7)
    #expect(Array(seven.prefix(3)) == Array(all.prefix(3)))
    #expect(seven.map(\.places) == [[2, 0], [2, 0], [2, 0], [2]])
    for step in [1, 2, 10, 199, 200] {
      #expect(try store.search("red", in: channel(1), limit: 1_000, matchCountMax: step) == all, "steps of \(step)")
    }
    #expect(try store.found("red", in: channel(2)) == ["red elsewhere"])
    #expect(try store.found("red", in: channel(3)) == [])
    #expect(try store.found("red", limit: 0) == [])
  }

  @Test func stepsAreBoundedAndHaveAnEnd() throws {
    try store.say((1...450).map { "word \($0)" })
    try store.apply([.peerMessage(StoredPeerMessage(peer: peer(2), isOwn: false, id: message("a"), json: [1]))])
    #expect(try store.isIndexingWorthwhile())
    #expect(try store.found("word") == [], "nothing is indexed before somebody says so")
    try store.index(lines)
    #expect(try store.found("word", limit: 1_000).count == 200)
    try store.index(lines)
    #expect(try store.isIndexingWorthwhile() == false)
    #expect(store.isIndexBehind)
    try store.index(lines)
    #expect(try store.found("word", limit: 1_000).count == 450)
    #expect(store.isIndexBehind == false)
    // Large entries by bytes.
    let large = String(repeating: "large ", count: 5_000)
    try store.say([large, large, large])
    try store.index(lines)
    #expect(try store.found("large").count == 2)
    try store.indexAll()
    #expect(try store.found("large").count == 3)
    try store.index(lines)
    #expect(try store.found("large").count == 3, "a step with nothing to do changes nothing")
    try store.checkIndex()
  }

  /// The index and how far it has come are of one commit: a crash at any moment leaves neither a hole nor a double.
  @Test func aCrashAnywhereLeavesAnIndexThatGoesOn() throws {
    try store.say((1...900).map { "number \($0) 开会" })
    for _ in 0..<4 { try store.index(lines) }
    let wal = contents(folder.store + "-wal")
    var generator = SeededGenerator(state: 11)
    var indexed: Set<UInt64> = []
    for _ in 0..<40 {
      let copy = folder.path + "/copy"
      write(contents(folder.store), to: copy)
      write(wal.prefix(Int.random(in: wal.count / 4...wal.count, using: &generator)), to: copy + "-wal")
      let survivor = try Store(path: copy)
      #expect(survivor.setAside == nil)
      indexed.insert(survivor.indexedCursor)
      #expect(try survivor.indexRowCount() == Int64(survivor.indexedCursor))
      try survivor.indexAll()
      let count = try survivor.entriesAfter(cursor: 0, in: nil, limit: .max).count
      #expect(try survivor.found("开会", limit: 1_000).count == count)
      try survivor.checkIndex()
    }
    #expect(indexed.count > 2, "the cuts were all alike: \(indexed)")
  }

  @Test func aForgottenChannelLeavesTheIndex() throws {
    try store.say((1...450).map { "secret \($0)\nand 会议" })
    try store.say(["secret of others"], in: channel(2))
    try store.indexAll()
    try store.say(["secret not yet indexed"])
    #expect(try store.indexRowCount() == 901)
    try store.apply([.forgetChannel(channel(1))])
    #expect(try store.found("secret") == [])
    var stepCount = 0
    while try store.isIndexingWorthwhile() {
      try store.index(lines)
      stepCount += 1
    }
    #expect(stepCount == 3)
    #expect(try store.indexRowCount() == 1)
    #expect(try store.database.first("SELECT count(*) FROM search_removals") { $0.integer(0) } == 0)
    let hits = try store.database.rows("SELECT rowid FROM search WHERE search MATCH 'secret OR 会'") { $0.bits(0) }
    #expect(hits == [452 << 8 - 256], "only the other channel's")
    #expect(try store.found("secret", in: channel(2)) == ["secret of others"])
    try store.checkIndex()
    // The same channel again, later.
    try store.say(["secret again"])
    try store.indexAll()
    #expect(try store.found("secret") == ["secret again"])
  }

  /// Whoever deletes entries, by whatever statement, need not know of the index.
  @Test func whatIsDeletedGoesFromTheIndex() throws {
    try store.say((1...300).map { "old \($0)" })
    try store.add([entry(301, hidden: true)])
    try store.indexAll()
    try store.say(["old unindexed"])
    try store.database.run("DELETE FROM entries WHERE number <= 150 OR number > 300")
    #expect(try store.isIndexingWorthwhile() == false, "a few can wait for more")
    #expect(try store.database.first("SELECT count(*) FROM search_removals") { $0.integer(0) } == 150)
    #expect(try store.found("old", limit: 1_000).count == 150)
    #expect(try store.found("old 7") == ["old 300"].filter { $0.hasPrefix("old 7") })
    try store.database.run("DELETE FROM entries WHERE number <= 200")
    #expect(try store.isIndexingWorthwhile())
    try store.index(lines)
    #expect(try store.isIndexingWorthwhile() == false)
    #expect(try store.indexRowCount() == 100)
    // Also what was to be removed when the process ended.
    try store.database.run("DELETE FROM entries WHERE number = 300")
    let copy = folder.path + "/copy"
    for suffix in ["", "-wal"] { write(contents(folder.store + suffix), to: copy + suffix) }
    let reopened = try Store(path: copy)
    #expect(try reopened.isIndexingWorthwhile())
    try reopened.index(lines)
    #expect(try reopened.indexRowCount() == 99)
    try reopened.checkIndex()
  }

  @Test(
    arguments: [
      "UPDATE search_data SET block = x'FFFFFFFFFFFFFFFFFFFF' WHERE id > 10",
      "UPDATE search_data SET block = x'FFFFFFFFFFFFFFFFFFFF' WHERE id = 10", "DELETE FROM search_data WHERE id > 10",
      "DELETE FROM search_data WHERE id = 10", "DELETE FROM search_data", "DELETE FROM search_idx",
    ] as [StaticString])
  func aDamagedIndexIsBuiltAnew(_ harm: StaticString) throws {
    let copy = folder.path + "/copy"
    do {
      let store = try Store(path: copy)
      try store.say(["one 开会", "two 开会"])
      try store.indexAll()
      try store.database.script(harm)
    }
    let store = try Store(path: copy)
    #expect(store.setAside == nil)
    try store.say(["three 开会"])
    try store.indexAll()
    #expect(try store.found("开会") == ["three 开会", "two 开会", "one 开会"])
    try store.checkIndex()
  }

  /// What else SQLite may say is not mended by building the index anew, and would be made worse.
  @Test func onlyADamagedIndexIsBuiltAnew() throws {
    try store.say(["one"])
    try store.indexAll()
    let path = folder.store
    let cases: [(StoreError, Int)] = [
      (.damaged(path: path, reason: "malformed"), 2),
      (.unexpected(path: path, code: SQLITE_CONSTRAINT | 6 << 8, reason: "constraint failed"), 2),
      (.unexpected(path: path, code: SQLITE_NOMEM, reason: "out of memory"), 1),
      (.unexpected(path: path, code: SQLITE_TOOBIG, reason: "too big"), 1),
      (.full(path: path, reason: "full"), 1),
    ]
    for (error, count) in cases {
      var tryCount = 0
      #expect(throws: error) {
        try store.repairing { () throws(StoreError) in
          tryCount += 1
          throw error
        }
      }
      #expect(tryCount == count, "\(error)")
    }
    #expect(try store.found("one") == ["one"])
  }

  /// A letter with which many words begin: each step asks for few pages (300), however many there are. Without lists of
  /// beginnings a step asks for 1,200 here, as one for "word" does.
  @Test(arguments: ["w", "wo", "wor"])
  func stepsOfASearchForABeginningAreBounded(_ beginning: String) throws {
    // 32 words each, no two alike.
    try store.say(
      (0..<3_000).map { message in
        (1...32).map { "word\(UInt64(message * 32 + $0) &* 0x9E37_79B9_7F4A_7C15)" }.joined(separator: " ")
      })
    try store.indexAll()
    var search = StoreSearch(beginning, in: first, limit: 10_000)
    var pageCounts: [Int] = []
    while !search.isOver {
      let before = store.database.pageRequestCount
      try store.goOn(&search, matchCountMax: 100)
      pageCounts.append(store.database.pageRequestCount - before)
    }
    #expect(try store.found(search).count == 3_000)
    #expect(pageCounts.max()! < 600, "\(pageCounts)")
  }

  /// A store from before there was an index gets one.
  @Test func historyFromBeforeIsIndexed() throws {
    let path = folder.path + "/copy"
    do {
      let opening = Opening(
        path: path, migrations: [Schema.migrations[0]], busyMilliseconds: 0, clocks: .system)
      let database = try opening.open(checks: nil).database
      try database.script(
        """
        INSERT INTO channels VALUES (1, zeroblob(32));
        INSERT INTO logs VALUES (1, 1, zeroblob(32), zeroblob(8), 1, 0, 1, 0);
        INSERT INTO entries VALUES (7, 1, 1, 1, 0, 0, 1, zeroblob(32), zeroblob(8), CAST('早会' AS BLOB));
        UPDATE sequence SET last = 7;
        """)
    }
    let store = try Store(path: path)
    #expect(store.isIndexBehind)
    try store.indexAll()
    #expect(try store.found("早", in: ChannelID(Bytes32(words: (0, 0, 0, 0)))) == ["早会"])
  }

  @Test func theTokenizerKnowsTheSymbols() throws {
    #expect(try store.found("before anything is indexed") == [])
    try store.say(["a"])
    try store.indexAll()
    let sql = try store.database.first("SELECT sql FROM sqlite_schema WHERE name = 'search'") { $0.text(0) }
    #expect(sql?.contains("tokenchars '\(SearchText.symbols)'") == true)
  }
}
