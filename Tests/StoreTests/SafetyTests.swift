import Glibc
import ParleyVocabulary
import Testing

@testable import ParleyStore

/// What happens to what was acknowledged when the machine, the disk or the file fails.
struct SafetyTests {
  let folder = Folder()
  var copy: String { folder.path + "/copy" }

  /// What the disk holds at this moment, as after a crash.
  private func crash(walByteCount: Int = .max) {
    write(contents(folder.store), to: copy)
    write(contents(folder.store + "-wal").prefix(walByteCount), to: copy + "-wal")
  }

  @Test func everyCommittedBatchSurvivesACrash() throws {
    let store = try Store(path: folder.store)
    for batch in 0..<40 as Range<UInt64> {
      try store.add((1...25).map { entry(batch * 25 + $0, bytes: [UInt8](repeating: 1, count: 300)) })
      if batch % 13 == 0 {
        crash()
        let survivor = try Store(path: copy)
        #expect(survivor.setAside == nil)
        #expect(survivor.lastCursor == (batch + 1) * 25)
        #expect(try survivor.logs(in: channel(1)).map(\.contiguous) == [(batch + 1) * 25])
        let acknowledged = try store.entriesAfter(cursor: 0, in: nil, limit: .max)
        #expect(try survivor.entriesAfter(cursor: 0, in: nil, limit: .max) == acknowledged)
      }
    }
  }

  /// A log torn anywhere, as when power fails in the middle of a write: whole batches only, and heads that match.
  @Test func aTornLogHoldsWholeBatches() throws {
    let store = try Store(path: folder.store)
    for batch in 0..<8 as Range<UInt64> {
      try store.add((1...10).map { entry(batch * 10 + $0, bytes: [UInt8](repeating: 1, count: 1_000)) })
    }
    let byteCount = contents(folder.store + "-wal").count
    var generator = SeededGenerator(state: 3)
    var seen: Set<UInt64> = []
    for _ in 0..<60 {
      crash(walByteCount: Int.random(in: byteCount / 4...byteCount, using: &generator))
      let survivor = try Store(path: copy)
      let count = UInt64(try survivor.entriesAfter(cursor: 0, in: nil, limit: .max).count)
      #expect(count % 10 == 0)
      #expect(survivor.lastCursor == count)
      #expect(try survivor.logs(in: channel(1)).reduce(0) { $0 + $1.contiguous } == count)
      seen.insert(count)
    }
    #expect(seen.count > 2, "the cuts were all alike: \(seen)")
  }

  @Test func aFullDiskKeepsTheBatchOutAndTheRestIn() throws {
    let store = try Store(path: folder.store)
    try store.add([entry(1), entry(3)])
    let before = try store.logs(in: channel(1))
    // SQLite raises a limit below the present size to that size: nothing more fits.
    _ = try store.database.first("PRAGMA max_page_count = 1") { $0.integer(0) }
    let large = [UInt8](repeating: 9, count: 30_000)
    let full = [entry(2), entry(1, log: 77), entry(1, in: channel(5)), entry(4, bytes: large), entry(5, bytes: large)]
    for _ in 0..<2 {
      let error = #expect(throws: StoreError.self) { try store.add(full) }
      guard case .full(let path, _) = error else {
        Issue.record("\(String(describing: error))")
        return
      }
      #expect(path == folder.store)
      #expect(try store.logs(in: channel(1)) == before)
      #expect(try store.logs(in: channel(5)) == [])
      #expect(store.lastCursor == 2)
    }
    _ = try store.database.first("PRAGMA max_page_count = 1000000") { $0.integer(0) }
    #expect(try store.add(full) == [3, 4, 5, 6, 7])
    #expect(try store.logs(in: channel(1)).map(\.contiguous) == [5, 1])
  }

