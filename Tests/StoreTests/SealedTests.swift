import Glibc
import ParleyVocabulary
import Testing

@testable import ParleyStore

/// Not secret, but as strict as one that is: bytes open where they were sealed, and nowhere else. What is sealed shares
/// no eight bytes with what it was.
struct TestSeal: StoreSeal {
  var key: UInt64 = 1

  private func stream(_ nonce: UInt64, _ bytes: [UInt8]) -> [UInt8] {
    var generator = SeededGenerator(state: nonce ^ key)
    return bytes.map { $0 ^ UInt8(truncatingIfNeeded: generator.next()) }
  }

  private func sum(_ bytes: [UInt8]) -> UInt64 {
    bytes.reduce(key ^ 0xCBF2_9CE4_8422_2325) { ($0 ^ UInt64($1)) &* 0x100_0000_01B3 }
  }

  private func sealed(_ bytes: [UInt8], _ identity: [UInt8], nonce: UInt64) -> [UInt8] {
    var head: [UInt8] = []
    for word in [nonce, sum(identity + [0] + bytes), 0, 0, 0] {
      head += (0..<8).map { UInt8(truncatingIfNeeded: word >> UInt64(8 * $0)) }
    }
    return head + stream(nonce, bytes)
  }

  func seal(_ bytes: [UInt8], as identity: [UInt8]) -> [UInt8] {
    sealed(bytes, identity, nonce: .random(in: 0...UInt64.max))
  }
  func sealAlike(_ bytes: [UInt8], as identity: [UInt8]) -> [UInt8] {
    sealed(bytes, identity, nonce: sum(identity + bytes))
  }
  func open(_ sealed: [UInt8], as identity: [UInt8]) -> [UInt8]? {
    guard sealed.count >= 40 else { return nil }
    func word(_ place: Int) -> UInt64 { sealed[place..<place + 8].reversed().reduce(0) { $0 << 8 | UInt64($1) } }
    let bytes = stream(word(0), Array(sealed[40...]))
    return word(8) == sum(identity + [0] + bytes) ? bytes : nil
  }
}

/// What a store keeps, with and without a seal, and on the way from one to the other.
struct SealedTests {
  let folder = Folder()
  let seal = TestSeal()
  static let sentence = "Seven wet dogs, сім мокрих псів, 七只湿狗"

  private func texts(_ entry: StoredEntry) -> [(place: Int, text: String)] {
    [(0, String(decoding: entry.bytes, as: UTF8.self))]
  }

  private var written: [StoreWrite] {
    let json = Array("{\"body\":\"\(Self.sentence)\"}".utf8)
    var writes: [StoreWrite] = (1...1_300).map {
      .entry(entry($0, hidden: $0 % 50 == 0, bytes: Array("\(Self.sentence) \($0)".utf8)))
    }
    for number in 1...40 as ClosedRange<UInt8> {
      let id = message("m\(number)")
      writes.append(.peerMessage(StoredPeerMessage(peer: peer(2), isOwn: number % 2 == 0, id: id, json: json)))
      writes.append(.outboxAdd(OutboxItem(peer: peer(3), id: id, json: json)))
      writes.append(.localMessage(local("l\(number)", lamport: UInt64(number), json: json)))
      writes.append(
        .member(
          StoredMember(
            channel: channel(number % 3), peer: peer(number), displayName: "Sieben Hunde", isOnline: true,
            incarnation: 1)))
      writes.append(.share(share(number, in: 1, path: "/home/ana/\(Self.sentence)/\(number)")))
      writes.append(.download(download(number, in: 2)))
    }
    writes.append(.contact(StoredContact(peer: peer(7), verifiedName: "Sieben Hunde", verifiedAt: 5)))
    let token = StoredToken(channel: channel(1), peer: peer(7), expires: 9, text: "Sieben Hunde")
    writes.append(.token(token, countMax: 2))
    writes.append(.contact(StoredContact(peer: peer(8), isBlocked: true)))
    writes.append(
      .scans(
        (1...210).map {
          StoredScan(
            path: "/home/ana/\(Self.sentence)/\($0)", byteCount: 5, modifiedNanoseconds: 1, inode: 7,
            pieceHashes: [UInt8](repeating: UInt8($0), count: 32))
        }))
    return writes
  }

