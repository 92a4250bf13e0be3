import ParleyVocabulary

/// Which log of which channel.
struct LogPlace: Hashable {
  var channel: Int64
  var key: LogKey
}

/// What the `logs` table says of one log.
struct LogHead {
  var row: Int64
  /// What was up to here is gone, but for the last hidden entry.
  var floor: UInt64
  /// Never below `floor`.
  var contiguous: UInt64
  var beyondCount: UInt64
  var lamportMax: UInt64
  /// The number of the last hidden entry that says how things stand; 0 for none.
  var lastHidden: UInt64

  /// Entries above the floor that are on disk.
  var keptCount: UInt64 { contiguous - floor + beyondCount }
}

// Writing.
extension Store {
  func add(_ entry: StoredEntry) throws(StoreError) -> UInt64 {
    let number = try Self.counter(entry.number, field: "number", min: 1)
    let lamport = try Self.counter(entry.lamport, field: "lamport")
    let channel = try rowMade(for: entry.channel)
    let place = LogPlace(channel: channel, key: entry.key)
    var head = try headMade(for: place)
    // Also what was stored once and was pruned.
    if entry.number <= head.contiguous { return 0 }
    let cursor = lastCursor + 1
    try database.run(
      """
      INSERT INTO entries (cursor, log, number, lamport, hidden, stored_at, channel, author, instance, bytes)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (log, number) DO NOTHING
      """,
      .bits(cursor), .integer(head.row), number, lamport, .integer(entry.isKept ? 2 : entry.isHidden ? 1 : 0),
      .integer(batchAge), .integer(channel), .key(entry.key.author.value), .log(entry.key.log),
      cells.blob(entry.bytes, .entry(entry.channel, entry.key, entry.number)))
    guard database.changeCount > 0 else { return 0 }
    lastCursor = cursor
    if !entry.acts.isEmpty { try put(entry.acts, of: cursor, channel) }
    try advance(&head, past: entry.number)
    head.lamportMax = max(head.lamportMax, entry.lamport)
    if entry.isHidden, entry.isStanding { head.lastHidden = max(head.lastHidden, entry.number) }
    update(place, head)
    return cursor
  }

  func update(_ place: LogPlace, _ head: LogHead) {
    if let before = heads[place] { entryCounts[place.channel]? += Int(head.keptCount) - Int(before.keptCount) }
    heads[place] = head
    changedHeads.insert(place)
  }

  private func advance(_ head: inout LogHead, past number: UInt64) throws(StoreError) {
    guard number == head.contiguous + 1 else {
      head.beyondCount += 1
      return
    }
    head.contiguous = number
    try goOn(&head)
  }

  /// Takes in what is stored right after `contiguous`.
  func goOn(_ head: inout LogHead) throws(StoreError) {
    guard head.beyondCount > 0 else { return }
    var contiguous = head.contiguous
    var beyondCount = head.beyondCount
    let values: [Value] = [.integer(head.row), .bits(contiguous)]
    try database.each("SELECT number FROM entries WHERE log = ? AND number > ? ORDER BY number", values) { row in
      guard row.bits(0) == contiguous + 1 else { return false }
      contiguous += 1
      beyondCount -= beyondCount > 0 ? 1 : 0
      return true
    }
    head.contiguous = contiguous
    head.beyondCount = beyondCount
  }

  func headMade(for place: LogPlace) throws(StoreError) -> LogHead {
    if let head = try head(of: place) { return head }
    try database.run(
      """
      INSERT INTO logs (channel, author, instance, contiguous, beyond, lamport_max, last_hidden)
      VALUES (?, ?, ?, 0, 0, 0, 0)
      """, .integer(place.channel), .key(place.key.author.value), .log(place.key.log))
    let head = LogHead(row: database.lastRow, floor: 0, contiguous: 0, beyondCount: 0, lamportMax: 0, lastHidden: 0)
    heads[place] = head
    return head
  }

  func head(of place: LogPlace) throws(StoreError) -> LogHead? {
    if let head = heads[place] { return head }
    let head = try database.first(
      """
      SELECT id, floor, contiguous, beyond, lamport_max, last_hidden FROM logs
      WHERE channel = ? AND author = ? AND instance = ?
      """, .integer(place.channel), .key(place.key.author.value), .log(place.key.log)
    ) { row in
      LogHead(
        row: row.integer(0), floor: row.bits(1), contiguous: row.bits(2), beyondCount: row.bits(3),
        lamportMax: row.bits(4), lastHidden: row.bits(5))
    }
    if let head { heads[place] = head }
    return head
  }

  /// Once a batch and log, not once an entry.
  func writeHeads() throws(StoreError) {
    for place in changedHeads {
      guard let head = heads[place] else { preconditionFailure("a changed head stays in memory until it is written") }
      try database.run(
        "UPDATE logs SET floor = ?, contiguous = ?, beyond = ?, lamport_max = ?, last_hidden = ? WHERE id = ?",
        .bits(head.floor), .bits(head.contiguous), .bits(head.beyondCount), .bits(head.lamportMax),
        .bits(head.lastHidden), .integer(head.row))
    }
    changedHeads = []
  }
}

