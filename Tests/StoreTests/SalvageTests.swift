import Glibc
import ParleyVocabulary
import Testing

@testable import ParleyStore

/// What is still in a damaged file comes back.
struct SalvageTests {
  let folder = Folder()

  /// Each has bytes that are nobody else's, none so many that they would not fit a page.
  private func unlike(_ number: UInt64, byteCount: Int = 500) -> StoredEntry {
    var generator = SeededGenerator(state: number)
    return entry(number, bytes: (0..<byteCount).map { _ in UInt8.random(in: 0...255, using: &generator) })
  }

  private func closedStoreBytes(_ count: UInt64 = 500) throws -> [UInt8] {
    do {
      let store = try Store(path: folder.store)
      try store.add((1...count).map { unlike($0) })
    }
    return contents(folder.store)
  }

  /// Numbers of the entries whose bytes are all there, wherever that is.
  private func present(in file: [UInt8], count: UInt64 = 500) -> Set<UInt64> {
    let beginnings = Dictionary(
      uniqueKeysWithValues: (1...count).map { (UInt64(ofFirst: unlike($0).bytes), unlike($0)) })
    var found: Set<UInt64> = []
    file.withUnsafeBytes { bytes in
      for offset in 0..<max(0, bytes.count - 499) {
        guard let entry = beginnings[bytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self)] else { continue }
        if file[offset..<offset + 500].elementsEqual(entry.bytes) { found.insert(entry.number) }
      }
    }
    return found
  }

  private func kept(_ store: Store) throws -> Set<UInt64> {
    Set(try store.entriesAfter(cursor: 0, in: nil, limit: .max).map(\.number))
  }

  private func openDamaged(_ bytes: [UInt8], checks: SalvageChecks? = nil) throws -> Store {
    for name in folder.names { unlink(folder.path + "/" + name) }
    write(bytes, to: folder.store)
    return try Store(path: folder.store, checks: checks)
  }

  @Test func whatATruncatedFileHoldsIsKept() throws {
    let sound = try closedStoreBytes()
    for count in [4_096 * 7, sound.count / 2, sound.count / 2 + 1_000, sound.count - 4_096, sound.count - 1] {
      let damaged = Array(sound.prefix(count))
      let store = try openDamaged(damaged)
      // A page that is cut short is read as far as it goes by nobody.
      let whole = present(in: Array(damaged.prefix(count / 4_096 * 4_096)))
      #expect(try kept(store) == whole, "cut at \(count)")
      #expect(store.salvaged.entryCount == whole.count)
      #expect(store.setAside != nil)
    }
  }

  /// The header, the schema, the tree's inner pages and the pages' own heads are not needed.
  @Test(arguments: [0, 16, 20, 28, 56, 100, 103, 105, 4_096, 4_099, 4_101])
  func damageOutsideTheRowsLosesNothing(offset: Int) throws {
    let sound = try closedStoreBytes()
    for page in offset < 200 ? [0] : Array(stride(from: 0, to: sound.count - 8_192, by: 4_096 * 23)) {
      var damaged = sound
      damaged[page + offset] ^= 0x14
      let store = try openDamaged(damaged)
      #expect(try kept(store).count == 500, "flipped at \(page + offset)")
    }
  }

  @Test func pagesThatAreGoneTakeTheirRowsOnly() throws {
    let sound = try closedStoreBytes()
    var generator = SeededGenerator(state: 5)
    for _ in 0..<10 {
      var damaged = sound
      for page in (1..<sound.count / 4_096).shuffled(using: &generator).prefix(12) {
        for index in page * 4_096..<(page + 1) * 4_096 { damaged[index] = UInt8.random(in: 0...255, using: &generator) }
      }
      // That of the channels may be among them: then the signatures say where entries belong.
      let store = try openDamaged(damaged, checks: checks)
      #expect(try kept(store) == present(in: damaged))
    }
  }

  private var checks: SalvageChecks {
    let all = Dictionary(uniqueKeysWithValues: (UInt64(1)...500).map { (unlike($0).bytes, unlike($0)) })
    return SalvageChecks(
      channels: [channel(2), channel(1)], entry: { $0 == channel(1) ? all[$1] : nil },
      message: { _, _, _, json in json != [0xFF] })
  }

  @Test func whatFailsItsChecksIsDropped() throws {
    var damaged = try closedStoreBytes()
    let wanted = unlike(250).bytes
    let place = try #require((0..<damaged.count - 500).first { damaged[$0..<$0 + 500].elementsEqual(wanted) })
    damaged[place + 100] ^= 1
    damaged[0] ^= 1
    let store = try openDamaged(damaged, checks: checks)
    #expect(try kept(store) == Set(1...500).subtracting([250]))
    let missing = try store.logs(in: channel(1))
    #expect(missing.map(\.contiguous) == [249])
    #expect(missing.map(\.beyond) == [RangeSet([251..<501] as [Range<UInt64>])])
    // Its author, or anybody who has it, brings it back.
    #expect(try store.add([unlike(250)]).count == 1)
    #expect(try store.logs(in: channel(1)).map(\.contiguous) == [500])
  }

  @Test func cursorsAndEverythingElseGoOn() throws {
    let clocks = TestClocks(wall: 1_767_225_600_000)
    let note = StoredPeerMessage(peer: peer(2), isOwn: true, id: message("a"), json: [1])
    let waiting = OutboxItem(peer: peer(2), id: message("a"), json: [1])
    let member = StoredMember(
      channel: channel(1), peer: peer(3), displayName: "Ána", isOnline: true, incarnation: 4)
    var before: [StoredEntry] = []
    do {
      let store = try Store(path: folder.store, clocks: clocks.clocks)
      try store.add((1...40).map { entry($0, hidden: $0 == 7) })
      try store.add([entry(3, log: 1 << 63, lamport: 100, bytes: [UInt8](repeating: 9, count: 30_000))])
      try store.apply([
        .peerMessage(note), .outboxAdd(waiting), .member(member), .share(share(1, in: 1)), .share(share(1, in: 2)),
        .share(share(2, in: 1)), .delivered(channel(1), log: Instance(5), peer: peer(3), number: 17), .entry(entry(41)),
      ])
      try store.apply([.unshare(media(2), nil)])
      clocks.pass(days: 20)
      _ = try store.prune(channel(1), keeping: Retention(days: 30, entryCountMax: 30))
      before = try store.entriesAfter(cursor: 0, in: nil, limit: .max)
    }
    var damaged = contents(folder.store)
    damaged[1] ^= 0xFF
    for name in folder.names { unlink(folder.path + "/" + name) }
    write(damaged, to: folder.store)
    let store = try Store(path: folder.store, clocks: clocks.clocks)
    #expect(try store.entriesAfter(cursor: 0, in: nil, limit: .max) == before)
    #expect(before.count == 31)
    #expect(try store.logs(in: channel(1)).map(\.floor) == [12, 0])
    #expect(try store.logs(in: channel(1)).map(\.contiguous) == [41, 0])
    #expect(try store.lastHiddenEntries(in: channel(1)).map(\.number) == [7])
    #expect(try store.peerMessages(limit: 9).map(\.json) == [[1]])
    #expect(try store.peerMessages(limit: 9).map(\.cursor) == [42])
    #expect(try store.outbox().map(\.json) == [[1]])
    #expect(try store.members(in: channel(1)) == [member])
    #expect(try store.shares() == [share(1, in: 1), share(1, in: 2)])
    #expect(try store.delivered(in: channel(1)).map(\.number) == [17])
    var expected = Salvaged()
    expected.entryCount = 31
    expected.messageCount = 1
    expected.waitingCount = 1
    #expect(store.salvaged == expected)
    #expect(store.lastCursor == 43 + Salvage.cursorMargin)
    #expect(try store.add([entry(42), entry(5)]) == [44 + Salvage.cursorMargin, 0])
    clocks.pass(days: 29)
    let retention = Retention(days: 30, entryCountMax: 1_000)
    #expect(try store.prune(channel(1), keeping: retention).removedCount == 0, "ages begin anew")
  }

  /// As a crash leaves it: half in the file, half in the log.
  private func crashedStore(_ count: UInt64) throws -> (file: [UInt8], log: [UInt8]) {
    let store = try Store(path: folder.store)
    for number in 1...count { try store.add([unlike(number)]) }
    return (contents(folder.store), contents(folder.store + "-wal"))
  }

  @Test func aLogThatIsDamagedBeforeItsEndIsNotTakenForTorn() throws {
    let (file, log) = try crashedStore(60)
    let path = folder.path + "/copy"
    let frame = 4_096 + 24
    let frameCount = (log.count - 32) / frame
    var generator = SeededGenerator(state: 8)
    var torn = 0
    for index in (0..<frameCount).shuffled(using: &generator).prefix(30) + [0, frameCount - 1] {
      for name in folder.names where name.hasPrefix("copy") { unlink(folder.path + "/" + name) }
      var damaged = log
      // In the frame's head or in what SQLite never looks at: either way the sum is wrong.
      damaged[32 + index * frame + (index.isMultiple(of: 2) ? 17 : 24 + 2_000)] ^= 2
      write(file, to: path)
      write(damaged, to: path + "-wal")
      let store = try Store(path: path)
      if store.setAside == nil {
        torn += 1
        #expect(index > frameCount - 12, "frame \(index) of \(frameCount) was synced")
        #expect(try kept(store).count >= 58)
      } else {
        // An entry stands in one frame and again in most later ones.
        #expect(try kept(store).count >= 59, "frame \(index) of \(frameCount)")
      }
    }
    #expect(torn > 0, "the last frame is of the last transaction")
  }

  @Test func aLogWithoutItsHeadIsRead() throws {
    let (file, log) = try crashedStore(30)
    let path = folder.path + "/copy"
    for offset in [0, 9, 17, 25] {
      for name in folder.names where name.hasPrefix("copy") { unlink(folder.path + "/" + name) }
      var damaged = log
      damaged[offset] ^= 1
      write(file, to: path)
      write(damaged, to: path + "-wal")
      #expect(try kept(Store(path: path)).count == 30, "flipped at \(offset)")
    }
  }

  /// At each step that a crash can come between.
  @Test func aSalvageThatWasCutShortIsGoneOnWith() throws {
    var (file, log) = try crashedStore(30)
    // The sum of the fifth frame.
    log[32 + 5 * (4_096 + 24) + 17] ^= 1
    let aside = folder.store + ".damaged-20210312T090516Z"
    let note = SetAsideNote(path: folder.store)
    for step in 0...4 {
      for name in folder.names { unlink(folder.path + "/" + name) }
      try note.write(.init(aside: aside, reason: "because"))
      write(file, to: (step == 0 ? folder.store : aside))
      write(log, to: (step <= 1 ? folder.store : aside) + "-wal")
      if step == 3 { write([1, 2, 3], to: folder.store + ".new") }
      if step == 4 {
        // The new one is in its place, the note is still there.
        do { try Store(path: folder.path + "/other").add((1...30).map { unlike($0) }) }
        unlink(aside)
        rename(folder.path + "/other", folder.store)
      }
      let store = try Store(path: folder.store)
      #expect(try kept(store).count == 30, "step \(step)")
      #expect((store.setAside == nil) == (step == 4))
      if (1...3).contains(step) { #expect(store.setAsideReason == "because") }
      #expect(folder.names.contains { $0.hasSuffix(".new") || $0.hasSuffix(".salvage") } == false)
      #expect(note.read() == nil)
    }
  }

  @Test func aNoteThatIsNotWholeSaysNothing() throws {
    let note = SetAsideNote(path: folder.store)
    for text in ["", "store.damaged", "store.damaged\nreason", "\nreason\n"] {
      write(Array(text.utf8), to: folder.store + ".salvage")
      #expect(note.read() == nil)
    }
    try note.write(.init(aside: folder.store + ".damaged-1", reason: "two\nlines"))
    #expect(note.read() == .init(aside: folder.store + ".damaged-1", reason: "two; lines"))
    #expect(contents(folder.store + ".salvage") == Array("store.sqlite.damaged-1\ntwo; lines\n".utf8))
  }

  /// Anything at all in the place of a store: no trap, and what is no row gives none.
  @Test func noiseHoldsNothing() throws {
    var generator = SeededGenerator(state: 77)
    let sound = try closedStoreBytes(60)
    for round in 0..<60 {
      var bytes = sound
      if round < 10 {
        bytes = (0..<40_960).map { _ in UInt8.random(in: 0...255, using: &generator) }
      } else {
        for _ in 0..<2_000 {
          bytes[Int.random(in: 0..<bytes.count, using: &generator)] = UInt8.random(in: 0...255, using: &generator)
        }
        bytes[0] = 0
      }
      #expect(try kept(openDamaged(bytes, checks: checks)).isSubset(of: present(in: bytes, count: 60)))
    }
  }
}

extension UInt64 {
  fileprivate init(ofFirst bytes: [UInt8]) {
    self = bytes.withUnsafeBytes { $0.loadUnaligned(as: UInt64.self) }
  }
}
