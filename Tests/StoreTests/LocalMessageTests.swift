import Glibc
import ParleyVocabulary
import Testing

@testable import ParleyStore

/// Messages of a channel that are no entries: for whoever was there, or for some of its members.
struct LocalMessageTests {
  let folder = Folder()

  private static func name(_ item: HistoryItem) -> String {
    switch item {
    case .entry(let entry): "e\(entry.number)"
    case .localMessage(let message): message.id.text
    }
  }

  @Test func theyStandWhereTheyCameAndOnlyOnce() throws {
    let store = try Store(path: folder.store)
    let writes: [StoreWrite] = [
      .entry(entry(1, lamport: 10)), .entry(entry(2, lamport: 20)), .localMessage(local("a", lamport: 10)),
      .localMessage(local("b", lamport: 10)), .localMessage(local("z", lamport: 30)),
      .localMessage(local("elsewhere", lamport: 15, in: channel(2))), .entry(entry(3, lamport: 31)),
      .entry(entry(4, lamport: 12, hidden: true)),
    ]
    let cursors = try store.apply(writes)
    #expect(cursors == Array(1...8))
    // Again, and under another's name.
    #expect(try store.apply([.localMessage(local("a", lamport: 99))]) == [0])
    #expect(try store.apply([.localMessage(local("a", author: 3, lamport: 5))]) == [9])
    let all = ["e3", "z", "e2", "b", "a", "e1", "a"]
    #expect(try store.historyBefore(nil, in: channel(1), limit: 100).map(Self.name) == all)
    // In pages of any size, without gaps and without repeating.
    for size in 1...8 {
      var names: [String] = []
      var place: OrderKey?
      while true {
        let page = try store.historyBefore(place, in: channel(1), limit: size)
        names += page.map(Self.name)
        guard let last = page.last else { break }
        place = last.order
      }
      #expect(names == all, "pages of \(size)")
    }
    #expect(try store.historyItem(at: 3, in: channel(1)).map(Self.name) == "a")
    #expect(try store.historyItem(at: 2, in: channel(1)).map(Self.name) == "e2")
    #expect(try store.historyItem(at: 3, in: channel(2)) == nil)
    #expect(try store.historyItem(at: 8, in: channel(1)) == nil)
    // Nobody is told that they are there.
    #expect(try store.logs(in: channel(1)).map(\.contiguous) == [4])
    #expect(try store.entryCount(in: channel(1)) == 4)
  }

  @Test func whatIsTooOldOrTooMuchGoes() throws {
    let clocks = TestClocks(wall: 1_000 * TestClocks.day)
    let store = try Store(path: folder.store, clocks: clocks.clocks)
    _ = try store.apply([.localMessage(local("old", lamport: 0))])
    clocks.pass(days: 40)
    _ = try store.apply((1...120).map { .localMessage(local("m\($0)", lamport: $0)) })
    let step = try store.prune(channel(1), keeping: Retention(days: 30, entryCountMax: 100))
    #expect(step.removedCount == 21 && step.floors.isEmpty)
    let kept = try store.historyBefore(nil, in: channel(1), limit: 1_000).map(Self.name)
    #expect(kept == (21...120).reversed().map { "m\($0)" })
    #expect(try store.prune(channel(1), keeping: Retention(days: 30, entryCountMax: 100)).removedCount == 0)
    _ = try store.apply([.forgetChannel(channel(1))])
    #expect(try store.historyBefore(nil, in: channel(1), limit: 1_000).isEmpty)
  }

  @Test func aDamagedFileGivesThemBack() throws {
    do {
      let store = try Store(path: folder.store)
      try store.add((1...50).map { entry($0) })
      _ = try store.apply((1...50).map { .localMessage(local("m\($0)", lamport: 100 + $0)) })
    }
    var bytes = contents(folder.store)
    // The header is gone: nothing but the rows themselves tells what they are.
    for index in 0..<100 { bytes[index] = 0xFF }
    for name in folder.names { unlink(folder.path + "/" + name) }
    write(bytes, to: folder.store)
    let store = try Store(path: folder.store)
    #expect(store.setAside != nil)
    let kept = try store.historyBefore(nil, in: channel(1), limit: 1_000).map(Self.name)
    #expect(Set(kept).isSuperset(of: (1...50).map { "m\($0)" }))
  }

  @Test func itIsKnownForWhomSomethingWaits() throws {
    let store = try Store(path: folder.store)
    for number in 1...3 as ClosedRange<UInt8> {
      _ = try store.apply([.outboxAdd(OutboxItem(peer: peer(number), id: message("m"), json: [1]))])
    }
    _ = try store.apply([.outboxRemove(peer(2), message("m"))])
    #expect(try store.waitingPeers(of: message("m")) == [peer(1), peer(3)])
  }
}
