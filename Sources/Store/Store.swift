import Glibc
import ParleyVocabulary

/// Everything a node must still know after a restart, in one SQLite file: entries, peer messages, outbox, members, who
/// has what, shares and downloads.
///
/// Blocking, and for one thread: the caller gives it a thread of its own. It is not `Sendable`.
///
/// The journal is a write-ahead log with `synchronous = FULL`: each commit is on the disk (fsync of the log) before
/// `apply` returns, so what a caller then acknowledges survives a power cut. With NORMAL the log is synced only at
/// checkpoints, and a power cut may take the last commits, acknowledged ones included. The price is one fsync a commit,
/// which `apply` shares among all writes of a batch.
///
/// The file has mode 0600 and is locked while open. It is checked at start (`quick_check`: structure, not the bytes
/// inside messages, which carry their authors' signatures); a damaged one is renamed, see `setAside`.
package final class Store {
  /// Where a damaged file was put, with its log beside it, and a new store begun; nil when the file was sound.
  package let setAside: String?
  /// What was wrong with it.
  package let setAsideReason: String?
  /// The last cursor given to an entry or a peer message; 0 before the first. Never falls, whatever is deleted.
  package internal(set) var lastCursor: UInt64

  let database: Database
  var channelRows: [ChannelID: Int64] = [:]
  var channelsByRow: [Int64: ChannelID] = [:]
  var heads: [LogPlace: LogHead] = [:]
  /// Those that the running batch has changed; written back at its end.
  var changedHeads: Set<LogPlace> = []
  /// Milliseconds since 1970 at the running batch's start.
  var batchMilliseconds: Int64 = 0

  /// Heads are read again when needed; this only bounds the memory for them, at about 100 bytes each.
  private static let headCountMax = 16_384

  /// Opens or begins the store. Throws `.locked` when another connection has it after waiting 2 s, `.newerVersion` or
  /// `.foreign` when the file is not for this program, `.full`, `.readOnly` or `.cannotOpen` when the system refuses.
  package convenience init(path: String) throws(StoreError) {
    try self.init(path: path, migrations: Schema.migrations, busyMilliseconds: 2_000)
  }

  init(path: String, migrations: [Migration], busyMilliseconds: Int32) throws(StoreError) {
    let opened = try Opening.open(path: path, migrations: migrations, busyMilliseconds: busyMilliseconds)
    database = opened.database
    setAside = opened.setAside
    setAsideReason = opened.setAsideReason
    lastCursor = try Self.readLastCursor(database)
  }

  private static func readLastCursor(_ database: Database) throws(StoreError) -> UInt64 {
    try database.first("SELECT last FROM sequence") { $0.bits(0) } ?? 0
  }

  /// Commits all writes together, or none of them when it throws. On return they survive a power cut.
  ///
  /// Returns a cursor for each write: for a new entry or peer message the next of one rising sequence that is never
  /// used twice, and 0 for duplicates, which change nothing, and for every other write.
  @discardableResult
  package func apply(_ writes: [StoreWrite]) throws(StoreError) -> [UInt64] {
    if writes.isEmpty { return [] }
    if heads.count > Self.headCountMax { heads = [:] }
    batchMilliseconds = Self.milliseconds()
    let before = lastCursor
    do throws(StoreError) {
      return try database.transaction { () throws(StoreError) in
        var cursors: [UInt64] = []
        cursors.reserveCapacity(writes.count)
        for write in writes { cursors.append(try apply(write)) }
        try writeHeads()
        if lastCursor != before { try database.run("UPDATE sequence SET last = ?", .bits(lastCursor)) }
        return cursors
      }
    } catch {
      // What memory says of the file was changed along with it, and is now wrong.
      lastCursor = before
      forgetRows()
      throw error
    }
  }

  private func apply(_ write: StoreWrite) throws(StoreError) -> UInt64 {
    switch write {
    case .entry(let entry): return try add(entry)
    case .peerMessage(let message): return try add(message)
    case .outboxAdd(let item): try add(item)
    case .outboxRemove(let peer, let id): try removeFromOutbox(peer, id)
    case .member(let member): try set(member)
    case .delivered(let channel, let log, let peer, let number):
      try setDelivered(channel, log: log, peer: peer, number: number)
    case .share(let share): try set(share)
    case .unshare(let id, let channel): try unshare(id, from: channel)
    case .download(let download): try set(download)
    case .downloadProgress(let id, let bitmap): try setProgress(id, bitmap: bitmap)
    case .downloadRemove(let id): try removeDownload(id)
    case .forgetChannel(let channel): try forget(channel)
    }
    return 0
  }

  private func forget(_ channel: ChannelID) throws(StoreError) {
    try writeHeads()
    try database.run("DELETE FROM channels WHERE channel = ?", .key(channel.value))
    try removeUnannouncedFiles()
    // Rows of the deleted may be given anew.
    forgetRows()
  }

  private func forgetRows() {
    channelRows = [:]
    channelsByRow = [:]
    heads = [:]
    changedHeads = []
  }

  private static func milliseconds() -> Int64 {
    var now = timespec()
    clock_gettime(CLOCK_REALTIME, &now)
    return Int64(now.tv_sec) * 1_000 + Int64(now.tv_nsec) / 1_000_000
  }

  // MARK: Channels

  /// Nil when nothing was stored about this channel.
  func row(of channel: ChannelID) throws(StoreError) -> Int64? {
    if let row = channelRows[channel] { return row }
    let row = try database.first("SELECT id FROM channels WHERE channel = ?", .key(channel.value)) { $0.integer(0) }
    if let row { remember(channel, row: row) }
    return row
  }

  func rowMade(for channel: ChannelID) throws(StoreError) -> Int64 {
    if let row = try row(of: channel) { return row }
    try database.run("INSERT INTO channels (channel) VALUES (?)", .key(channel.value))
    let row = database.lastRow
    remember(channel, row: row)
    return row
  }

  func channel(row: Int64) throws(StoreError) -> ChannelID {
    if let channel = channelsByRow[row] { return channel }
    let found = try database.first("SELECT channel FROM channels WHERE id = ?", .integer(row)) {
      (row) throws(StoreError) in ChannelID(try row.key(0))
    }
    guard let found else { throw .damaged(path: database.path, reason: "an entry of no known channel") }
    remember(found, row: row)
    return found
  }

  private func remember(_ channel: ChannelID, row: Int64) {
    channelRows[channel] = row
    channelsByRow[row] = channel
  }

  /// A number that is stored and ordered as a signed integer.
  static func counter(
    _ value: UInt64, field: StaticString, min: UInt64 = 0
  ) throws(StoreError) -> Value {
    guard (min...Limit.counterMax).contains(value) else {
      throw .outOfRange(field: "\(field)", value: value, min: min, max: Limit.counterMax)
    }
    return .integer(Int64(value))
  }
}
