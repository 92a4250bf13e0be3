import ParleyVocabulary

/// That an entry does something to a message, whether that is here or not.
package struct StoredAct: Sendable, Equatable {
  /// 16 bytes that stand for the message's key; the store does not know how they are made.
  package var target: [UInt8]
  package var kind: UInt64
  /// Milliseconds since 1970, as signed.
  package var timestamp: UInt64

  package init(target: [UInt8], kind: UInt64, timestamp: UInt64) {
    precondition(target.count == 16, "16 bytes stand for a key")
    self.target = target
    self.kind = kind
    self.timestamp = timestamp
  }
}

/// Under what an entry's messages are found, and what it does to others.
package struct StoredNames: Sendable, Equatable {
  /// `key`: 16 bytes; `place`: among the messages of the entry, 0 to 255.
  package var messages: [(place: Int, key: [UInt8])] = []
  package var acts: [StoredAct] = []
  package init() {}

  package static func == (a: Self, b: Self) -> Bool {
    a.acts == b.acts && a.messages.elementsEqual(b.messages) { $0.place == $1.place && $0.key == $1.key }
  }
}

/// An act of which nothing need be known but who did it, where and when.
package struct StoredActPlace: Sendable, Equatable {
  package var order: OrderKey
  /// Milliseconds since 1970, as signed.
  package var timestamp: UInt64
}

// What is done to messages, and where messages are.
//
// `acts` is written in the transaction that stores the entry: it is asked before anything of the message is shown.
// `message_keys` is filled behind the commits, with the search index where there is one in the file; what is not in it
// yet lies after `keyedCursor`. Neither holds anything sealed: 16 bytes of a hash say nothing of what was said, and of
// an ID only to whoever guesses it whole. Both are made anew from the entries when a damaged store is salvaged.
extension Store {
  func put(_ acts: [StoredAct], of cursor: UInt64, _ channel: Int64) throws(StoreError) {
    for act in acts {
      try database.run(
        "INSERT INTO acts (channel, target, cursor, kind, at) VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
        .integer(channel), .blob(act.target), .bits(cursor), .bits(act.kind), .bits(act.timestamp))
    }
  }

  /// Acts too: an earlier version may have stored the entry without knowing what it is.
  func put(_ names: StoredNames, of entry: StoredEntry) throws(StoreError) {
    if names.messages.isEmpty, names.acts.isEmpty { return }
    let channel = try rowMade(for: entry.channel)
    for (place, key) in names.messages where (0...255).contains(place) {
      try database.run(
        "INSERT INTO message_keys (place, channel, key) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
        .bits(entry.cursor << 8 | UInt64(place)), .integer(channel), .blob(key))
    }
    try put(names.acts, of: entry.cursor, channel)
  }

  static func readKeyedCursor(_ database: Database) throws(StoreError) -> UInt64 {
    try database.first("SELECT keyed FROM key_state") { $0.bits(0) } ?? 0
  }

  func writeKeyedCursor(_ cursor: UInt64) throws(StoreError) {
    try database.run("UPDATE key_state SET keyed = ?", .bits(cursor))
  }

  /// Whether enough messages wait for their keys to be worth a commit.
  package var isNamingWorthwhile: Bool {
    readOnlyReason == nil && lastCursor - keyedCursor >= UInt64(Self.stepEntryCountMax)
  }

  /// Brings `message_keys` a bounded step further, in one commit.
  package func name(_ names: (StoredEntry) -> StoredNames) throws(StoreError) {
    if let readOnlyReason { throw .readOnly(path: database.path, reason: readOnlyReason) }
    keyedCursor = try database.transaction { () throws(StoreError) in
      let (entries, through) = try someEntries(after: keyedCursor)
      for entry in entries { try put(names(entry), of: entry) }
      try writeKeyedCursor(through)
      return through
    }
  }

  // MARK: Reading

  package func hasActs(in channel: ChannelID) throws(StoreError) -> Bool {
    guard let row = try row(of: channel) else { return false }
    return try database.first("SELECT 1 FROM acts WHERE channel = ? LIMIT 1", .integer(row)) { _ in true } ?? false
  }

  /// Entries that do something else than `kind` to a message, by cursor.
  package func actEntries(
    on target: [UInt8], in channel: ChannelID, butOf kind: UInt64
  ) throws(StoreError) -> [StoredEntry] {
    guard let row = try row(of: channel) else { return [] }
    return try database.rows(
      """
      SELECT cursor, channel, author, instance, number, lamport, hidden, bytes FROM entries WHERE cursor IN (
        SELECT cursor FROM acts WHERE channel = ? AND target = ? AND kind <> ?) ORDER BY cursor
      """, .integer(row), .blob(target), .bits(kind), read: entry)
  }

