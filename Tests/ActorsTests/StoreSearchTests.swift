import Glibc
import ParleyMachines
import ParleySealing
import ParleyVocabulary
import ParleyWire
import Synchronization
import Testing

@testable import ParleyActors
@testable import ParleyStore

extension StoreActor {
  fileprivate func indexed() throws -> UInt64 { try store.indexedCursor }
  fileprivate func isIndexingWorthwhile() throws -> Bool { try store.isIndexingWorthwhile() }
  fileprivate func waitingCount() throws -> UInt64 { try store.lastCursor - store.indexedCursor }
  /// As if nothing had been written since long ago, or up to a moment to come.
  fileprivate func setLastWrite(_ moment: Instant = Instant(microseconds: 0)) { indexFrom = moment }
  fileprivate func restingUntil() -> Instant { indexFrom }
  /// SQLite raises a limit below the present size to that size: nothing more fits.
  fileprivate func setPageCountMax(isTight: Bool) throws {
    if isTight {
      try store.database.script("PRAGMA max_page_count = 1")
    } else {
      try store.database.script("PRAGMA max_page_count = 1000000")
    }
  }
}

@Suite(.timeLimit(.minutes(1)))
final class StoreSearchTests: Sendable {
  private let folder: String
  private let executor = ThreadExecutor()
  private let troubles = Mutex<[String]>([])
  private let wakes = Mutex<[Instant]>([])
  private let identity: Identity
  private let kitchen = ChannelKeys.open(name: try! ChannelName("kitchen"))

  init() {
    Sealing.initialize()
    identity = Identity.random()
    var template = Array("/tmp/parley-search-XXXXXX".utf8CString)
    precondition(mkdtemp(&template) != nil, "tests need a writable /tmp")
    folder = String(decoding: template.dropLast().map(UInt8.init(bitPattern:)), as: UTF8.self)
  }

  deinit {
    executor.stop()
    for name in ["store.sqlite", "store.sqlite-wal"] { unlink(folder + "/" + name) }
    rmdir(folder)
  }

  private func entry(_ number: UInt64, _ texts: [String], isHidden: Bool = false) -> Entry {
    let sender = Sender(peer: identity.peerID, displayName: try! DisplayName("Ana"))
    let items = texts.enumerated().map { place, text in
      let message = SchemaMessage(
        sender: sender, messageID: MessageID("m\(number)-\(place)")!, timestamp: "2021-03-12T09:05:16Z",
        content: TextKind(body: text))
      return Entry.Item(kind: TextKind.code, body: message.encoded)
    }
    return Entry(
      key: LogKey(author: identity.peerID, log: Instance(7)), number: number, lamport: number, timestamp: 0,
      isHidden: isHidden, items: items, signature: [UInt8](repeating: 1, count: 64))
  }

  private func stored(_ numbers: ClosedRange<UInt64>) -> [StoreWrite] {
    numbers.map { number in
      let entry = entry(number, ["text \(number) " + String(repeating: "and more ", count: 9)])
      return .entry(
        StoredEntry(
          channel: kitchen.id, key: entry.key, number: number, lamport: number, isHidden: false, bytes: entry.encoded))
    }
  }

  private func write(_ numbers: ClosedRange<UInt64>) -> StoreMail {
    .write(batch: numbers.lowerBound, numbers.map { .entry(kitchen.id, entry($0, ["number \($0)", "also"])) })
  }

  private func opened() async throws -> (StoreActor, Switchboard) {
    let switchboard = Switchboard { notice in
      if case .trouble(let text) = notice { self.troubles.withLock { $0.append(text) } }
    }
    let store = try await StoreActor.open(
      path: folder + "/store.sqlite", me: identity.peerID, channels: [],
      retention: Retention(days: 30, entryCountMax: 100_000), executor: executor, switchboard: switchboard,
      wake: { _ in }, wakeIndexing: { instant in self.wakes.withLock { $0.append(instant) } })
    return (store, switchboard)
  }

  @Test func whatIsWrittenIsIndexedBehindAndSearchedAtOnce() async throws {
    let (store, switchboard) = try await opened()
    async let running: Void = store.run()
    switchboard.store.post(write(1...450))
    // Some steps; the rest waits for company or for a search.
    while switchboard.messaging.count < 1 { await Task.yield() }
    await store.setLastWrite()
    switchboard.store.post(.index)
    while try await store.isIndexingWorthwhile() { await Task.yield() }
    #expect(try await store.indexed() > 250)
    let found = try await store.search("number 45", in: kitchen.id, limit: 100)
    #expect(found.map(\.entry.number) == [450, 45])
    #expect(found.allSatisfy { $0.places == [0] && $0.cursor == $0.entry.number })
    #expect(try await store.indexed() == 450)
    // What arrives while a search runs neither breaks it nor is lost.
    switchboard.store.post(write(451...2_000))
    while switchboard.messaging.count < 2 { await Task.yield() }
    async let all = store.search("also", in: kitchen.id, limit: 3_000)
    switchboard.store.post(write(2_001...2_100))
    #expect(try await all.count >= 2_000)
    while switchboard.messaging.count < 3 { await Task.yield() }
    #expect(try await store.search("also", in: kitchen.id, limit: 3_000).count == 2_100)
    switchboard.store.close()
    await running
    #expect(troubles.withLock { $0 } == [])
  }

