import Glibc

/// How the store's file is found, made, checked and, when it is damaged, put out of the way.
enum Opening {
  struct Opened {
    var database: Database
    var setAside: String?
    var setAsideReason: String?
  }

  /// What was there before SQLite touched it.
  private struct Found {
    var isNew: Bool
    var byteCount: Int
    /// Whether a write-ahead log holds anything: then the file itself may rightly end anywhere, as an interrupted
    /// checkpoint leaves it.
    var hasLog: Bool
  }

  /// Beside the file itself: write-ahead log, shared memory of earlier settings, rollback journal of the first moments.
  private static let suffixes = ["", "-wal", "-shm", "-journal"]

  static func open(
    path: String, migrations: [Migration], busyMilliseconds: Int32
  ) throws(StoreError) -> Opened {
    do throws(StoreError) {
      return Opened(database: try attempt(path: path, migrations: migrations, busyMilliseconds: busyMilliseconds))
    } catch {
      guard case .damaged(_, let reason) = error else { throw error }
      let aside = try setAside(path: path, reason: reason)
      let database = try attempt(path: path, migrations: migrations, busyMilliseconds: busyMilliseconds)
      return Opened(database: database, setAside: aside, setAsideReason: reason)
    }
  }

  private static func attempt(
    path: String, migrations: [Migration], busyMilliseconds: Int32
  ) throws(StoreError) -> Database {
    let found = try prepareFile(path: path)
    do throws(StoreError) {
      let database = try Database(path: path, busyMilliseconds: busyMilliseconds)
      try configure(database, found: found, migrations: migrations)
      try Schema.migrate(database, through: migrations)
      database.checkpointsOnClose(true)
      return database
    } catch {
      // Nothing was ever acknowledged from a file this call made; left behind empty it would look damaged next time.
      if found.isNew { for suffix in suffixes { unlink(path + suffix) } }
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
    // would put messages outside the home.
    try database.script(
      """
      PRAGMA locking_mode = EXCLUSIVE; PRAGMA foreign_keys = ON; PRAGMA trusted_schema = OFF;
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
    try database.script("PRAGMA synchronous = FULL; PRAGMA journal_size_limit = 16777216;")
  }

  /// Renames the file and what belongs to it to `<path>.damaged-<UTC time>`: tools can still open them together.
  private static func setAside(path: String, reason: String) throws(StoreError) -> String {
    let stem = path + ".damaged-" + timestamp()
    var aside = stem
    var number = 2
    while suffixes.contains(where: { access(aside + $0, F_OK) == 0 }) {
      aside = stem + "-\(number)"
      number += 1
    }
    for suffix in suffixes where access(path + suffix, F_OK) == 0 {
      guard rename(path + suffix, aside + suffix) == 0 else {
        let problem = String(cString: strerror(errno))
        throw .damaged(path: path, reason: "\(reason); setting it aside failed: \(problem)")
      }
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

  private static func systemFailure(path: String) -> StoreError {
    let code = errno
    let reason = String(cString: strerror(code))
    return StoreError(systemError: code, path: path, reason: reason) ?? .cannotOpen(path: path, reason: reason)
  }
}
