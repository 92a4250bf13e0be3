import CSQLite
import Glibc
import ParleyVocabulary

/// What is bound to a parameter. Keys and logs are big-endian BLOBs, so SQLite's byte order is their unsigned order.
enum Value {
  case integer(Int64)
  case text(String)
  case blob([UInt8])
  case key(Bytes32)
  case log(Instance)

  static func flag(_ value: Bool) -> Value { .integer(value ? 1 : 0) }
  /// For numbers that are never ordered by: above `Int64.max` they turn negative.
  static func bits(_ value: UInt64) -> Value { .integer(Int64(bitPattern: value)) }
  /// For upper bounds, limits and cursors, which callers may give as large as they like.
  static func clamped(_ value: some BinaryInteger) -> Value { .integer(Int64(clamping: value)) }
}

/// One SQLite connection and its prepared statements. Statements are `StaticString`, so none can be built from data.
/// Used from one thread at a time.
final class Database {
  let path: String
  private let handle: OpaquePointer
  private var statements: [UnsafePointer<UInt8>: OpaquePointer] = [:]
  /// Nil for a file that is only read.
  private(set) var log: LogSync?
  /// What `synchronous` stands at: FULL, or NORMAL, which leaves syncing commits to `log`.
  private var syncsCommits = true
  private var isClosed = false

  /// Opens an existing file for writing.
  init(path: String, busyMilliseconds: Int32) throws(StoreError) {
    self.path = path
    var opened: OpaquePointer?
    let flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE
    let code = sqlite3_open_v2(path, &opened, flags, nil)
    guard code == SQLITE_OK, let opened else {
      let error = Self.failure(code, of: opened, path: path)
      sqlite3_close_v2(opened)
      throw error
    }
    handle = opened
    sqlite3_busy_timeout(handle, busyMilliseconds)
    // Until the file has proven sound and ours, closing must leave it and its log exactly as they are.
    checkpointsOnClose(false)
    guard sqlite3_db_readonly(handle, "main") == 0 else {
      throw .readOnly(path: path, reason: "the file is not writable")
    }
  }

  /// Opens an existing file whose folder cannot be written. SQLite needs to write beside a database to read one that
  /// has a log, so with a log the two are put together in memory.
  init(reading path: String) throws(StoreError) {
    self.path = path
    var opened: OpaquePointer?
    let image = try DatabaseImage(path: path)
    let code =
      image == nil
      ? sqlite3_open_v2(
        "file:" + Self.escaped(path) + "?immutable=1", &opened,
        SQLITE_OPEN_READONLY | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE, nil)
      : sqlite3_open_v2(
        ":memory:", &opened, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE, nil)
    guard code == SQLITE_OK, let opened else {
      let error = Self.failure(code, of: opened, path: path)
      sqlite3_close_v2(opened)
      throw error
    }
    handle = opened
    guard let image else { return }
    let (bytes, byteCount) = image.release()
    // Freed by SQLite, also when it fails.
    let flags = UInt32(SQLITE_DESERIALIZE_FREEONCLOSE | SQLITE_DESERIALIZE_READONLY)
    let taken = sqlite3_deserialize(handle, "main", bytes, byteCount, byteCount, flags)
    guard taken == SQLITE_OK else { throw failure(taken) }
  }

