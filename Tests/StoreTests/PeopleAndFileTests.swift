import ParleyVocabulary
import Testing

@testable import ParleyStore

struct PeopleAndFileTests {
  let folder = Folder()
  let store: Store

  init() throws { store = try Store(path: folder.store, clocks: TestClocks(wall: 5_000).clocks) }

  @Test func peerMessagesAreKeptOnce() throws {
    let theirs = StoredPeerMessage(peer: peer(2), isOwn: false, id: message("a"), json: [1])
    let mine = StoredPeerMessage(peer: peer(2), isOwn: true, id: message("a"), json: [])
    let another = StoredPeerMessage(peer: peer(3), isOwn: false, id: message("🎉'; DROP TABLE outbox"), json: [3])
    let cursors = try store.apply([theirs, mine, theirs, another].map { .peerMessage($0) })
    #expect(cursors == [1, 2, 0, 3])
    var stored = [theirs, mine, another]
    for index in 0..<3 { stored[index].cursor = UInt64(index + 1) }
    #expect(try store.peerMessages(limit: 2) == [stored[2], stored[1]])
    #expect(try store.peerMessagesAfter(cursor: 1, limit: 1) == [stored[1]])
    #expect(try store.peerMessagesAfter(cursor: 0, limit: 10) == stored)
    #expect(try store.hasPeerMessage(from: peer(2), id: message("a")))
    #expect(try store.hasPeerMessage(from: peer(3), id: message("a")) == false)
    try store.database.run("DELETE FROM peer_messages WHERE own = 0")
    #expect(try store.hasPeerMessage(from: peer(2), id: message("a")) == false)
  }

  @Test func theOutboxKeepsItsOrderAndItsFirst() throws {
    func item(_ id: String, to number: UInt8, _ count: Int) -> OutboxItem {
      OutboxItem(
        peer: peer(number), id: message(id), json: [UInt8](repeating: 5, count: count), queuedAt: 5_000)
    }
    let items = [item("c", to: 9, 3), item("a", to: 1, 10), item("b", to: 9, 0)]
    #expect(try store.outboxByteCount == 0)
    #expect(try store.apply((items + [item("a", to: 1, 99)]).map { .outboxAdd($0) }) == [0, 0, 0, 0])
    #expect(try store.outbox() == items)
    #expect(try store.outbox(for: peer(9)) == [items[0], items[2]])
    #expect(try store.outboxByteCount == 13)
    try store.apply([.outboxRemove(peer(9), message("c")), .outboxRemove(peer(9), message("a"))])
    #expect(try store.outbox() == [items[1], items[2]])
    #expect(try store.outboxByteCount == 10)
  }

  @Test func membersAreReplacedAndDeliveriesOnlyRise() throws {
    func member(_ number: UInt8, _ name: String, _ online: Bool, _ incarnation: UInt64) -> StoredMember {
      StoredMember(
        channel: channel(1), peer: peer(number), displayName: name, isOnline: online, incarnation: incarnation)
    }
    let ben = member(200, "Ben", true, 0)
    let ana = member(3, "Ана́", false, Limit.counterMax)
    try store.apply([.member(ben), .member(member(3, "", true, 1)), .member(ana)])
    #expect(try store.members(in: channel(1)) == [ana, ben])
    #expect(try store.members(in: channel(2)) == [])

    for number in [5, 4, 0, 7, 6] as [UInt64] {
      try store.apply([.delivered(channel(1), log: Instance(1 << 63), peer: peer(3), number: number)])
    }
    try store.apply([.delivered(channel(1), log: Instance(1), peer: peer(3), number: 1)])
    let delivered = try store.delivered(in: channel(1))
    #expect(delivered.map(\.log) == [Instance(1), Instance(1 << 63)])
    #expect(delivered.map(\.number) == [1, 7])
    #expect(delivered.map(\.peer) == [peer(3), peer(3)])
  }