// Reading.
extension Store {
  /// Every log of the channel, by author and log. Costs what it returns, however many entries there are.
  package func logs(in channel: ChannelID) throws(StoreError) -> [StoredLog] {
    guard let row = try row(of: channel) else { return [] }
    let found = try database.rows(
      "SELECT id, author, instance, floor, contiguous, beyond FROM logs WHERE channel = ? ORDER BY author, instance",
      .integer(row)
    ) { (row) throws(StoreError) in
      (
        row: row.integer(0), beyondCount: row.bits(5),
        log: StoredLog(
          key: LogKey(author: PeerID(try row.key(1)), log: try row.log(2)), floor: row.bits(3),
          contiguous: row.bits(4))
      )
    }
    var logs: [StoredLog] = []
    for var item in found {
      if item.beyondCount > 0 { item.log.beyond = try numbers(ofLog: item.row, above: item.log.contiguous) }
      logs.append(item.log)
    }
    return logs
  }

  private func numbers(ofLog log: Int64, above contiguous: UInt64) throws(StoreError) -> RangeSet<UInt64> {
    var numbers = RangeSet<UInt64>()
    var run: Range<UInt64>?
    let values: [Value] = [.integer(log), .bits(contiguous)]
    try database.each("SELECT number FROM entries WHERE log = ? AND number > ? ORDER BY number", values) { row in
      let number = row.bits(0)
      if let last = run, last.upperBound == number {
        run = last.lowerBound..<number + 1
      } else {
        if let last = run { numbers.insert(contentsOf: last) }
        run = number..<number + 1
      }
      return true
    }
    if let run { numbers.insert(contentsOf: run) }
    return numbers
  }

  /// The highest Lamport time of each log of the channel, and whose it is.
  package func lamportMaxima(in channel: ChannelID) throws(StoreError) -> [(author: PeerID, lamport: UInt64)] {
    guard let row = try row(of: channel) else { return [] }
    return try database.rows("SELECT author, lamport_max FROM logs WHERE channel = ?", .integer(row)) {
      (row) throws(StoreError) in (author: PeerID(try row.key(0)), lamport: row.bits(1))
    }
  }

  /// The highest Lamport time stored in the channel, whoever said it; 0 when there is no entry.
  package func lamportMax(in channel: ChannelID) throws(StoreError) -> UInt64 {
    guard let row = try row(of: channel) else { return 0 }
    return try database.first("SELECT max(lamport_max) FROM logs WHERE channel = ?", .integer(row)) { $0.bits(0) } ?? 0
  }

  /// Visible and hidden ones, above the floors of their logs. Costs nothing but the first time.
  package func entryCount(in channel: ChannelID) throws(StoreError) -> Int {
    guard let row = try row(of: channel) else { return 0 }
    if let count = entryCounts[row] { return count }
    let count =
      try database.first("SELECT sum(contiguous - floor + beyond) FROM logs WHERE channel = ?", .integer(row)) {
        Int($0.integer(0))
      } ?? 0
    entryCounts[row] = count
    return count
  }

  /// One log's entries with numbers in `from...through`, rising, until their bytes would exceed `byteCountMax`; the
  /// first comes whatever its size.
  package func entries(
    in channel: ChannelID, key: LogKey, from: UInt64, through: UInt64, byteCountMax: Int
  ) throws(StoreError) -> [StoredEntry] {
    guard let row = try row(of: channel), let head = try head(of: LogPlace(channel: row, key: key)) else { return [] }
    var found: [StoredEntry] = []
    var budget = byteCountMax
    let values: [Value] = [.integer(head.row), .clamped(from), .clamped(through)]
    try database.each(
      """
      SELECT cursor, channel, author, instance, number, lamport, hidden, bytes FROM entries
      WHERE log = ? AND number BETWEEN ? AND ? ORDER BY number
      """, values
    ) { (row) throws(StoreError) in
      let entry = try self.entry(row)
      guard found.isEmpty || entry.bytes.count <= budget else { return false }
      budget -= min(budget, entry.bytes.count)
      found.append(entry)
      return true
    }
    return found
  }

  /// The visible entries right before a place in the channel's order (the last ones, for nil), falling.
  package func entriesBefore(
    _ order: OrderKey?, in channel: ChannelID, limit: Int
  ) throws(StoreError) -> [StoredEntry] {
    guard let row = try row(of: channel) else { return [] }
    guard let order else {
      return try database.rows(
        """
        SELECT cursor, channel, author, instance, number, lamport, hidden, bytes FROM entries
        WHERE channel = ? AND hidden = 0
        ORDER BY lamport DESC, author DESC, instance DESC, number DESC LIMIT ?
        """, .integer(row), .clamped(max(0, limit)), read: entry)
    }
    return try database.rows(
      """
      SELECT cursor, channel, author, instance, number, lamport, hidden, bytes FROM entries
      WHERE channel = ? AND hidden = 0 AND (lamport, author, instance, number) < (?, ?, ?, ?)
      ORDER BY lamport DESC, author DESC, instance DESC, number DESC LIMIT ?
      """, .integer(row), .clamped(order.lamport), .key(order.author.value), .log(order.log), .clamped(order.number),
      .clamped(max(0, limit)), read: entry)
  }

