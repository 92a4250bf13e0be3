import Glibc
import ParleyVocabulary

/// Everything a node must still know after a restart, in one SQLite file: entries, peer messages, outbox, members, who
/// has what, shares and downloads.
///
/// Blocking, and for one thread: the caller gives it a thread of its own. It is not `Sendable`.
///
/// The journal is a write-ahead log. `apply` commits with `synchronous = FULL`: its writes are on the disk (a sync of
/// the log) before it returns, so what a caller then promises survives a power cut. The price is one sync a batch.
/// `commit` uses NORMAL: its writes survive the end of the process, since they are in the system's memory, but a power
/// cut may take them, until the log is synced: by the next `apply`, by a checkpoint (which syncs the log before it
/// touches the file, and the file before the log is begun anew), or by `LogSync.sync` on any thread. The log is a chain
/// of sums: a power cut takes the last commits and none before them, so what is synced once stays whole.
///
/// Cursors that `commit` gives may have been shown when a power cut takes them, and must not come again under something
/// else. So `sequence` holds a number that is ahead of them, which was synced before they were given. The store goes on
/// from there after it was not closed well.
///
/// Pages of what is pruned are used again by what comes; the file does not shrink. A history that is kept for so many
/// days takes in as much as goes: giving pages back (`auto_vacuum`) would move them about at every write, for nothing.
///
/// The file has mode 0600 and is locked while open. It is checked at start (`quick_check`: structure, not the bytes
/// inside messages, which carry their authors' signatures; of the log, that nothing which was synced is damaged). A
/// damaged one is renamed, see `setAside`, and what can be read of it goes into the new one, see `Salvage`.
package final class Store {
  /// Where a damaged file was put, with its log beside it, and a new store begun; nil when the file was sound.
  package let setAside: String?
  /// What was wrong with it.
  package let setAsideReason: String?
  /// What was read of it and is in the new one.
  package let salvaged: Salvaged
  /// Why nothing can be written; nil as a rule.
  package let readOnlyReason: String?
  /// The last cursor given to an entry or another message; 0 before the first. Never falls, whatever is deleted.
  package internal(set) var lastCursor: UInt64
  /// Entries up to this cursor are in the search index.
  package internal(set) var indexedCursor: UInt64
  /// Messages of entries up to this cursor are found by their keys.
  package internal(set) var keyedCursor: UInt64
  /// Whether the index holds what was forgotten on purpose, and should go from it soon.
  var isForgettingDue: Bool

  let database: Database
  let cells: Cells
  /// Plain text of before is still in pages that are free: there was no room to leave it out.
  package let isCompactionDue: Bool
  var channelRows: [ChannelID: Int64] = [:]
  var channelsByRow: [Int64: ChannelID] = [:]
  var heads: [LogPlace: LogHead] = [:]
  /// Those that the running batch has changed; written back at its end.
  var changedHeads: Set<LogPlace> = []
  /// Entries above the floors of their logs, of channels (by row) for which it was asked.
  var entryCounts: [Int64: Int] = [:]
  private var ageClock: AgeClock
  /// What `sequence` says, and the disk: no cursor above it was given to what a power cut may take.
  private var cursorBound: UInt64
  /// What `sequence` was last told.
  private var written: (last: UInt64, age: Int64)?
  /// Frames in the log from which on a checkpoint is due: another number each time, so that many nodes that store the
  /// same on one machine do not all do it at once.
  private var checkpointFrom = UInt32.random(in: checkpointFrames)
  /// What the age clock showed at the running batch's start.
  private(set) var batchAge: Int64 = 0

  /// Heads are read again when needed; this only bounds the memory for them, at about 100 bytes each.
  private static let headCountMax = 16_384
  /// Given ahead: 10,000 cursors are 20 s of the fastest node.
  private static let cursorsAhead: UInt64 = 10_000
  /// Milliseconds that a crash may take of the age: too little for anything that is counted in days.
  private static let ageWrittenEvery: Int64 = 1_000
  private static let checkpointFrames = UInt32(1_000)...2_000
  /// Even if nobody asks for a checkpoint: 16 MiB.
  private static let checkpointFramesMax = 4_000

  /// Opens or begins the store. Throws `.locked` when another connection has it after waiting 2 s, `.newerVersion` or
  /// `.foreign` when the file is not for this program, `.full`, `.readOnly` or `.cannotOpen` when the system refuses.
  ///
  /// A damaged file is set aside, and what can be read of it and passes the checks is in the new one (see `Salvage`);
  /// without checks it is taken as it stands.
  ///
  /// With a seal, what people said and shared is sealed in the file. A store that was not yet is brought to that first,
  /// which takes as long as writing all of it twice, and goes on at the next opening when it is cut short. Throws
  /// `.sealed` without one for a store that is, `.otherSeal` when it is another's.
  package convenience init(
    path: String, clocks: StoreClocks = .system, checks: SalvageChecks? = nil, seal: (any StoreSeal)? = nil
  ) throws(StoreError) {
    try self.init(
      path: path, migrations: Schema.migrations, busyMilliseconds: 2_000, clocks: clocks, checks: checks, seal: seal)
  }

  /// Brings a sealed store back to plain, the file whole on the disk when it returns. Nothing where there is none.
  package static func unseal(path: String, seal: any StoreSeal) throws(StoreError) {
    guard access(path, F_OK) == 0 else { return }
    let opening = Opening(
      path: path, migrations: Schema.migrations, busyMilliseconds: 2_000, clocks: .system, seal: seal,
      isSealedAfterwards: false)
    _ = try opening.open(checks: nil)
  }

  /// Opens a store that is there for reading only, where the other way is refused with `.readOnly`: every write throws
  /// that again. What a log holds that was not brought into the file is kept in memory meanwhile.
  package convenience init(
    reading path: String, because reason: String, seal: (any StoreSeal)? = nil
  ) throws(StoreError) {
    let opening = Opening(path: path, migrations: Schema.migrations, busyMilliseconds: 0, clocks: .system, seal: seal)
    try self.init(opening.openReading(), clocks: .system, readOnlyReason: reason, seal: seal)
  }

  /// Whether it is worth opening the store at this path again, which could only be read.
  package static func isWritable(path: String) -> Bool {
    let folder = path.lastIndex(of: "/").map { String(path[...$0]) } ?? "."
    return access(path, W_OK) == 0 && access(folder, W_OK | X_OK) == 0
  }

  convenience init(
    path: String, migrations: [Migration], busyMilliseconds: Int32, clocks: StoreClocks = .system,
    checks: SalvageChecks? = nil, seal: (any StoreSeal)? = nil
  ) throws(StoreError) {
    let opening = Opening(
      path: path, migrations: migrations, busyMilliseconds: busyMilliseconds, clocks: clocks, seal: seal)
    try self.init(opening.open(checks: checks), clocks: clocks, seal: seal)
  }

  init(
    _ opened: Opening.Opened, clocks: StoreClocks, readOnlyReason: String? = nil, seal: (any StoreSeal)? = nil
  ) throws(StoreError) {
    cells = Cells(seal: seal)
    isCompactionDue = opened.isCompactionDue
    self.readOnlyReason = readOnlyReason
    database = opened.database
    setAside = opened.setAside
    setAsideReason = opened.setAsideReason
    salvaged = opened.salvaged
    if seal != nil { try Self.keepIndexInMemory(database) }
    let (indexed, isForgettingDue) = try Self.readIndexState(database)
    let sequence = try database.first("SELECT last, age, wall FROM sequence") {
      (last: $0.bits(0), age: $0.integer(1), wall: $0.integer(2))
    }
    guard let sequence else { throw .damaged(path: database.path, reason: "its sequence is missing") }
    lastCursor = sequence.last
    cursorBound = sequence.last
    indexedCursor = min(indexed, sequence.last)
    keyedCursor = min(try Self.readKeyedCursor(database), sequence.last)
    self.isForgettingDue = isForgettingDue
    if sequence.age < 0, readOnlyReason == nil {
      ageClock = AgeClock(clocks: clocks)
      try begin(with: ageClock)
    } else {
      ageClock = AgeClock(age: sequence.age, wall: sequence.wall, clocks: clocks)
    }
  }

  deinit {
    guard readOnlyReason == nil else { return }
    cursorBound = lastCursor
    written = nil
    try? database.syncCommits(true)
    try? writeSequence(age: age)
  }

  /// What was stored before there was an age clock is as old as the clock.
  private func begin(with clock: AgeClock) throws(StoreError) {
    let age = clock.now
    try database.transaction { () throws(StoreError) in
      try database.run("UPDATE entries SET stored_at = ?", .integer(age))
      try database.run("UPDATE peer_messages SET stored_at = ?", .integer(age))
      try database.run("UPDATE outbox SET queued_at = ?", .integer(age))
      try writeSequence(age: age)
    }
  }

  /// Milliseconds by the clock that says how old things are; see `AgeClock`. Never falls.
  package var age: Int64 { ageClock.now }

  /// A page less in most commits: it only has to be written when something rises.
  private func writeSequence(age: Int64) throws(StoreError) {
    let last = max(lastCursor, cursorBound)
    if let written, written.last == last, age - written.age < Self.ageWrittenEvery { return }
    try database.run(
      "UPDATE sequence SET last = ?, age = ?, wall = ?", .bits(last), .integer(age), .integer(ageClock.wall))
    written = (last, age)
  }

  /// For threads that sync what `commit` has written.
  package var log: LogSync? { database.log }

  /// On return all that was committed survives a power cut.
  package func sync() throws(StoreError) { try database.log?.sync() }

  /// The same after a sync that failed: what the system wrote in vain it does not write again, so that another sync of
  /// the log would prove nothing. All of it is written to the file instead.
  package func syncAnew() throws(StoreError) { try database.checkpoint(isEmptied: true) }

  /// Brings the log into the file when it has grown long. Takes as long as a few commits; best when nobody waits.
  /// What fails is tried again when the log is longer: nothing depends on it but room.
  package func checkpointIfDue() {
    guard let log = database.log, log.frameCount >= checkpointFrom else { return }
    let wanted = UInt32.random(in: Self.checkpointFrames)
    do { try database.checkpoint(isEmptied: false) } catch { return checkpointFrom += wanted }
    checkpointFrom = wanted
  }

  /// Commits all writes together, or none of them when it throws. On return they survive a power cut.
  ///
  /// Returns a cursor for each write: for a new entry or message the next of one rising sequence that is never
  /// used twice, and 0 for duplicates, which change nothing, and for every other write.
  @discardableResult
  package func apply(_ writes: [StoreWrite]) throws(StoreError) -> [UInt64] {
    if writes.isEmpty { return [] }
    return try write(writes)
  }

  /// The same without waiting for the disk: until a sync a power cut may take them, but nothing else does. `isSynced`
  /// says that they are safe already.
  package func commit(_ writes: [StoreWrite]) throws(StoreError) -> (cursors: [UInt64], isSynced: Bool) {
    if writes.isEmpty { return ([], true) }
    if lastCursor + UInt64(writes.count) > cursorBound {
      let before = cursorBound
      cursorBound = lastCursor + UInt64(writes.count) + Self.cursorsAhead
      do throws(StoreError) { return (try write(writes), true) } catch {
        cursorBound = before
        throw error
      }
    }
    return (try write(writes, isSynced: false), false)
  }

  private func write(_ writes: [StoreWrite], isSynced: Bool = true) throws(StoreError) -> [UInt64] {
    try database.syncCommits(isSynced)
    return try committing { () throws(StoreError) in
      var cursors: [UInt64] = []
      cursors.reserveCapacity(writes.count)
      for write in writes { cursors.append(try apply(write)) }
      return cursors
    }
  }

  /// Runs `body` in a transaction, with heads, sequence and age written at its end; on an error nothing of it was.
  func committing<T>(_ body: () throws(StoreError) -> T) throws(StoreError) -> T {
    if let readOnlyReason { throw .readOnly(path: database.path, reason: readOnlyReason) }
    if heads.count > Self.headCountMax { heads = [:] }
    if let log = database.log, log.frameCount > Self.checkpointFramesMax { checkpointIfDue() }
    batchAge = age
    let before = lastCursor
    do throws(StoreError) {
      return try database.transaction { () throws(StoreError) in
        let result = try body()
        try writeHeads()
        try writeSequence(age: batchAge)
        return result
      }
    } catch {
      // What memory says of the file was changed along with it, and is now wrong.
      lastCursor = before
      written = nil
      forgetRows()
      throw error
    }
  }

  func apply(_ write: StoreWrite) throws(StoreError) -> UInt64 {
    switch write {
    case .entry(let entry): return try add(entry)
    case .peerMessage(let message): return try add(message)
    case .localMessage(let message): return try add(message)
    case .outboxAdd(let item): try add(item)
    case .outboxRemove(let peer, let id): try removeFromOutbox(peer, id)
    case .member(let member): try set(member)
    case .delivered(let channel, let log, let peer, let number):
      try setDelivered(channel, log: log, peer: peer, number: number)
    case .floor(let channel, let key, let number): try setFloor(channel, key, number)
    case .release(let channel, let key, let number): try release(channel, key, number)
    case .share(let share): try set(share)
    case .unshare(let id, let channel): try unshare(id, from: channel)
    case .scans(let scans): try set(scans)
    case .download(let download): try set(download)
    case .downloadProgress(let id, let bitmap): try setProgress(id, bitmap: bitmap)
    case .downloadRemove(let id): try removeDownload(id)
    case .contact(let contact): try set(contact)
    case .setting(let setting): try set(setting)
    case .organiser(let channel, let key): try set(organiser: key, of: channel)
    case .token(let token, let countMax): try add(token, countMax: countMax)
    case .forgetChannel(let channel): try forget(channel)
    }
    return 0
  }

  private func forget(_ channel: ChannelID) throws(StoreError) {
    try writeHeads()
    try database.run("DELETE FROM channels WHERE channel = ?", .key(channel.value))
    try removeUnannouncedFiles()
    isForgettingDue = true
    // Rows of the deleted may be given anew.
    forgetRows()
  }

  private func forgetRows() {
    channelRows = [:]
    channelsByRow = [:]
    heads = [:]
    changedHeads = []
    entryCounts = [:]
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

  /// Every channel of which something is stored.
  package func channels() throws(StoreError) -> [ChannelID] {
    try database.rows("SELECT channel FROM channels ORDER BY id") { (row) throws(StoreError) in
      ChannelID(try row.key(0))
    }
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
