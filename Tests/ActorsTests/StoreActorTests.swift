import Glibc
import ParleyActors
import ParleyMachines
import ParleySealing
import ParleyStore
import ParleyVocabulary
import ParleyWire
import Testing

@Suite(.timeLimit(.minutes(1)))
struct StoreActorTests {
  private let folder = StoreFolder()
  private let switchboard = Switchboard { _ in }
  private let executor = ThreadExecutor()
  private let garden = ChannelID(Bytes32(words: (1, 2, 3, 4)))
  private let ana = PeerID(Bytes32(words: (5, 6, 7, 8)))

  private func open(_ retention: Retention) async throws -> StoreActor {
    try await StoreActor.open(
      path: folder.path + "/store.sqlite", me: ana, channels: [], retention: retention, executor: executor,
      switchboard: switchboard, wake: { _ in }, wakeIndexing: { _ in })
  }

  private func records(_ numbers: ClosedRange<UInt64>, of author: PeerID? = nil) -> [MessagingRecord] {
    numbers.map { number in
      .entry(
        garden,
        Entry(
          key: LogKey(author: author ?? ana, log: Instance(1)), number: number, lamport: number, timestamp: 0,
          isHidden: false,
          items: [.init(kind: 1, body: Array("\(number)".utf8))], signature: [UInt8](repeating: 0, count: 64)))
    }
  }

  /// What is too much goes by itself, as soon as nothing waits; a hundredth over is let gather.
  @Test func historyIsPrunedOnceNothingWaits() async throws {
    let store = try await open(Retention(days: 30, entryCountMax: 1_000))
    switchboard.store.post(.write(batch: 1, records(1...1_010)))
    async let running: Void = store.run()
    _ = await switchboard.messaging.next()
    #expect(try await store.history(of: garden, before: nil, limit: 5_000).entries.count == 1_010)
    switchboard.store.post(.write(batch: 2, records(1_011...3_500)))
    switchboard.store.close()
    await running
    let history = try await store.history(of: garden, before: nil, limit: 5_000).entries
    #expect(history.map(\.entry.number) == (2_501...3_500).reversed().map(UInt64.init))
    await store.close()
    executor.stop()
  }

  @Test func settingHistoryKeptIsThatOfTheChannel() async throws {
    let store = try await open(Retention(days: 30, entryCountMax: 1_000))
    switchboard.store.post(contentsOf: [
      .write(batch: 1, records(1...500)), .retain(garden, Retention(days: 30, entryCountMax: 100)),
    ])
    switchboard.store.close()
    await store.run()
    let history = try await store.history(of: garden, before: nil, limit: 5_000).entries
    #expect(history.map(\.entry.number) == (401...500).reversed().map(UInt64.init))
    await store.close()
    executor.stop()
  }

  /// Entries of others are told at once and synced together; what somebody waits for is synced before it is told.
  @Test func whatNobodyWaitsForIsSyncedApart() async throws {
    let store = try await open(Retention(days: 30, entryCountMax: 1_000))
    let sync = SyncActor(executor: ThreadExecutor(), switchboard)
    let ben = PeerID(Bytes32(words: (9, 9, 9, 9)))
    async let running: Void = store.run()
    async let syncing: Void = sync.run()
    switchboard.store.post(.write(batch: 1, records(1...1)))
    #expect(await switchboard.messaging.next() == [.persisted(batch: 1, cursors: [1])])
    // The first after the opening reserves cursors, and is synced with that.
    switchboard.store.post(.write(batch: 2, records(1...1, of: ben)))
    #expect(await switchboard.messaging.next() == [.persisted(batch: 2, cursors: [2])])
    switchboard.store.post(.write(batch: 3, records(2...3, of: ben)))
    var told: [MessagingEvent] = []
    while told.count < 2 { told += await switchboard.messaging.next() }
    #expect(told == [.committed(batch: 3, cursors: [3, 4]), .synced(through: 3)])
    // Whoever goes on from a cursor goes on from what is on the disk.
    #expect(try await store.lastCursor() == 4)
    switchboard.store.close()
    await running
    await syncing
    await store.close()
    executor.stop()
  }

  /// What was read for a join is made use of before anything is taken away.
  @Test func aJoinHoldsPruningBack() async throws {
    let store = try await open(Retention(days: 30, entryCountMax: 1_000))
    switchboard.store.post(contentsOf: [.restore(garden), .write(batch: 1, records(1...2_000)), .prune])
    switchboard.store.close()
    await store.run()
    #expect(try await store.history(of: garden, before: nil, limit: 5_000).entries.count == 2_000)
    await store.close()
    executor.stop()
  }
}

/// Removed with what is in it.
private final class StoreFolder: Sendable {
  let path: String

  init() {
    var template = Array("/tmp/parley-store-actor-XXXXXX".utf8CString)
    path = template.withUnsafeMutableBufferPointer { String(cString: mkdtemp($0.baseAddress!)) }
  }

  deinit {
    for name in ["store.sqlite", "store.sqlite-wal"] { unlink(path + "/" + name) }
    rmdir(path)
  }
}