  /// Entries stored after `cursor`, hidden ones too, by cursor; of one channel or of all.
  package func entriesAfter(
    cursor: UInt64, in channel: ChannelID?, limit: Int
  ) throws(StoreError) -> [StoredEntry] {
    guard let channel else {
      return try database.rows(
        """
        SELECT cursor, channel, author, instance, number, lamport, hidden, bytes FROM entries
        WHERE cursor > ? ORDER BY cursor LIMIT ?
        """, .clamped(cursor), .clamped(max(0, limit)), read: entry)
    }
    guard let row = try row(of: channel) else { return [] }
    return try database.rows(
      """
      SELECT cursor, channel, author, instance, number, lamport, hidden, bytes FROM entries
      WHERE channel = ? AND cursor > ? ORDER BY cursor LIMIT ?
      """, .integer(row), .clamped(cursor), .clamped(max(0, limit)), read: entry)
  }

  /// Those that are never too old, stored after `cursor`, by cursor.
  package func keptEntries(
    in channel: ChannelID, after cursor: UInt64, limit: Int
  ) throws(StoreError) -> [StoredEntry] {
    guard let row = try row(of: channel) else { return [] }
    return try database.rows(
      """
      SELECT cursor, channel, author, instance, number, lamport, hidden, bytes FROM entries
      WHERE channel = ? AND cursor > ? AND hidden = 2 ORDER BY cursor LIMIT ?
      """, .integer(row), .clamped(cursor), .clamped(max(0, limit)), read: entry)
  }

  /// Hidden entries of one log before a number, falling.
  package func hiddenEntries(
    in channel: ChannelID, of key: LogKey, before number: UInt64, limit: Int
  ) throws(StoreError) -> [StoredEntry] {
    guard let row = try row(of: channel), let head = try head(of: LogPlace(channel: row, key: key)) else { return [] }
    return try database.rows(
      """
      SELECT cursor, channel, author, instance, number, lamport, hidden, bytes FROM entries
      WHERE log = ? AND number < ? AND hidden <> 0 ORDER BY number DESC LIMIT ?
      """, .integer(head.row), .clamped(number), .clamped(max(0, limit)), read: entry)
  }

  /// An author's logs and how far each goes without a gap, but not beyond the first entry whose Lamport time is above
  /// `lamportMax`.
  package func heads(
    of author: PeerID, in channel: ChannelID, lamportMax: UInt64
  ) throws(StoreError) -> [Instance: UInt64] {
    guard let row = try row(of: channel) else { return [:] }
    try writeHeads()
    let logs = try database.rows(
      "SELECT id, instance, contiguous, lamport_max FROM logs WHERE channel = ? AND author = ?", .integer(row),
      .key(author.value)
    ) { (row) throws(StoreError) in
      (row: row.integer(0), log: try row.log(1), contiguous: row.bits(2), lamportMax: row.bits(3))
    }
    var heads: [Instance: UInt64] = [:]
    for log in logs {
      var number = log.contiguous
      if log.lamportMax > lamportMax {
        let first = try database.first(
          "SELECT min(number) FROM entries WHERE log = ? AND lamport > ?", .integer(log.row), .clamped(lamportMax)
        ) { $0.bits(0) }
        // 0 where there is none.
        if let first, first > 0 { number = min(number, first - 1) }
      }
      heads[log.log] = number
    }
    return heads
  }

  /// Of each log its hidden entry with the highest number, by author and log.
  package func lastHiddenEntries(in channel: ChannelID) throws(StoreError) -> [StoredEntry] {
    guard let row = try row(of: channel) else { return [] }
    return try database.rows(
      """
      SELECT e.cursor, e.channel, e.author, e.instance, e.number, e.lamport, e.hidden, e.bytes
      FROM logs JOIN entries AS e ON e.log = logs.id AND e.number = logs.last_hidden
      WHERE logs.channel = ? ORDER BY logs.author, logs.instance
      """, .integer(row), read: entry)
  }

  func entry(_ row: Row) throws(StoreError) -> StoredEntry {
    let channel = try channel(row: row.integer(1))
    let key = LogKey(author: PeerID(try row.key(2)), log: try row.log(3))
    let number = row.bits(4)
    return StoredEntry(
      channel: channel, key: key, number: number, lamport: row.bits(5), isHidden: row.flag(6),
      isKept: row.integer(6) == 2, bytes: cells.bytes(row.blob(7), .entry(channel, key, number)), cursor: row.bits(0))
  }
}
