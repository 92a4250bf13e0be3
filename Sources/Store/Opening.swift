import Glibc

/// How the store's file is found, made, checked and, when it is damaged, put out of the way and salvaged.
struct Opening {
  struct Opened {
    var database: Database
    var setAside: String?
    var setAsideReason: String?
    var salvaged = Salvaged()
    var isCompactionDue = false
  }

  /// What was there before SQLite touched it.
  private struct Found {
    var isNew: Bool
    var byteCount: Int
    /// Whether a write-ahead log holds anything: then the file itself may rightly end anywhere, as an interrupted
    /// checkpoint leaves it.
    var hasLog: Bool
  }

  let path: String
  let migrations: [Migration]
  let busyMilliseconds: Int32
  let clocks: StoreClocks
  var seal: (any StoreSeal)?
  /// With a seal: whether it is to be sealed, or the seal is for opening what is.
  var isSealedAfterwards = true

  /// Beside the file itself: write-ahead log, shared memory of earlier settings, rollback journal of the first moments,
  /// how far the log was synced.
  private static let suffixes = ["", "-wal", "-shm", "-journal", LogSync.suffix]

  func open(checks: SalvageChecks?) throws(StoreError) -> Opened {
    let note = SetAsideNote(path: path)
    // A salvage was cut short after the damaged file had been moved: the new one is not in its place yet.
    if let begun = note.read(), access(path, F_OK) != 0 { return try replace(begun, note, checks) }
    do throws(StoreError) {
      let opened = try attempt(path: path)
      note.remove()
      return opened
    } catch {
      guard case .damaged(_, let reason) = error else { throw error }
      let begun = SetAsideNote.Content(aside: unusedName(), reason: reason)
      try note.write(begun)
      return try replace(begun, note, checks)
    }
  }

  /// For where nothing can be written: nothing is repaired, moved or brought to a newer format.
  func openReading() throws(StoreError) -> Opened {
    guard access(path, F_OK) == 0 else { throw Self.systemFailure(path: path) }
    let database = try Database(reading: path)
    try database.script("PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON; PRAGMA temp_store = MEMORY;")
    let application = try database.first("PRAGMA application_id") { $0.integer(0) } ?? 0
    guard application == Schema.applicationID else { throw .foreign(path: path) }
    let version = try Schema.version(of: database)
    guard version <= migrations.count else {
      throw .newerVersion(path: path, version: version, versionMax: migrations.count)
    }
    guard version == migrations.count else {
      throw .readOnly(path: path, reason: "it is of an older format, and bringing it to this one needs writing")
    }
    try Resealing.checkForReading(database, seal)
    return Opened(database: database)
  }

  /// Moves the damaged file and what belongs to it, makes the new one beside it, and gives it the place when it is
  /// whole. Cut short anywhere, it is gone on with at the next start.
  private func replace(
    _ begun: SetAsideNote.Content, _ note: SetAsideNote, _ checks: SalvageChecks?
  ) throws(StoreError) -> Opened {
    // The file first: while it is there, nothing of it has been moved.
    for suffix in Self.suffixes where access(path + suffix, F_OK) == 0 {
      guard rename(path + suffix, begun.aside + suffix) == 0 else {
        let problem = String(cString: strerror(errno))
        throw .damaged(path: path, reason: "\(begun.reason); setting it aside failed: \(problem)")
      }
    }
    let new = path + ".new"
    for suffix in Self.suffixes { unlink(new + suffix) }
    let salvaged = try fill(new, from: begun.aside, checks)
    guard rename(new, path) == 0 else { throw Self.systemFailure(path: new) }
    syncFolder(of: path)
    var opened = try attempt(path: path)
    note.remove()
    opened.setAside = begun.aside
    opened.setAsideReason = begun.reason
    opened.salvaged = salvaged
    return opened
  }

  /// Closed on return, so all in the one file and synced.
  private func fill(_ new: String, from aside: String, _ checks: SalvageChecks?) throws(StoreError) -> Salvaged {
    let store = try Store(try attempt(path: new), clocks: clocks, seal: seal)
    return try Salvage.fill(store, from: aside, checks: checks, seal: seal)
  }

  private func attempt(path: String) throws(StoreError) -> Opened {
    let found = try Self.prepareFile(path: path)
    var opened = Opened(database: try connect(path: path, found))
    do throws(StoreError) {
      guard try Resealing.settle(opened.database, seal, isSealed: seal != nil && isSealedAfterwards, found.isNew) else {
        try Resealing.writeCompact(opened.database)
        try opened.database.checkpoint(isEmptied: true)
        opened.database.checkpointsOnClose(true)
        opened.database.close()
        try Resealing.takeCompact(path: path)
        opened = Opened(database: try connect(path: path, try Self.prepareFile(path: path)))
        return try watched(opened)
      }
    } catch {
      // All is as it should be but for what is in free pages.
      guard case .full = error, try Resealing.isCompactionDue(opened.database) else { throw error }
      opened.isCompactionDue = true
    }
    return try watched(opened)
  }

  private func watched(_ opened: Opened) throws(StoreError) -> Opened {
    try opened.database.watchLog()
    opened.database.checkpointsOnClose(true)
    return opened
  }

  private func connect(path: String, _ found: Found) throws(StoreError) -> Database {
    do throws(StoreError) {
      // SQLite takes a log for ended where it is damaged, and would write over what follows.
      if found.hasLog, LogScan.isDamaged(path: path) {
        throw .damaged(path: path, reason: "its write-ahead log is not as it was written")
      }
      let database = try Database(path: path, busyMilliseconds: busyMilliseconds)
      try Self.configure(database, found: found, migrations: migrations)
      try Schema.migrate(database, through: migrations)
      return database
    } catch {
      // Nothing was ever acknowledged from a file this call made; left behind empty it would look damaged next time.
      if found.isNew { for suffix in Self.suffixes { unlink(path + suffix) } }
      throw error
    }
  }