  @Test func aShareIsInSeveralChannelsAndItsFactsAreKeptOnce() throws {
    try store.apply([
      .share(share(1, in: 1)), .share(share(1, in: 2, byteCount: 6)), .share(share(1, in: 2, path: "/b")),
      .share(share(2, in: 2)),
    ])
    #expect(
      try store.shares() == [
        share(1, in: 1, byteCount: 6), share(1, in: 2, byteCount: 6), share(1, in: 2, path: "/b"), share(2, in: 2),
      ])
    #expect(
      try store.shares(in: channel(2)) == [
        share(1, in: 2, byteCount: 6), share(1, in: 2, path: "/b"), share(2, in: 2),
      ])
    #expect(try store.share(media(1)) == share(1, in: 2, path: "/b"))
    #expect(try store.shares(of: media(1)).count == 3)
    #expect(try store.share(media(9)) == nil)
    #expect(try store.channels(announcing: media(1)) == [channel(1), channel(2)])
    #expect(try store.database.rows("SELECT count(*) FROM share_files") { $0.integer(0) } == [3])

    try store.apply([.unshare(media(1), channel(2)), .unshare(media(1), channel(77))])
    #expect(try store.shares() == [share(1, in: 1, byteCount: 6), share(2, in: 2)])
    #expect(try store.database.rows("SELECT count(*) FROM share_files") { $0.integer(0) } == [2])
    try store.apply([.unshare(media(1), nil)])
    #expect(try store.shares() == [share(2, in: 2)])
    #expect(try store.channels(announcing: media(1)) == [])
  }

  @Test func downloadsGoOnWhereTheyWere() throws {
    try store.apply([
      .download(download(1, in: 1)), .download(download(2, in: 2, replacing: true)),
      .downloadProgress(media(1), bitmap: [0xFF, 1]), .downloadProgress(media(9), bitmap: [1]),
    ])
    #expect(
      try store.downloads() == [download(1, in: 1, bitmap: [0xFF, 1]), download(2, in: 2, replacing: true)])
    try store.apply([.download(download(1, in: 2, bitmap: [])), .downloadRemove(media(2))])
    #expect(try store.downloads() == [download(1, in: 2, bitmap: [])])
  }

  @Test func hashesAreRememberedUntilTheFileChanges() throws {
    let folder = Folder()
    let store = try Store(path: folder.store)
    func scan(_ path: String, _ hash: UInt8, modified: Int64 = 5) -> StoredScan {
      StoredScan(
        path: path, byteCount: 9, modifiedNanoseconds: modified, inode: 7,
        pieceHashes: [UInt8](repeating: hash, count: 32))
    }
    try store.apply([.scans([scan("/a", 1), scan("/b", 2)]), .scans([scan("/a", 3, modified: -6)])])
    let found = try store.hashes(of: [("/a", 9, 5, 7), ("/a", 9, -6, 7), ("/b", 9, 5, 7), ("/b", 8, 5, 7)])
    #expect(found.keys.sorted() == [1, 2] && found[1]?.first == 3 && found[2]?.first == 2)
    #expect(try store.hashes(of: [("/b", 9, 5, 8), ("/c", 9, 5, 7)]).isEmpty)
  }

  @Test func ofTooManyHashesTheOldestGo() throws {
    let folder = Folder()
    let store = try Store(path: folder.store)
    let scans = (0..<10).map {
      StoredScan(
        path: "/\($0)", byteCount: 1, modifiedNanoseconds: 1, inode: 1, pieceHashes: [UInt8](repeating: 0, count: 34))
    }
    let files = scans.map { ($0.path, UInt64(1), Int64(1), UInt64(1)) }
    try store.set(scans, countMax: 4)
    #expect(try store.hashes(of: files).keys.sorted() == [6, 7, 8, 9])
    // Each counts as 100 bytes.
    try store.set([scans[6]], byteCountMax: 250)
    #expect(try store.hashes(of: files).keys.sorted() == [6, 9])
    try store.set([scans[0]], byteCountMax: 99)
    #expect(try store.hashes(of: files).isEmpty)
  }
}
