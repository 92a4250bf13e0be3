import CSQLite
import ParleyVocabulary
import Testing

@testable import ParleyStore

/// Rows that say what is done to messages and where they are.
@Suite struct ActTests {
  private let folder = Folder()

  private func key(_ number: UInt8) -> [UInt8] { [UInt8](repeating: number, count: 16) }

  private func act(_ number: UInt64, on targets: [UInt8], kind: UInt64 = 19) -> StoredEntry {
    var entry = entry(number, author: 2, hidden: true)
    entry.acts = targets.map { StoredAct(target: key($0), kind: kind, timestamp: number) }
    return entry
  }

  /// The message of an entry is found under the entry's number.
  private func names(_ entry: StoredEntry) -> StoredNames {
    var names = StoredNames()
    if !entry.isHidden { names.messages = [(0, key(UInt8(entry.number))), (3, key(200))] }
    return names
  }

  @Test func actsAreWrittenWithTheirEntry() throws {
    let store = try Store(path: folder.store)
    #expect(try store.hasActs(in: channel(1)) == false)
    try store.add([entry(1), act(1, on: [1, 2]), act(2, on: [1], kind: 22)])
    #expect(try store.hasActs(in: channel(1)))
    #expect(try store.hasActs(in: channel(2)) == false)
    #expect(try store.actEntries(on: key(1), in: channel(1), butOf: 22).map(\.cursor) == [2])
    #expect(try store.actEntries(of: 22, in: channel(1)).map(\.cursor) == [3])
    #expect(try store.acts(of: 22, on: key(1), in: channel(1)).map(\.timestamp) == [2])
    // The same again changes nothing.
    #expect(try store.add([act(1, on: [3])]) == [0])
    #expect(try store.actEntries(on: key(3), in: channel(1), butOf: 0) == [])
  }

  @Test func messagesAreNamedBehindAndForgottenWithTheirEntries() throws {
    let clocks = TestClocks(wall: 1_600_000_000_000)
    let store = try Store(path: folder.store, clocks: clocks.clocks)
    try store.add((1...3).map { entry($0) })
    #expect(try store.entries(named: key(2), in: channel(1)).isEmpty)
    #expect(try store.unnamedEntries(of: peer(1), in: channel(1)).map(\.number) == [1, 2, 3])
    try store.name(names)
    #expect(store.keyedCursor == 3)
    #expect(try store.entries(named: key(2), in: channel(1)).map(\.entry.cursor) == [2])
    #expect(try store.entries(named: key(200), in: channel(1)).map(\.place) == [3, 3, 3])
    #expect(try store.entries(named: key(2), in: channel(2)).isEmpty)
    #expect(try store.unnamedEntries(of: peer(1), in: channel(1)).isEmpty)
    try store.add([act(1, on: [1, 9]), entry(4), act(2, on: [])])
    #expect(try store.entriesActingOnUnnamed(in: channel(1), limit: 10).map(\.cursor) == [4])
    clocks.pass(days: 31)
    _ = try store.prune(channel(1), keeping: Retention(days: 30, entryCountMax: 1_000))
    #expect(try store.entries(named: key(2), in: channel(1)).isEmpty)
    #expect(try store.hasActs(in: channel(1)) == false)
    #expect(try store.database.first("SELECT count(*) FROM message_keys") { $0.integer(0) } == 0)
  }

  /// KINDS.md, edit: restarts the keeping time. What its author did to a message keeps that as long as the deed, and
  /// what others did does not.
  @Test func anEditRestartsTheKeepingTime() throws {
    let clocks = TestClocks(wall: 1_600_000_000_000)
    let store = try Store(path: folder.store, clocks: clocks.clocks)
    let retention = Retention(days: 30, entryCountMax: 1_000, renewingKind: 19)
    try store.add((1...4).map { entry($0) })
    try store.name { entry in
      var names = StoredNames()
      names.messages = [(0, key(UInt8(entry.number)))]
      return names
    }
    clocks.pass(days: 20)
    var edit = entry(5, hidden: true)
    edit.acts = [StoredAct(target: key(2), kind: 19, timestamp: 5), StoredAct(target: key(3), kind: 20, timestamp: 5)]
    edit.isStanding = false
    try store.add([edit, act(1, on: [4])])
    clocks.pass(days: 11)
    for _ in 0..<2 {
      let step = try store.prune(channel(1), keeping: retention)
      #expect(step.isDone)
      #expect(try store.entriesBefore(nil, in: channel(1), limit: 10).map(\.number) == [2])
    }
    clocks.pass(days: 20)
    _ = try store.prune(channel(1), keeping: retention)
    #expect(try store.entriesBefore(nil, in: channel(1), limit: 10).isEmpty)
  }

  /// Once for both where the index is in the file; each for itself in a sealed store.
  @Test func namesAreWrittenWithTheIndex() throws {
    let store = try Store(path: folder.store)
    try store.add((1...5).map { entry($0) })
    try store.index({ _ in [(0, "word")] }, names: names)
    #expect(store.indexedCursor == 5 && store.keyedCursor == 5)
    #expect(try store.entries(named: key(5), in: channel(1)).count == 1)
    try store.add([entry(6)])
    try store.index({ _ in [(0, "word")] }, names: names)
    try store.name(names)
    #expect(try store.entries(named: key(6), in: channel(1)).count == 1)
  }

  /// A reader of what was stored after a cursor is given acts in their place.
  @Test func pagesHoldActsWhereTheyStand() throws {
    let store = try Store(path: folder.store)
    try store.add([entry(1), act(1, on: [1]), entry(2), entry(1, author: 3, hidden: true), act(2, on: [2])])
    for channels in [[channel(1)], [channel(1), channel(2)]] as [Set<ChannelID>] {
      let page = try store.page(after: 1, in: channels, peerMessages: true, byteCountMax: 1_000)
      #expect(page.items.map(\.cursor) == [2, 3, 5])
      #expect(page.isLast && page.through == 5)
    }
  }

  @Test func aForgottenChannelLeavesNothing() throws {
    let store = try Store(path: folder.store)
    try store.add([entry(1), act(1, on: [1])])
    try store.name(names)
    try store.apply([.forgetChannel(channel(1))])
    for count in [
      try store.database.first("SELECT count(*) FROM acts") { $0.integer(0) },
      try store.database.first("SELECT count(*) FROM message_keys") { $0.integer(0) },
    ] { #expect(count == 0) }
  }

  /// Found by what each looks like, rows of these tables are taken for nothing else: no share, no member, no log.
  @Test func salvageTakesThemForNothingElse() throws {
    do {
      let store = try Store(path: folder.store)
      try store.add((1...40).map { entry($0) } + (1...40).map { act($0, on: [UInt8($0), 250]) })
      try store.name(names)
    }
    let salvaged = try Store(path: folder.path + "/new.sqlite")
    let result = try Salvage.fill(salvaged, from: folder.store, checks: nil)
    #expect(result.entryCount == 80 && result.messageCount == 0 && result.waitingCount == 0)
    #expect(try salvaged.members(in: channel(1)).isEmpty && salvaged.shares(in: channel(1)).isEmpty)
    #expect(try salvaged.channels() == [channel(1)])
    #expect(try salvaged.delivered(in: channel(1)).isEmpty)
  }
}