  @Test func aRefusedWriteTakesItsWholeBatchAlong() throws {
    let store = try Store(path: folder.store)
    let note = StoredPeerMessage(peer: peer(2), isOwn: false, id: message("a"), json: [1])
    #expect(throws: StoreError.outOfRange(field: "number", value: 0, min: 1, max: Limit.counterMax)) {
      try store.apply([.peerMessage(note), .share(share(1, in: 1)), .entry(entry(1)), .entry(entry(0))])
    }
    #expect(try store.peerMessages(limit: 9) == [])
    #expect(try store.shares() == [])
    #expect(store.lastCursor == 0)
    #expect(try store.apply([.entry(entry(1)), .peerMessage(note)]) == [1, 2])
    #expect(try store.apply([]) == [])
  }

  /// No test can cut the power; these are the settings under which SQLite promises to survive that.
  @Test func theSettingsAreThoseThatThePromiseNeeds() throws {
    let store = try Store(path: folder.store)
    #expect(try store.database.first("PRAGMA synchronous") { $0.integer(0) } == 2)
    #expect(try store.database.first("PRAGMA journal_mode") { $0.text(0) } == "wal")
    #expect(try store.database.first("PRAGMA locking_mode") { $0.text(0) } == "exclusive")
    // Also after what nobody waits for, which is synced apart.
    try store.add([entry(1)])
    #expect(try store.commit([.entry(entry(2))]).isSynced, "cursors are reserved first")
    #expect(try store.commit([.entry(entry(3))]).isSynced == false)
    #expect(try store.database.first("PRAGMA synchronous") { $0.integer(0) } == 1)
    try store.add([entry(4)])
    #expect(try store.database.first("PRAGMA synchronous") { $0.integer(0) } == 2)
  }

  // MARK: Files that are not as they were left

  private func closedStoreBytes() throws -> [UInt8] {
    do {
      let store = try Store(path: folder.store)
      try store.add((1...500).map { entry($0, bytes: [UInt8](repeating: 1, count: 500)) })
    }
    #expect(folder.names == ["store.sqlite"], "closing brings everything into the one file")
    return contents(folder.store)
  }

  private func expectSetAside(_ damaged: [UInt8], _ comment: Comment) throws {
    write(damaged, to: folder.store)
    do {
      let store = try Store(path: folder.store)
      let aside = try #require(store.setAside, comment)
      #expect(aside.hasPrefix(folder.store + ".damaged-"))
      #expect(store.setAsideReason?.isEmpty == false)
      #expect(contents(aside) == damaged, "what was set aside is as it was found")
      #expect(store.lastCursor >= Salvage.cursorMargin)
      #expect(try store.add([entry(501)]) == [store.lastCursor])
    }
    let again = try Store(path: folder.store)
    #expect(again.setAside == nil)
    #expect(again.lastCursor > Salvage.cursorMargin)
  }

  @Test func truncatedFilesAreSetAside() throws {
    let sound = try closedStoreBytes()
    for count in [0, 1, 99, 100, 4_095, 4_096, sound.count / 2, sound.count - 4_096, sound.count - 1] {
      try expectSetAside(Array(sound.prefix(count)), "cut at \(count)")
    }
    let aside = folder.names.filter { $0.contains(".damaged-") && !$0.hasSuffix("-wal") }
    #expect(aside.count == 9, "each has a name of its own")
  }

  @Test func bitFlippedFilesAreSetAside() throws {
    let sound = try closedStoreBytes()
    // The magic, the page size, and of several pages the type and the number of cells (file format, 1.3 and 1.6).
    for offset in [0, 16, 100, 4_096, 8_192 + 3, sound.count - 4_096] {
      var flipped = sound
      flipped[offset] ^= 0x40
      try expectSetAside(flipped, "flipped at \(offset)")
    }
  }

  @Test func aLogWithoutItsDatabaseIsSetAside() throws {
    do {
      let store = try Store(path: folder.store)
      try store.add([entry(1)])
      write(contents(folder.store + "-wal"), to: copy + "-wal")
    }
    let log = contents(copy + "-wal")
    #expect(log.isEmpty == false)
    let store = try Store(path: copy)
    let aside = try #require(store.setAside)
    #expect(contents(aside + "-wal") == log)
  }

  @Test func whatIsNotOursIsLeftAlone() throws {
    do {
      let store = try Store(path: folder.store)
      try store.database.script("PRAGMA user_version = 99")
    }
    let newer = contents(folder.store)
    #expect(throws: StoreError.newerVersion(path: folder.store, version: 99, versionMax: Schema.migrations.count)) {
      try Store(path: folder.store)
    }
    #expect(contents(folder.store) == newer)
    do {
      let store = try Store(path: copy)
      try store.database.script("PRAGMA application_id = 7")
    }
    let foreign = contents(copy)
    #expect(throws: StoreError.foreign(path: copy)) { try Store(path: copy) }
    #expect(contents(copy) == foreign)
    #expect(throws: StoreError.cannotOpen(path: folder.path, reason: "it is not a regular file")) {
      try Store(path: folder.path)
    }
    // Opening a database to look at it makes an empty log beside it.
    #expect(
      folder.names.filter { !$0.hasSuffix("-synced") } == ["copy", "copy-wal", "store.sqlite", "store.sqlite-wal"])
    #expect(contents(copy + "-wal") + contents(folder.store + "-wal") == [])
  }

  @Test func migrationsRunOnceInOrderAndAllOrNothing() throws {
    do { try Store(path: folder.store).add([entry(1)]) }
    #expect(Schema.migrations.count == 11, "the scripts below are the next step")
    let broken =
      Schema.migrations + [
        Migration(script: "ALTER TABLE logs ADD COLUMN test INTEGER; SELECT 1 FROM nowhere; PRAGMA user_version = 12")
      ]
    #expect(throws: StoreError.self) { try Store(path: folder.store, migrations: broken, busyMilliseconds: 0) }
    let second =
      Schema.migrations + [
        Migration(script: "ALTER TABLE logs ADD COLUMN test INTEGER NOT NULL DEFAULT 0; PRAGMA user_version = 12")
      ]
    for _ in 0..<2 {
      let store = try Store(path: folder.store, migrations: second, busyMilliseconds: 0)
      #expect(try store.logs(in: channel(1)).map(\.contiguous) == [1])
      #expect(try store.database.rows("SELECT test FROM logs") { $0.integer(0) } == [0])
    }
  }

  @Test func onlyOneHasTheStore() throws {
    let store = try Store(path: folder.store)
    try store.add([entry(1)])
    #expect(throws: StoreError.locked(path: folder.store)) {
      try Store(path: folder.store, migrations: Schema.migrations, busyMilliseconds: 0)
    }
    #expect(try store.add([entry(2)]) == [2])
    #expect(folder.names == ["store.sqlite", "store.sqlite-synced", "store.sqlite-wal"])
  }

  @Test func nobodyElseMayReadIt() throws {
    do {
      let store = try Store(path: folder.store)
      try store.add([entry(1)])
      for name in folder.names {
        var status = stat()
        #expect(stat(folder.path + "/" + name, &status) == 0)
        #expect(status.st_mode & 0o777 == 0o600, "\(name)")
      }
    }
    chmod(folder.store, 0o644)
    let store = try Store(path: folder.store)
    #expect(store.lastCursor == 1)
    var status = stat()
    #expect(stat(folder.store, &status) == 0)
    #expect(status.st_mode & 0o777 == 0o600)
  }

  @Test func whereWritingIsForbiddenNothingIsTouched() throws {
    do { try Store(path: folder.store).add([entry(1)]) }
    let before = contents(folder.store)
    chmod(folder.path, 0o555)
    // Root may write anywhere. For this thread and the length of the test it is nobody, who owns the file but not the
    // folder (setfsuid(2), which the Glibc module lacks); for any other user both calls do nothing.
    let nobody: uid_t = 65_534
    chown(folder.store, nobody, gid_t.max)
    let setFileUser = unsafeBitCast(
      try #require(dlsym(nil, "setfsuid")), to: (@convention(c) (uid_t) -> Int32).self)
    let user = setFileUser(nobody)
    defer {
      _ = setFileUser(uid_t(user))
      chmod(folder.path, 0o700)
    }
    for path in [folder.path + "/new", folder.store] {
      let error = #expect(throws: StoreError.self) { try Store(path: path) }
      guard case .readOnly(path, let reason) = error else {
        Issue.record("\(path): \(String(describing: error))")
        continue
      }
      #expect(reason.isEmpty == false)
    }
    #expect(folder.names == ["store.sqlite"])
    #expect(contents(folder.store) == before)
  }

  @Test func aMissingFolderIsSaid() throws {
    let path = folder.path + "/none/store.sqlite"
    #expect(throws: StoreError.cannotOpen(path: path, reason: "No such file or directory")) { try Store(path: path) }
  }
}