  /// Makes the file with mode 0600 when there is none.
  private static func prepareFile(path: String) throws(StoreError) -> Found {
    var status = stat()
    guard stat(path, &status) == 0 else {
      guard errno == ENOENT else { throw systemFailure(path: path) }
      // SQLite would delete a log whose database is gone, and with it the only copy of what it holds.
      guard access(path + "-wal", F_OK) != 0 else {
        throw .damaged(path: path, reason: "the file is missing, its write-ahead log is there")
      }
      let descriptor = Glibc.open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
      guard descriptor >= 0 else { throw systemFailure(path: path) }
      // The descriptor may close here: nobody in this process can hold a lock on a file that did not exist, and closing
      // another one later would drop SQLite's locks (fcntl(2)), so existing files are never opened here.
      close(descriptor)
      return Found(isNew: true, byteCount: 0, hasLog: false)
    }
    guard status.st_mode & S_IFMT == S_IFREG else { throw .cannotOpen(path: path, reason: "it is not a regular file") }
    // SQLite takes a file of one byte for an empty one, too, and would begin a new database in it.
    guard status.st_size > 1 else { throw .damaged(path: path, reason: "the file is empty") }
    if status.st_mode & 0o077 != 0 {
      guard chmod(path, 0o600) == 0 else { throw systemFailure(path: path) }
    }
    var log = stat()
    let hasLog = stat(path + "-wal", &log) == 0 && log.st_size > 0
    return Found(isNew: false, byteCount: Int(status.st_size), hasLog: hasLog)
  }

  /// The order matters: nothing is written before the file has proven to be sound, ours, and of a version we know.
  private static func configure(
    _ database: Database, found: Found, migrations: [Migration]
  ) throws(StoreError) {
    let path = database.path
    // EXCLUSIVE: one process owns a home, and what the store keeps in memory of the file (cursor, heads) is only true
    // while nobody else writes. cell_size_check finds damage sooner. Sorting stays in memory, since a temporary file
    // would put messages outside the home. The size of pages is fixed because salvage must know it without a header.
    try database.script(
      """
      PRAGMA page_size = 4096; PRAGMA locking_mode = EXCLUSIVE; PRAGMA foreign_keys = ON; PRAGMA trusted_schema = OFF;
      PRAGMA cell_size_check = ON; PRAGMA temp_store = MEMORY;
      """)
    let version = try Schema.version(of: database)
    let application = try database.first("PRAGMA application_id") { $0.integer(0) } ?? 0
    let pageCount = try database.first("PRAGMA page_count") { $0.integer(0) } ?? 0
    guard pageCount == 0 || application == Schema.applicationID else { throw .foreign(path: path) }
    guard version <= migrations.count else {
      throw .newerVersion(path: path, version: version, versionMax: migrations.count)
    }
    // SQLite reads a last page that is cut short as if it ended in zeros.
    let pageByteCount = Int(try database.first("PRAGMA page_size") { $0.integer(0) } ?? 0)
    guard found.hasLog || pageByteCount > 0 && found.byteCount.isMultiple(of: pageByteCount) else {
      throw .damaged(path: path, reason: "the file ends in the middle of a page, at \(found.byteCount) bytes")
    }
    let complaints = try database.rows("PRAGMA quick_check(3)") { $0.text(0) }
    guard complaints == ["ok"] else { throw .damaged(path: path, reason: complaints.joined(separator: "; ")) }
    guard try database.first("PRAGMA journal_mode = WAL", read: { $0.text(0) }) == "wal" else {
      throw .cannotOpen(path: path, reason: "SQLite keeps no write-ahead log there")
    }
    // The log is cut back to 16 MiB after a burst; unbounded it would keep its largest size for ever.
    // Brought into the file by `Store.checkpointIfDue`, not in the middle of a commit.
    try database.script(
      "PRAGMA synchronous = FULL; PRAGMA journal_size_limit = 16777216; PRAGMA wal_autocheckpoint = 0;")
  }

  /// `<path>.damaged-<UTC time>`: tools can still open the file and its log together.
  private func unusedName() -> String {
    let stem = path + ".damaged-" + Self.timestamp()
    var aside = stem
    var number = 2
    while Self.suffixes.contains(where: { access(aside + $0, F_OK) == 0 }) {
      aside = stem + "-\(number)"
      number += 1
    }
    return aside
  }

  /// `20210312T090516Z`: sorts by time and holds nothing that a file system or shell minds.
  private static func timestamp() -> String {
    var now = time(nil)
    var parts = tm()
    gmtime_r(&now, &parts)
    var text = [CChar](repeating: 0, count: 32)
    let count = strftime(&text, text.count, "%Y%m%dT%H%M%SZ", &parts)
    return String(decoding: text.prefix(count).map(UInt8.init(bitPattern:)), as: UTF8.self)
  }

  static func systemFailure(path: String) -> StoreError {
    let code = errno
    let reason = String(cString: strerror(code))
    return StoreError(systemError: code, path: path, reason: reason) ?? .cannotOpen(path: path, reason: reason)
  }
}

func syncFolder(of path: String) {
  let folder = path.lastIndex(of: "/").map { String(path[..<$0]) } ?? "."
  let descriptor = Glibc.open(folder.isEmpty ? "/" : folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
  guard descriptor >= 0 else { return }
  fsync(descriptor)
  close(descriptor)
}