  @Test func whoWaitsForTheStoreGoesFirst() async throws {
    let (store, switchboard) = try await opened()
    try await store.apply(stored(1...600))
    await store.setLastWrite()
    switchboard.store.post(.tellHidden(kitchen.id))
    await store.indexBehind()
    #expect(try await store.indexed() == 0)
    #expect(await switchboard.store.next().count == 1)
    await store.indexBehind()
    #expect(try await store.indexed() > 400)
    #expect(switchboard.isQuiet, "what is indexed behind holds up no goodbye")
    try await store.apply([])
    switchboard.store.close()
    #expect(switchboard.store.isIdle == false, "no step begins when the end has come")
  }

  @Test func whatIsWrittenRestsBeforeItIsIndexed() async throws {
    let (store, switchboard) = try await opened()
    let before = SystemClock.now()
    try await store.apply(stored(1...600))
    #expect(await store.restingUntil() >= before + StoreActor.indexRest)
    try await store.apply(stored(601...700))
    #expect(wakes.withLock { $0.count } == 1, "one alarm looks after all that is written until it rings")
    let later = SystemClock.now() + .seconds(3_600)
    await store.setLastWrite(later)
    await store.indexBehind()
    #expect(try await store.indexed() == 0)
    #expect(try await store.search("text", in: kitchen.id, limit: 1_000).count == 700, "a search waits for no rest")
    // Where writes never rest, no more than so many wait.
    try await store.apply(stored(701...(701 + StoreActor.unindexedCountMax)))
    await store.setLastWrite(later)
    await store.indexBehind()
    #expect((1...StoreActor.unindexedCountMax).contains(try await store.waitingCount()))
    // An alarm that comes too early is set again.
    async let running: Void = store.run()
    switchboard.store.post(.index)
    while wakes.withLock({ $0.count }) < 2 { await Task.yield() }
    #expect(wakes.withLock { $0.last } == later)
    switchboard.store.close()
    await running
  }

  @Test func hiddenEntriesAndUnreadableOnesAreNotIndexed() async throws {
    let (store, _) = try await opened()
    var broken = entry(3, ["secret"]).encoded
    broken[broken.count - 1] ^= 1
    let key = entry(1, ["x"]).key
    func stored(_ number: UInt64, _ isHidden: Bool, _ bytes: [UInt8]) -> StoreWrite {
      .entry(
        StoredEntry(
          channel: kitchen.id, key: key, number: number, lamport: number, isHidden: isHidden, bytes: bytes))
    }
    try await store.apply([
      stored(1, true, entry(1, ["secret"], isHidden: true).encoded),
      stored(2, false, entry(2, ["seen secret"]).encoded),
      stored(3, false, broken), stored(4, false, []), stored(5, false, entry(5, ["", "secret too"]).encoded),
    ])
    let found = try await store.search("secret", in: kitchen.id, limit: 100)
    #expect(found.map(\.entry.number) == [5, 2])
    #expect(found.map(\.places) == [[1], [0]])
  }

  @Test func aFullDiskIsToldOnceAndASearchTriesAgain() async throws {
    let (store, _) = try await opened()
    try await store.apply(stored(1...400))
    await store.setLastWrite()
    try await store.setPageCountMax(isTight: true)
    await store.indexBehind()
    await store.indexBehind()
    #expect(troubles.withLock { $0.count } == 1)
    #expect(troubles.withLock { $0.first?.contains("is full") } == true)
    let error = await #expect(throws: StoreError.self) {
      try await store.search("text", in: self.kitchen.id, limit: 10)
    }
    guard case .full = error else {
      Issue.record("\(String(describing: error))")
      return
    }
    #expect(try await store.indexed() == 0)
    try await store.setPageCountMax(isTight: false)
    await store.indexBehind()
    #expect(try await store.indexed() == 0, "it rests until somebody searches")
    #expect(try await store.search("text", in: kitchen.id, limit: 1_000).count == 400)
    try await store.apply(stored(401...800))
    await store.setLastWrite()
    await store.indexBehind()
    #expect(try await store.indexed() > 600)
  }
}
