import Glibc
import ParleyActors
import ParleyMachines
import ParleySealing
import ParleyStore
import ParleyVocabulary
import ParleyWire
import Synchronization
import Testing

/// Which acts are on which messages, as the store finds them.
@Suite(.timeLimit(.minutes(1)))
struct StoreConversationTests {
  private let notices = NoticeBox()
  private let garden = ChannelID(Bytes32(words: (1, 2, 3, 4)))
  private let ana = PeerID(Bytes32(words: (5, 6, 7, 8)))
  private let ben = PeerID(Bytes32(words: (9, 9, 9, 9)))

  private func said(
    _ content: any MessageKind, _ id: String, by author: PeerID, number: UInt64, log: UInt64 = 1, at time: UInt64
  ) -> MessagingRecord {
    let message = SchemaMessage(
      sender: Sender(peer: author, displayName: try! DisplayName("Somebody")), messageID: MessageID(id)!,
      timestamp: "2021-03-12T09:05:16Z", content: content)
    return .entry(
      garden,
      Entry(
        key: LogKey(author: author, log: Instance(log)), number: number, lamport: number, timestamp: time,
        isHidden: type(of: content).isHidden,
        items: [.init(kind: KindRegistry.code(of: content.type), body: message.encoded)],
        signature: [UInt8](repeating: 0, count: 64)))
  }

  /// Writes these, one batch each, in a store of its own; then `check`.
  private func with(
    _ batches: [[MessagingRecord]], check: (StoreActor, Switchboard) async throws -> Void
  ) async throws {
    var template = Array("/tmp/parley-store-acts-XXXXXX".utf8CString)
    let folder = template.withUnsafeMutableBufferPointer { String(cString: mkdtemp($0.baseAddress!)) }
    defer {
      for name in ["store.sqlite", "store.sqlite-wal", "store.sqlite-synced"] { unlink(folder + "/" + name) }
      rmdir(folder)
    }
    let executor = ThreadExecutor()
    let switchboard = Switchboard { [notices] in notices.add($0) }
    let store = try await StoreActor.open(
      path: folder + "/store.sqlite", me: ana, channels: [], retention: Retention(days: 30, entryCountMax: 10_000),
      executor: executor, switchboard: switchboard, wake: { _ in }, wakeIndexing: { _ in })
    for (index, records) in batches.enumerated() {
      switchboard.store.post(.write(batch: UInt64(index + 1), records))
    }
    switchboard.store.post(.restore(garden))
    switchboard.store.close()
    await store.run()
    try await check(store, switchboard)
    await store.close()
    executor.stop()
  }

  private var told: [(cursor: UInt64, on: [ActedOn])] {
    notices.all.compactMap {
      if case .acted(_, let cursor, let on) = $0 { (cursor, on) } else { nil }
    }
  }

  private var waiting: [MessageAct] {
    notices.all.flatMap { if case .waiting(_, let acts, _) = $0 { acts } else { [MessageAct]() } }
  }

  private func key(_ id: String, of author: PeerID) -> MessageKey { MessageKey(sender: author, id: MessageID(id)!) }

  @Test func anActIsToldWithTheMessageAndAllThatIsOnIt() async throws {
    let target = key("m", of: ana)
    try await with([
      [said(TextKind(body: "one"), "m", by: ana, number: 1, at: 10)],
      [said(ReactKind(target: target, emoji: "x", isOn: true), "a1", by: ben, number: 1, at: 11)],
      [said(EditKind(target: target, content: .body("two"), ext: nil), "a2", by: ana, number: 2, at: 12)],
      [said(ReadKind(targets: [target, key("n", of: ana)]), "a3", by: ben, number: 2, at: 13)],
    ]) { store, _ in
      #expect(told.map(\.cursor) == [2, 3, 4])
      #expect(told.map { $0.on.map(\.messages.count) } == [[1], [1], [1, 0]])
      #expect(told.map { $0.on[0].acts.count } == [1, 2, 3])
      #expect(told[2].on[0].acts.map(\.content).contains(.read))
      #expect(told[0].on[0].messages[0].cursor == 1)
      #expect(waiting.map(\.target) == [key("n", of: ana)])
      let acts = try await store.acts(on: [target], in: garden)
      #expect(acts[target]?.count == 3)
      let others = try await store.messages(under: key("m", of: ben), in: garden)
      #expect(others == [])
    }
  }

  /// A thousand messages, more than are looked through: those named and those not yet are found alike.
  @Test func messagesAreFoundNamedOrNot() async throws {
    let records = (1...1_300).map { said(TextKind(body: "\($0)"), "m\($0)", by: ana, number: UInt64($0), at: 1) }
    try await with([records]) { store, _ in
      for number in [1, 250, 1_299, 1_300] {
        let found = try await store.messages(under: key("m\(number)", of: ana), in: garden)
        #expect(found.map(\.cursor) == [UInt64(number)] && found.map(\.place) == [0])
      }
    }
  }

  /// A recall signed with an earlier time than an entry before it in its log is told apart; one in order is not.
  @Test(arguments: [(15, true), (20, false), (21, false)])
  func aBackdatedRecallIsTold(time: UInt64, isBackdated: Bool) async throws {
    let target = key("m", of: ana)
    try await with([
      [
        said(TextKind(body: "one"), "m", by: ana, number: 1, at: 10),
        said(TextKind(body: "two"), "n", by: ana, number: 2, at: 20),
        said(RecallKind(target: target), "r", by: ana, number: 3, at: time),
      ]
    ]) { store, _ in
      let acts = try await store.acts(on: [target], in: garden)
      #expect(acts[target]?.map(\.isBackdated) == [isBackdated])
      #expect(told.first?.on.first?.acts.map(\.isBackdated) == [isBackdated])
    }
  }

  @Test func nothingIsToldOfOrdinaryMessages() async throws {
    try await with([[said(TextKind(body: "one"), "m", by: ana, number: 1, at: 10)]]) { store, _ in
      #expect(notices.all == [])
      let acts = try await store.acts(on: [key("m", of: ana)], in: garden)
      #expect(acts == [:])
    }
  }
}

private final class NoticeBox: Sendable {
  private let notices = Mutex<[Notice]>([])
  func add(_ notice: Notice) { notices.withLock { $0.append(notice) } }
  var all: [Notice] { notices.withLock { $0 } }
}
