import Glibc
import ParleyVocabulary
import Testing

@testable import ParleyStore

/// What is committed first and synced later.
struct SyncTests {
  let folder = Folder()
  private var copy: String { folder.path + "/copy" }
  private let frameByteCount = 4_096 + 24

  /// The disk as it is now, with another log.
  private func crash(log: [UInt8]) {
    write(contents(folder.store), to: copy)
    write(log, to: copy + "-wal")
    write(contents(folder.store + "-synced"), to: copy + "-synced")
  }

  private func commit(_ store: Store, _ numbers: ClosedRange<UInt64>) throws -> [UInt64] {
    try numbers.map { try store.commit([.entry(entry($0))]).cursors[0] }
  }

  @Test func whatIsCommittedIsThereAfterTheProcessHasDied() throws {
    let store = try Store(path: folder.store)
    let cursors = try commit(store, 1...20)
    #expect(cursors == Array(1...20))
    #expect(store.log?.isSynced == false)
    crash(log: contents(folder.store + "-wal"))
    let survivor = try Store(path: copy)
    #expect(survivor.setAside == nil)
    #expect(try survivor.entriesAfter(cursor: 0, in: nil, limit: .max).map(\.cursor) == cursors)
  }

  /// Of several commits the power cut may take any frames: the last ones are written before the first ones.
  @Test func whatWasNotSyncedMayBeTornAnywhere() throws {
    let store = try Store(path: folder.store)
    _ = try commit(store, 1...10)
    try store.sync()
    #expect(store.log?.isSynced == true)
    let synced = contents(folder.store + "-wal").count
    _ = try commit(store, 11...20)
    let log = contents(folder.store + "-wal")
    for offset in stride(from: synced + 100, to: log.count, by: frameByteCount) {
      var torn = log
      torn[offset] ^= 1
      crash(log: torn)
      let survivor = try Store(path: copy)
      #expect(survivor.setAside == nil)
      #expect(try survivor.logs(in: channel(1))[0].contiguous >= 10)
    }
  }

  @Test func whatWasSyncedAndIsNotAsItWasWrittenIsDamage() throws {
    let store = try Store(path: folder.store)
    _ = try commit(store, 1...10)
    try store.sync()
    let synced = contents(folder.store + "-wal").count
    _ = try commit(store, 11...20)
    let log = contents(folder.store + "-wal")
    for offset in stride(from: 100, to: synced, by: frameByteCount) {
      var damaged = log
      damaged[offset] ^= 1
      crash(log: damaged)
      #expect(try Store(path: copy).setAside != nil, "at \(offset) of \(synced)")
      for name in folder.names where name.hasPrefix("copy") { unlink(folder.path + "/" + name) }
    }
    crash(log: Array(log.prefix(synced - frameByteCount)))
    #expect(try Store(path: copy).setAside != nil, "what was cut off was synced")
  }

  /// Shown, lost in the power cut, and its cursor given to another: whoever goes on from it would miss that.
  @Test func noCursorComesTwiceThoughThePowerCutTookIt() throws {
    let store = try Store(path: folder.store)
    try store.add([entry(1)])
    _ = try commit(store, 2...2)
    let log = contents(folder.store + "-wal")
    let shown = try commit(store, 3...9)
    crash(log: log)
    let survivor = try Store(path: copy)
    #expect(try survivor.logs(in: channel(1))[0].contiguous == 2)
    #expect(try survivor.add([entry(3)])[0] > shown.last!)
  }

  @Test func aStoreThatWasClosedGoesOnWithoutAGap() throws {
    do {
      let store = try Store(path: folder.store)
      _ = try commit(store, 1...9)
    }
    #expect(folder.names == ["store.sqlite"])
    #expect(try Store(path: folder.store).lastCursor == 9)
  }

  @Test func afterASyncThatFailedTheFileHasAll() throws {
    let store = try Store(path: folder.store)
    _ = try commit(store, 1...9)
    try store.syncAnew()
    #expect(store.log?.isSynced == true)
    crash(log: [])
    #expect(try Store(path: copy).logs(in: channel(1))[0].contiguous == 9)
    _ = try commit(store, 10...12)
    try store.sync()
    crash(log: contents(folder.store + "-wal"))
    let survivor = try Store(path: copy)
    #expect(survivor.setAside == nil)
    #expect(try survivor.logs(in: channel(1))[0].contiguous == 12)
  }

  @Test func theLogStaysShort() throws {
    let store = try Store(path: folder.store)
    for number in 1...700 as ClosedRange<UInt64> {
      _ = try store.commit([.entry(entry(number, bytes: [UInt8](repeating: 1, count: 8_000)))])
      store.checkpointIfDue()
    }
    #expect(contents(folder.store + "-wal").count < 2_100 * frameByteCount)
    try store.sync()
    crash(log: contents(folder.store + "-wal"))
    #expect(try Store(path: copy).logs(in: channel(1))[0].contiguous == 700)
  }
}