  /// Acts of one kind on a message, without reading their entries.
  package func acts(
    of kind: UInt64, on target: [UInt8], in channel: ChannelID
  ) throws(StoreError) -> [StoredActPlace] {
    guard let row = try row(of: channel) else { return [] }
    return try database.rows(
      """
      SELECT e.lamport, e.author, e.instance, e.number, a.at FROM acts AS a JOIN entries AS e ON e.cursor = a.cursor
      WHERE a.channel = ? AND a.target = ? AND a.kind = ? ORDER BY a.cursor
      """, .integer(row), .blob(target), .bits(kind)
    ) { (row) throws(StoreError) in
      StoredActPlace(
        order: OrderKey(
          lamport: row.bits(0), author: PeerID(try row.key(1)), log: try row.log(2), number: row.bits(3)),
        timestamp: row.bits(4))
    }
  }

  /// Entries of the channel with acts of one kind, by cursor.
  package func actEntries(of kind: UInt64, in channel: ChannelID) throws(StoreError) -> [StoredEntry] {
    guard let row = try row(of: channel) else { return [] }
    return try database.rows(
      """
      SELECT cursor, channel, author, instance, number, lamport, hidden, bytes FROM entries WHERE cursor IN (
        SELECT cursor FROM acts WHERE channel = ? AND kind = ?) ORDER BY cursor
      """, .integer(row), .bits(kind), read: entry)
  }

  /// Entries with acts on messages that are not in `message_keys`, by cursor, at most so many.
  package func entriesActingOnUnnamed(in channel: ChannelID, limit: Int) throws(StoreError) -> [StoredEntry] {
    guard let row = try row(of: channel) else { return [] }
    return try database.rows(
      """
      SELECT cursor, channel, author, instance, number, lamport, hidden, bytes FROM entries WHERE cursor IN (
        SELECT a.cursor FROM acts AS a WHERE a.channel = ?1 AND NOT EXISTS (
          SELECT 1 FROM message_keys AS k WHERE k.channel = ?1 AND k.key = a.target)) ORDER BY cursor LIMIT ?2
      """, .integer(row), .clamped(limit), read: entry)
  }

  /// Where messages with this key are, as far as they have been named.
  package func entries(
    named key: [UInt8], in channel: ChannelID
  ) throws(StoreError) -> [(entry: StoredEntry, place: Int)] {
    guard let row = try row(of: channel) else { return [] }
    let places = try database.rows(
      "SELECT place FROM message_keys WHERE channel = ? AND key = ? ORDER BY place", .integer(row), .blob(key)
    ) { $0.bits(0) }
    var found: [(entry: StoredEntry, place: Int)] = []
    for place in places {
      let entry = try database.first(
        """
        SELECT cursor, channel, author, instance, number, lamport, hidden, bytes FROM entries WHERE cursor = ?
        """, .bits(place >> 8), read: self.entry)
      if let entry { found.append((entry, Int(place & 0xFF))) }
    }
    return found
  }

  /// Visible entries of one author that have not been named yet, by cursor.
  package func unnamedEntries(of author: PeerID, in channel: ChannelID) throws(StoreError) -> [StoredEntry] {
    guard let row = try row(of: channel) else { return [] }
    return try database.rows(
      """
      SELECT cursor, channel, author, instance, number, lamport, hidden, bytes FROM entries
      WHERE channel = ? AND cursor > ? AND author = ? AND hidden = 0 ORDER BY cursor
      """, .integer(row), .bits(keyedCursor), .key(author.value), read: entry)
  }

  /// Entries of one log before a number, falling, hidden ones too.
  package func entries(
    in channel: ChannelID, of key: LogKey, before number: UInt64, limit: Int
  ) throws(StoreError) -> [StoredEntry] {
    guard let row = try row(of: channel), let head = try head(of: LogPlace(channel: row, key: key)) else { return [] }
    return try database.rows(
      """
      SELECT cursor, channel, author, instance, number, lamport, hidden, bytes FROM entries
      WHERE log = ? AND number < ? ORDER BY number DESC LIMIT ?
      """, .integer(head.row), .clamped(number), .clamped(limit), read: entry)
  }
}