  /// For a file: URI (RFC 3986); SQLite decodes it.
  private static func escaped(_ path: String) -> String {
    let plain = Set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~/".utf8)
    let digits = Array("0123456789ABCDEF".utf8)
    let bytes = path.utf8.flatMap { byte in
      plain.contains(byte) ? [byte] : [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 15)]]
    }
    return String(decoding: bytes, as: UTF8.self)
  }

  deinit {
    close()
    if log != nil { LogSync.forgetMarkWithoutLog(path: path) }
  }

  /// Nothing may be asked afterwards.
  func close() {
    if isClosed { return }
    isClosed = true
    for statement in statements.values { sqlite3_finalize(statement) }
    statements = [:]
    sqlite3_close_v2(handle)
  }

  /// Before `watchLog`: brings the log into the file when it has so many frames.
  func checkpointIfLong(frameCount: UInt32) throws(StoreError) {
    var status = stat()
    guard stat(path + "-wal", &status) == 0, status.st_size > Int(frameCount) * File.pageByteCount else { return }
    try checkpoint(isEmptied: true)
  }

  /// From now on each commit is told to `log`.
  func watchLog() throws(StoreError) {
    log = try LogSync(path: path)
    sqlite3_wal_hook(
      handle,
      { context, _, _, frameCount in
        let database = Unmanaged<Database>.fromOpaque(context!).takeUnretainedValue()
        database.log?.committed(frameCount: UInt32(clamping: frameCount), isSynced: database.syncsCommits)
        return SQLITE_OK
      }, Unmanaged.passUnretained(self).toOpaque())
  }

  /// Whether the commits to come are synced, each before it returns. Not within a transaction.
  func syncCommits(_ isOn: Bool) throws(StoreError) {
    if isOn == syncsCommits { return }
    // Not prepared: SQLite carries this out when it reads it.
    try script(isOn ? "PRAGMA synchronous = FULL" : "PRAGMA synchronous = NORMAL")
    syncsCommits = isOn
  }

  /// Brings the log into the file, with a sync of each; with `isEmptied` all of it, or throws.
  func checkpoint(isEmptied: Bool) throws(StoreError) {
    let mode = isEmptied ? SQLITE_CHECKPOINT_TRUNCATE : SQLITE_CHECKPOINT_PASSIVE
    let code = sqlite3_wal_checkpoint_v2(handle, nil, mode, nil, nil)
    guard code == SQLITE_OK else { throw failure(code) }
    log?.checkpointed(isEmptied: isEmptied)
  }

  func checkpointsOnClose(_ isOn: Bool) { _ = parley_sqlite_checkpoint_on_close(handle, isOn ? 1 : 0) }

  var isInTransaction: Bool { sqlite3_get_autocommit(handle) == 0 }
  /// Rows that the last statement changed.
  var changeCount: Int { Int(sqlite3_changes(handle)) }
  var lastRow: Int64 { sqlite3_last_insert_rowid(handle) }
  /// Pages that were asked for since the file was opened, in memory or not: what statements cost on any machine.
  var pageRequestCount: Int {
    var sum = 0
    for counter in [SQLITE_DBSTATUS_CACHE_HIT, SQLITE_DBSTATUS_CACHE_MISS] {
      var count: Int32 = 0
      var highest: Int32 = 0
      sqlite3_db_status(handle, counter, &count, &highest, 0)
      sum += Int(count)
    }
    return sum
  }

  /// Several statements without parameters or results.
  func script(_ sql: StaticString) throws(StoreError) {
    let code = sqlite3_exec(handle, UnsafeRawPointer(sql.utf8Start).assumingMemoryBound(to: CChar.self), nil, nil, nil)
    guard code == SQLITE_OK else { throw failure(code) }
  }

  func run(_ sql: StaticString, _ values: Value...) throws(StoreError) {
    try each(sql, values) { _ in true }
  }

  func rows<T>(
    _ sql: StaticString, _ values: Value..., read: (Row) throws(StoreError) -> T
  ) throws(StoreError) -> [T] {
    var result: [T] = []
    try each(sql, values) { (row) throws(StoreError) in
      result.append(try read(row))
      return true
    }
    return result
  }

  func first<T>(_ sql: StaticString, _ values: Value..., read: (Row) throws(StoreError) -> T) throws(StoreError) -> T? {
    var result: T?
    try each(sql, values) { (row) throws(StoreError) in
      result = try read(row)
      return false
    }
    return result
  }

  /// Reads rows until `body` says false. `body` must not run the same statement again.
  func each(
    _ sql: StaticString, _ values: [Value], _ body: (Row) throws(StoreError) -> Bool
  ) throws(StoreError) {
    let statement = try prepared(sql)
    precondition(sqlite3_stmt_busy(statement) == 0, "a statement was run inside its own rows")
    // Also gives back the copies of what was bound.
    defer {
      sqlite3_reset(statement)
      sqlite3_clear_bindings(statement)
    }
    for (index, value) in values.enumerated() { try bind(value, to: statement, at: Int32(index + 1)) }
    while true {
      let code = sqlite3_step(statement)
      if code == SQLITE_DONE { return }
      guard code == SQLITE_ROW else { throw failure(code) }
      guard try body(Row(statement: statement, path: path)) else { return }
    }
  }

  private func prepared(_ sql: StaticString) throws(StoreError) -> OpaquePointer {
    if let statement = statements[sql.utf8Start] { return statement }
    var statement: OpaquePointer?
    let text = UnsafeRawPointer(sql.utf8Start).assumingMemoryBound(to: CChar.self)
    let code = sqlite3_prepare_v3(
      handle, text, Int32(sql.utf8CodeUnitCount), UInt32(SQLITE_PREPARE_PERSISTENT), &statement, nil)
    guard code == SQLITE_OK, let statement else { throw failure(code) }
    statements[sql.utf8Start] = statement
    return statement
  }

  private func bind(_ value: Value, to statement: OpaquePointer, at index: Int32) throws(StoreError) {
    // SQLITE_TRANSIENT, a macro that Swift does not import: SQLite copies before the call returns.
    let copied = unsafeBitCast(-1, to: sqlite3_destructor_type.self)
    let code: Int32
    switch value {
    case .integer(let integer): code = sqlite3_bind_int64(statement, index, integer)
    case .text(var text):
      code = text.withUTF8 { bytes in
        bytes.withMemoryRebound(to: CChar.self) { characters in
          characters.isEmpty
            ? sqlite3_bind_text64(statement, index, "", 0, copied, UInt8(SQLITE_UTF8))
            : sqlite3_bind_text64(
              statement, index, characters.baseAddress, UInt64(characters.count), copied, UInt8(SQLITE_UTF8))
        }
      }
    case .blob(let bytes):
      // A nil pointer would bind NULL, so an empty BLOB has a call of its own.
      code =
        bytes.isEmpty
        ? sqlite3_bind_zeroblob(statement, index, 0)
        : sqlite3_bind_blob64(statement, index, bytes, UInt64(bytes.count), copied)
    case .key(let key):
      let words = key.words
      code = withUnsafeBytes(
        of: (words.0.bigEndian, words.1.bigEndian, words.2.bigEndian, words.3.bigEndian)
      ) { sqlite3_bind_blob64(statement, index, $0.baseAddress, 32, copied) }
    case .log(let log):
      code = withUnsafeBytes(of: log.value.bigEndian) {
        sqlite3_bind_blob64(statement, index, $0.baseAddress, 8, copied)
      }
    }
    guard code == SQLITE_OK else { throw failure(code) }
  }

  private func failure(_ code: Int32) -> StoreError { Self.failure(code, of: handle, path: path) }

  private static func failure(_ code: Int32, of handle: OpaquePointer?, path: String) -> StoreError {
    let systemError = handle.map(sqlite3_system_errno) ?? 0
    var reason = handle.map { String(cString: sqlite3_errmsg($0)) } ?? String(cString: sqlite3_errstr(code))
    switch code & 0xFF {
    case SQLITE_BUSY, SQLITE_LOCKED: return .locked(path: path)
    case SQLITE_FULL: return .full(path: path, reason: reason)
    case SQLITE_READONLY, SQLITE_PERM: return .readOnly(path: path, reason: reason)
    case SQLITE_CORRUPT, SQLITE_NOTADB: return .damaged(path: path, reason: reason)
    case SQLITE_CANTOPEN, SQLITE_IOERR:
      if systemError != 0 { reason += ", " + String(cString: strerror(systemError)) }
      if let known = StoreError(systemError: systemError, path: path, reason: reason) { return known }
      return code & 0xFF == SQLITE_IOERR
        ? .inputOutput(path: path, reason: reason) : .cannotOpen(path: path, reason: reason)
    default: return .unexpected(path: path, code: code, reason: reason)
    }
  }
}