  /// All that can be read.
  private struct Contents: Equatable {
    var entries: [StoredEntry]
    var messages: [StoredPeerMessage]
    var locals: [HistoryItem]
    var outbox: [OutboxItem]
    var outboxByteCount: Int
    var members: [StoredMember]
    var shares: [StoredShare]
    var downloads: [StoredDownload]
    var hashes: [Int: [UInt8]]
    var contacts: [StoredContact]
    var tokens: [StoredToken]

    init(_ store: Store) throws {
      entries = try store.entriesAfter(cursor: 0, in: nil, limit: .max)
      messages = try store.peerMessages(limit: 1_000)
      locals = try store.historyBefore(nil, in: channel(1), limit: 2_000).filter {
        if case .localMessage = $0 { true } else { false }
      }
      outbox = try store.outbox()
      outboxByteCount = try store.outboxByteCount
      members = try (0...2).flatMap { try store.members(in: channel($0)) }
      shares = try store.shares()
      downloads = try store.downloads()
      contacts = try store.contacts()
      tokens = try store.tokens(in: channel(1))
      hashes = try store.hashes(
        of: (1...210).map {
          ("/home/ana/\(SealedTests.sentence)/\($0)", byteCount: 5, modifiedNanoseconds: 1, inode: 7)
        })
    }
  }

  private static let marks: [[UInt8]] = [
    Array("Seven wet".utf8), Array("мокрих".utf8), Array("湿狗".utf8), Array("seven".utf8),
    Array("Sieben".utf8),
    Array("/home/ana".utf8), Array("/tmp/ziel".utf8),
  ]

  /// Which of the known words stand in any file of the folder.
  private func readable() -> [String] {
    let files = folder.names.map { contents(folder.path + "/" + $0) }
    return Self.marks.filter { mark in files.contains { $0.holds(mark) } }.map { String(decoding: $0, as: UTF8.self) }
  }

  private func fill(_ store: Store) throws -> Contents {
    try store.apply(written)
    try store.index(texts)
    return try Contents(store)
  }

  @Test func withASealNothingIsReadableAndAllIsThere() throws {
    var before: Contents?
    do {
      let store = try Store(path: folder.store, seal: seal)
      before = try fill(store)
      #expect(before?.entries.count == 1_300 && before?.shares.count == 40 && before?.hashes.count == 210)
      #expect(before?.entries[0].bytes == Array("\(Self.sentence) 1".utf8))
      #expect(before?.members.count == 40 && before?.downloads.count == 40 && before?.outbox.count == 40)
      #expect(readable() == [], "also while it is open")
    }
    #expect(readable() == [])
    #expect(try Contents(Store(path: folder.store, seal: seal)) == before)
    #expect(throws: StoreError.sealed(path: folder.store)) { try Store(path: folder.store) }
    #expect(throws: StoreError.otherSeal(path: folder.store)) { try Store(path: folder.store, seal: TestSeal(key: 2)) }
    #expect(try Contents(Store(path: folder.store, seal: seal)) == before, "refusing changed nothing")
  }

