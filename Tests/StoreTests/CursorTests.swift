import ParleyVocabulary
import Testing

@testable import ParleyStore

/// Pages of what was stored after a cursor.
@Suite struct CursorTests {
  private static func peerMessage(_ text: String, from other: UInt8, own: Bool = false) -> StoreWrite {
    .peerMessage(StoredPeerMessage(peer: peer(other), isOwn: own, id: message(text), json: Array(text.utf8)))
  }

  /// Every item in pages of so many bytes, as a reader would ask for them.
  private static func all(
    _ store: Store, after start: UInt64 = 0, in channels: Set<ChannelID>, peerMessages: Bool = true,
    byteCountMax: Int
  ) throws -> [StoredPage.Item] {
    var found: [StoredPage.Item] = []
    var cursor = start
    while true {
      let page = try store.page(
        after: cursor, in: channels, peerMessages: peerMessages, byteCountMax: byteCountMax)
      #expect(page.items.allSatisfy { $0.cursor > cursor && $0.cursor <= page.through })
      found += page.items
      if page.isLast { return found }
      #expect(page.through > cursor)
      cursor = page.through
    }
  }

  @Test func entriesAndPeerMessagesComeInTheOrderOfTheirCommits() throws {
    let folder = Folder()
    let store = try Store(path: folder.store)
    try store.apply([.entry(entry(1)), Self.peerMessage("a", from: 2), .entry(entry(2, hidden: true))])
    try store.apply([Self.peerMessage("b", from: 2, own: true), .entry(entry(1, author: 3, in: channel(2)))])
    // A duplicate takes no cursor.
    try store.apply([.entry(entry(1)), .entry(entry(3))])
    let both: Set = [channel(1), channel(2)]
    let items = try Self.all(store, in: both, byteCountMax: 1_000)
    #expect(items.map(\.cursor) == [1, 2, 4, 5, 6])
    guard case .peerMessage(let own) = items[2], case .entry(let last) = items[4] else {
      Issue.record("the kinds are kept")
      return
    }
    #expect(own.isOwn && own.id == message("b"))
    #expect(last.number == 3 && last.channel == channel(1))
    #expect(try Self.all(store, after: 4, in: both, byteCountMax: 1_000).map(\.cursor) == [5, 6])
    #expect(try Self.all(store, in: [channel(2)], peerMessages: false, byteCountMax: 1_000).map(\.cursor) == [5])
    #expect(try Self.all(store, in: [channel(1)], byteCountMax: 1_000).map(\.cursor) == [1, 2, 4, 6])
    #expect(try Self.all(store, in: [channel(9)], peerMessages: false, byteCountMax: 1_000).isEmpty)
    #expect(try Self.all(store, in: [], byteCountMax: 1_000).map(\.cursor) == [2, 4])
    let end = try store.page(after: store.lastCursor, in: both, peerMessages: true, byteCountMax: 1_000)
    #expect(end.items.isEmpty && end.isLast && end.through == store.lastCursor)
  }

  @Test(arguments: [1, 40, 700, 100_000])
  func pagesOfAnySizeGiveTheSame(_ byteCountMax: Int) throws {
    let folder = Folder()
    let store = try Store(path: folder.store)
    var dice = SeededGenerator(state: 5)
    var numbers: [UInt8: UInt64] = [:]
    var expected: [UInt64] = []
    for index in 0..<1_500 {
      let place = UInt8.random(in: 1...3, using: &dice)
      let isHidden = Int.random(in: 0..<4, using: &dice) == 0
      if Int.random(in: 0..<3, using: &dice) == 0 {
        let cursor = try store.apply([Self.peerMessage("m\(index)", from: 4)])[0]
        expected.append(cursor)
      } else if Int.random(in: 0..<4, using: &dice) == 0 {
        let cursor = try store.apply([.localMessage(local("l\(index)", in: channel(place)))])[0]
        if place != 3 { expected.append(cursor) }
      } else {
        numbers[place, default: 0] += 1
        let bytes = [UInt8](repeating: 7, count: .random(in: 1...60, using: &dice))
        let cursor = try store.add([
          entry(numbers[place]!, hidden: isHidden, in: channel(place), bytes: bytes)
        ])[0]
        if !isHidden, place != 3 { expected.append(cursor) }
      }
    }
    let items = try Self.all(store, in: [channel(1), channel(2)], byteCountMax: byteCountMax)
    #expect(items.map(\.cursor) == expected)
    let page = try store.page(
      after: 0, in: [channel(1), channel(2)], peerMessages: true, byteCountMax: byteCountMax)
    let byteCount = page.items.reduce(0) { sum, item in
      switch item {
      case .entry(let entry): sum + entry.bytes.count
      case .peerMessage(let message): sum + message.json.count
      case .localMessage(let message): sum + message.json.count
      }
    }
    #expect(byteCount <= 3 * max(byteCountMax, 60))
  }

  @Test func aCursorIsNotGivenAgainWhenABatchFails() throws {
    let folder = Folder()
    let store = try Store(path: folder.store)
    #expect(try store.add([entry(1)]) == [1])
    #expect(throws: StoreError.self) { try store.add([entry(2), entry(0)]) }
    #expect(store.lastCursor == 1)
    #expect(try store.add([entry(2)]) == [2])
  }
}