extension StoreError {
  /// Nil for errors of the system that say neither that there is no room nor that writing is not allowed.
  init?(systemError: Int32, path: String, reason: String) {
    switch systemError {
    case ENOSPC, EDQUOT: self = .full(path: path, reason: reason)
    case EROFS, EACCES, EPERM: self = .readOnly(path: path, reason: reason)
    default: return nil
    }
  }
}

/// One row of a result, valid until the next step.
struct Row {
  fileprivate let statement: OpaquePointer
  fileprivate let path: String

  func integer(_ column: Int32) -> Int64 { sqlite3_column_int64(statement, column) }
  func bits(_ column: Int32) -> UInt64 { UInt64(bitPattern: integer(column)) }
  func flag(_ column: Int32) -> Bool { integer(column) != 0 }

  func blob(_ column: Int32) -> [UInt8] { [UInt8](raw(column)) }

  func text(_ column: Int32) -> String {
    guard let start = sqlite3_column_text(statement, column) else { return "" }
    let count = Int(sqlite3_column_bytes(statement, column))
    return String(decoding: UnsafeBufferPointer(start: start, count: count), as: UTF8.self)
  }

  func key(_ column: Int32) throws(StoreError) -> Bytes32 {
    let bytes = raw(column)
    guard bytes.count == 32 else { throw damage("a key of \(bytes.count) bytes, 32 wanted") }
    func word(_ index: Int) -> UInt64 {
      UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: index * 8, as: UInt64.self))
    }
    return Bytes32(words: (word(0), word(1), word(2), word(3)))
  }

  func log(_ column: Int32) throws(StoreError) -> Instance {
    let bytes = raw(column)
    guard bytes.count == 8 else { throw damage("a log of \(bytes.count) bytes, 8 wanted") }
    return Instance(UInt64(bigEndian: bytes.loadUnaligned(as: UInt64.self)))
  }

  func messageID(_ column: Int32) throws(StoreError) -> MessageID {
    guard let id = MessageID(text(column)) else { throw damage("a message ID that breaks the rules") }
    return id
  }

  func damage(_ reason: String) -> StoreError { .damaged(path: path, reason: reason) }

  private func raw(_ column: Int32) -> UnsafeRawBufferPointer {
    let start = sqlite3_column_blob(statement, column)
    return UnsafeRawBufferPointer(start: start, count: Int(sqlite3_column_bytes(statement, column)))
  }
}