  @Test func whatWasPlainIsSealedAndBack() throws {
    var before: Contents?
    do { before = try fill(Store(path: folder.store)) }
    #expect(
      readable().count == Self.marks.count, "the test sees what is plain: \(readable())")
    do {
      let store = try Store(path: folder.store, seal: seal)
      #expect(try Contents(store) == before)
      #expect(store.isCompactionDue == false)
      #expect(readable() == [], "also in free pages and the log")
      // It goes on as any store.
      try store.apply([.entry(entry(1_301)), .share(share(1, in: 1, path: "/home/ana/\(Self.sentence)/1"))])
      #expect(try store.shares().count == 40, "the same file again is the same row")
    }
    #expect(folder.names == ["store.sqlite"])
    var status = stat()
    #expect(stat(folder.store, &status) == 0 && status.st_mode & 0o777 == 0o600)
    try Store.unseal(path: folder.store, seal: seal)
    let store = try Store(path: folder.store)
    #expect(try store.entriesAfter(cursor: 0, in: nil, limit: .max).count == 1_301)
    #expect(try Contents(store).shares.map(\.path) == before?.shares.map(\.path))
    #expect(
      try store.database.first("SELECT count(*) FROM sqlite_schema WHERE name = 'sealing'") { $0.integer(0) } == 0)
    // The index is made anew.
    while store.isIndexBehind { try store.index(texts) }
    #expect(try found("seven", store) == 1_274)
  }

  private func found(_ text: String, _ store: Store) throws -> Int {
    var search = StoreSearch(text, in: channel(1), limit: 10_000)
    while !search.isOver { try store.goOn(&search) }
    return try store.found(search).count
  }

  /// The log of the conversion, cut at any place as a crash does, leaves a store that is brought on.
  @Test func aCrashAnywhereIsGoneOnFrom() throws {
    var before: Contents?
    do { before = try fill(Store(path: folder.store)) }
    let plain = contents(folder.store)
    let states = try conversionStates(to: true)
    #expect(states.count > 10)
    for (count, state) in states.enumerated() {
      for name in folder.names { unlink(folder.path + "/" + name) }
      write(plain, to: folder.store)
      write(state, to: folder.store + "-wal")
      // What a crash while the copy was written leaves.
      write([1, 2, 3], to: folder.store + ".compact")
      #expect(try Contents(Store(path: folder.store, seal: seal)) == before, "state \(count)")
      #expect(readable() == [], "state \(count)")
      #expect(folder.names == ["store.sqlite"])
    }
    // And on the way back, also when it is to be sealed again meanwhile.
    let sealed = contents(folder.store)
    for (count, state) in try conversionStates(to: false).enumerated() {
      for again in [false, true] {
        for name in folder.names { unlink(folder.path + "/" + name) }
        write(sealed, to: folder.store)
        write(state, to: folder.store + "-wal")
        if !again { try Store.unseal(path: folder.store, seal: seal) }
        #expect(try Contents(Store(path: folder.store, seal: again ? seal : nil)) == before, "state \(count)")
      }
    }
  }

  /// The write-ahead log after each commit of a conversion, which is cut short before its compact copy is taken.
  private func conversionStates(to target: Bool) throws -> [[UInt8]] {
    let copy = folder.path + "/copy"
    write(contents(folder.store), to: copy)
    defer { for suffix in ["", "-wal", "-shm"] { unlink(copy + suffix) } }
    let database = try Database(path: copy, busyMilliseconds: 0)
    try database.script("PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0;")
    try database.script("PRAGMA synchronous = OFF")
    _ = try Resealing.settle(database, seal, isSealed: target, false)
    let log = contents(copy + "-wal")
    var ends: [Int] = []
    for place in stride(from: 32, to: log.count - 23, by: 24 + 4_096)
    where log[place + 4..<place + 8].contains(where: { $0 > 0 }) {
      ends.append(place + 24 + 4_096)
    }
    return ends.map { Array(log.prefix($0)) }
  }

  @Test func searchIsInMemoryAndFindsTheSame() throws {
    let store = try Store(path: folder.store, seal: seal)
    try store.apply(written)
    #expect(try store.isIndexingWorthwhile() == false, "before anybody searches nothing is indexed")
    while store.isIndexBehind { try store.index(texts) }
    for (text, count) in [
      ("seven", 1_274), ("wet dogs 7", 109), ("мокр", 1_274), ("湿狗", 1_274), ("狗湿", 0), ("1299", 1),
    ] {
      #expect(try found(text, store) == count, "\(text)")
    }
    #expect(readable() == [])
    // What is deleted leaves it.
    try store.apply([.forgetChannel(channel(1))])
    while try store.isIndexingWorthwhile() { try store.index(texts) }
    #expect(try store.database.first("SELECT count(*) FROM search") { $0.integer(0) } == 0)
    try store.apply([.entry(entry(1, log: 77, bytes: Array("seven again".utf8)))])
    while store.isIndexBehind { try store.index(texts) }
    #expect(try found("seven", store) == 1)
  }

  @Test func oneThatMayOnlyBeReadIsReadAndSearched() throws {
    var before: Contents?
    do { before = try fill(Store(path: folder.store, seal: seal)) }
    let store = try Store(reading: folder.store, because: "test", seal: seal)
    #expect(try Contents(store) == before)
    while store.isIndexBehind { try store.index(texts) }
    #expect(try found("seven wet", store) == 1_274)
    #expect(throws: StoreError.sealed(path: folder.store)) { try Store(reading: folder.store, because: "test") }
    #expect(throws: StoreError.otherSeal(path: folder.store)) {
      try Store(reading: folder.store, because: "test", seal: TestSeal(key: 9))
    }
  }

  /// A value that is moved to another row, or damaged, says nothing there; the others are as they were.
  @Test func valuesOpenInTheirRowsOnly() throws {
    let store = try Store(path: folder.store, seal: seal)
    try store.apply(written)
    try store.database.run("UPDATE entries SET bytes = (SELECT bytes FROM entries WHERE cursor = 2) WHERE cursor = 1")
    try store.database.run("UPDATE entries SET bytes = zeroblob(60) WHERE cursor = 3")
    try store.database.run("UPDATE peer_messages SET own = 1 - own, id = id || 'x' WHERE cursor = 1301")
    let after = try Contents(store)
    #expect(after.entries[0].bytes == [] && after.entries[2].bytes == [])
    #expect(after.entries[1].bytes == Array("\(Self.sentence) 2".utf8))
    #expect(after.messages.last?.json == [] && after.messages.dropLast().allSatisfy { !$0.json.isEmpty })
  }

  @Test func aDamagedStoreIsSalvaged() throws {
    var before: Contents?
    do { before = try fill(Store(path: folder.store, seal: seal)) }
    var damaged = contents(folder.store)
    damaged[1] ^= 0xFF
    for name in folder.names { unlink(folder.path + "/" + name) }
    write(damaged, to: folder.store)
    let store = try Store(path: folder.store, seal: seal)
    #expect(store.setAside != nil && store.salvaged.entryCount == 1_300 && store.salvaged.waitingCount == 40)
    var after = try Contents(store)
    // Downloads, contacts, tokens and what files hashed to are not salvaged.
    (after.downloads, after.hashes) = (before!.downloads, before!.hashes)
    (after.contacts, after.tokens) = (before!.contacts, before!.tokens)
    after.outbox = zip(after.outbox, before!.outbox).map { after, before in
      var after = after
      after.queuedAt = before.queuedAt
      return after
    }
    #expect(after == before)
    #expect(readable() == [])
  }

  /// Of a plain one, that was to be sealed.
  @Test func aDamagedPlainStoreIsSalvagedSealed() throws {
    var before: Contents?
    do { before = try fill(Store(path: folder.store)) }
    var damaged = contents(folder.store)
    damaged[1] ^= 0xFF
    for name in folder.names { unlink(folder.path + "/" + name) }
    write(damaged, to: folder.store)
    let store = try Store(path: folder.store, seal: seal)
    let aside = try #require(store.setAside)
    #expect(try Contents(store).entries == before?.entries)
    #expect(try Contents(store).shares == before?.shares)
    unlink(aside)
    #expect(readable() == [])
  }
}

extension Array<UInt8> {
  fileprivate func holds(_ part: [UInt8]) -> Bool {
    withUnsafeBytes { all in
      guard let start = all.baseAddress, let first = part.first, all.count >= part.count else { return false }
      var place = 0
      while let hit = memchr(start + place, Int32(first), all.count - part.count + 1 - place) {
        place = UnsafeRawPointer(hit) - start
        if memcmp(hit, part, part.count) == 0 { return true }
        place += 1
        if place > all.count - part.count { return false }
      }
      return false
    }
  }
}
