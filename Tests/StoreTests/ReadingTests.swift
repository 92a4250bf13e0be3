import Glibc
import ParleyVocabulary
import Testing

@testable import ParleyStore

/// A store that may only be read.
struct ReadingTests {
  let folder = Folder()

  /// The state of a file and its log, read from a copy: what is not written cannot have changed.
  private func expectReadable(_ path: String, _ count: UInt64) throws {
    let before = [contents(path), contents(path + "-wal")]
    let names = folder.names
    do {
      let store = try Store(reading: path, because: "a lock on the door")
      #expect(store.readOnlyReason == "a lock on the door")
      #expect(try store.entriesAfter(cursor: 0, in: nil, limit: .max).map(\.number) == Array(1...count))
      #expect(try store.logs(in: channel(1)).map(\.contiguous) == [count])
      #expect(try store.lastHiddenEntries(in: channel(1)).map(\.number) == [2])
      #expect(try store.outbox().map(\.id) == [message("a")])
      #expect(store.lastCursor == count)
      for writes in [[.entry(entry(count + 1))], [.outboxRemove(peer(2), message("a"))]] as [[StoreWrite]] {
        #expect(throws: StoreError.readOnly(path: path, reason: "a lock on the door")) { try store.apply(writes) }
      }
      #expect(throws: StoreError.readOnly(path: path, reason: "a lock on the door")) {
        try store.prune(channel(1), keeping: Retention(days: 1, entryCountMax: 1))
      }
      #expect(try store.isIndexingWorthwhile() == false)
      #expect(store.isIndexBehind == false)
    }
    #expect(folder.names == names)
    #expect([contents(path), contents(path + "-wal")] == before)
  }

  private func fill(_ store: Store, _ count: UInt64) throws {
    try store.apply([.outboxAdd(OutboxItem(peer: peer(2), id: message("a"), json: [1]))])
    for number in 1...count {
      try store.add([entry(number, hidden: number == 2, bytes: [UInt8](repeating: 3, count: 9_000))])
    }
  }

  @Test func oneThatWasClosedIsRead() throws {
    do { try fill(Store(path: folder.store), 40) }
    try expectReadable(folder.store, 40)
  }

  /// What is in the log only, and what a checkpoint has brought into the file.
  @Test(arguments: [3, 150, 700] as [UInt64]) func oneThatCrashedIsReadWithItsLog(count: UInt64) throws {
    let store = try Store(path: folder.store)
    try fill(store, count)
    let copy = folder.path + "/ein %20 Ort?mode=rw#é"
    write(contents(folder.store), to: copy)
    write(contents(folder.store + "-wal"), to: copy + "-wal")
    try expectReadable(copy, count)
    unlink(copy + "-wal")
    rename(copy, folder.path + "/other")
  }

  @Test func aTornEndOfTheLogIsLeftOut() throws {
    let store = try Store(path: folder.store)
    try fill(store, 20)
    let copy = folder.path + "/copy"
    write(contents(folder.store), to: copy)
    write(contents(folder.store + "-wal").dropLast(4_000), to: copy + "-wal")
    try expectReadable(copy, 19)
  }

  @Test func aClosedOneUnderAnyNameIsRead() throws {
    do { try fill(Store(path: folder.store), 5) }
    let path = folder.path + "/ein %20 Ort?mode=rw#é"
    rename(folder.store, path)
    try expectReadable(path, 5)
  }

  @Test func whatIsMissingOrNotOursIsSaid() throws {
    let missing = folder.path + "/missing"
    #expect(throws: StoreError.cannotOpen(path: missing, reason: "No such file or directory")) {
      try Store(reading: missing, because: "")
    }
    #expect(folder.names == [])
    do {
      let store = try Store(path: folder.store)
      try store.database.script("PRAGMA application_id = 7")
    }
    #expect(throws: StoreError.foreign(path: folder.store)) { try Store(reading: folder.store, because: "") }
  }
}
