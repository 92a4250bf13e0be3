import CSQLite
import ParleyVocabulary

/// An entry with messages that were found.
package struct FoundEntry: Sendable, Equatable {
  package let entry: StoredEntry
  /// Of the messages among those of the entry, falling.
  package internal(set) var places: [Int]
}

/// A search under way, a step at a time, so that writes can go in between: for the newest messages of the channel in
/// which every word of `text` occurs, newest first in its shared order. Words are what spaces part; each is found as it
/// stands (characters side by side), the last one also as the beginning of a longer one. Nothing in it is an operator.
/// Without a letter, digit or symbol it finds nothing.
package struct StoreSearch: Sendable {
  let channel: ChannelID
  /// Messages, not entries.
  let limit: Int
  let expression: String
  /// The newest so far, newest first after each step.
  private(set) var hits: [(order: OrderKey, row: UInt64)] = []
  /// What is older would be too many.
  private(set) var lamportMin: UInt64 = 0
  /// Rows from here on have been looked at.
  var before = UInt64(Int64.max)
  package internal(set) var isOver = false

  package init(_ text: String, in channel: ChannelID, limit: Int) {
    self.channel = channel
    self.limit = limit
    let words = text.unicodeScalars.split { $0.properties.isWhitespace }
      .map { SearchText(String($0), byteCountMax: Store.tokenByteCountMax) }.filter { !$0.tokens.isEmpty }
    // An FTS5 expression: a quoted phrase a word.
    expression =
      words.map { "\"\($0.tokens)\"" }.joined(separator: " AND ") + (words.last?.endsInWord == true ? " *" : "")
    isOver = words.isEmpty
  }

  mutating func add(_ order: OrderKey, row: UInt64) {
    hits.append((order, row))
    if hits.count >= 2 * limit { sort() }
  }

  /// Keeps the newest.
  mutating func sort() {
    hits.sort { ($0.order, $0.row) > ($1.order, $1.row) }
    guard hits.count >= limit else { return }
    hits.removeSubrange(limit...)
    lamportMin = hits.last?.order.lamport ?? 0
  }
}

/// Full-text search, by SQLite's FTS5 over texts that are cut into tokens here (`SearchText`): its own tokenizers find
/// neither 开会 nor 🎉. All that is left to it is to part tokens at spaces.
///
/// Entries are indexed behind their commit, in steps that others decide on; `search_state` holds how far, and changes
/// in the same transaction as the index. What was deleted cannot be found from that moment, and leaves the index in
/// the next steps: a trigger notes it. (Deleting there at once would make every delete as slow and as breakable as the
/// index, and SQLite up to 3.40 does not let triggers write to FTS5 while `trusted_schema` is off.)
///
/// Of a sealed store the index is in memory, in SQLite's temporary tables, which go before those of the file: made when
/// somebody first searches, kept up after, and gone with the process. An index of keyed hashes in the file would say
/// how often and in what order they occur, which for scripts of which each character is a token is a cipher that
/// children solve.
///
/// A row is a message: entry's cursor × 256 + place. The tokens are kept beside the index, since FTS5 deletes by them.
extension Store {
  /// Of one step, which nobody waits longer for than for a few commits.
  static let stepEntryCountMax = 200
  static let stepByteCountMax = 65_536
  /// Matches: 20 ms.
  static let searchStepCountMax = 16_384
  /// Of the tokens of one message; of ordinary text a message has 40,000 at most.
  static let tokenByteCountMax = 65_536

  /// Whether enough waits to be indexed or removed to be worth a commit, or something that was to be forgotten.
  package func isIndexingWorthwhile() throws(StoreError) -> Bool {
    guard readOnlyReason == nil else { return false }
    // In memory it is made for who searches.
    if isIndexInMemory, indexedCursor == 0 { return false }
    if isForgettingDue || lastCursor - indexedCursor >= UInt64(Self.stepEntryCountMax) { return true }
    let count = try database.first("SELECT count(*) FROM (SELECT 1 FROM search_removals LIMIT 200)") { $0.integer(0) }
    return count ?? 0 >= Self.stepEntryCountMax
  }

  static func readIndexState(_ database: Database) throws(StoreError) -> (indexed: UInt64, isForgettingDue: Bool) {
    let indexed = try database.first("SELECT indexed FROM search_state") { $0.bits(0) } ?? 0
    return (indexed, try database.first("SELECT 1 FROM search_removals") { _ in true } ?? false)
  }

  private var isIndexInMemory: Bool { cells.seal != nil }

  static func keepIndexInMemory(_ database: Database) throws(StoreError) {
    try database.script(
      """
      CREATE TEMP TABLE search_state (id INTEGER PRIMARY KEY CHECK (id = 1), indexed INTEGER NOT NULL) STRICT;
      INSERT INTO temp.search_state VALUES (1, 0);
      CREATE TEMP TABLE search_removals (cursor INTEGER PRIMARY KEY) STRICT;
      CREATE TEMP TRIGGER entries_gone AFTER DELETE ON main.entries
        WHEN old.hidden = 0 AND old.cursor <= (SELECT indexed FROM search_state)
        BEGIN INSERT INTO search_removals VALUES (old.cursor); END;
      """)
  }

  /// Whether something stored is not indexed, so that a search would miss it.
  package var isIndexBehind: Bool { (readOnlyReason == nil || isIndexInMemory) && indexedCursor < lastCursor }

  /// Brings the index a bounded step further, in one commit. `texts` gives what an entry says: the place of a message
  /// among those of the entry (0 to 255), and its text. It is not asked about hidden entries.
  ///
  /// `names` gives under which keys its messages are to be found; they are written down with it, if those before are.
  package func index(
    _ texts: (StoredEntry) -> [(place: Int, text: String)],
    names: (StoredEntry) -> StoredNames = { _ in StoredNames() }
  ) throws(StoreError) {
    let isRemoving = isForgettingDue
    let isNaming = keyedCursor >= indexedCursor && readOnlyReason == nil
    let (removedCount, through) = try repairing { () throws(StoreError) in
      try database.transaction { () throws(StoreError) in
        if indexedCursor == 0 { try makeIndex() }
        return (try removeSome(), try addSome(texts, names, isNaming: isNaming))
      }
    }
    indexedCursor = through
    if isNaming { keyedCursor = max(keyedCursor, through) }
    if isRemoving, removedCount < Self.stepEntryCountMax { isForgettingDue = false }
  }

  /// Returns the cursor up to which all is indexed then.
  private func addSome(
    _ texts: (StoredEntry) -> [(place: Int, text: String)], _ names: (StoredEntry) -> StoredNames, isNaming: Bool
  ) throws(StoreError) -> UInt64 {
    let (entries, through) = try someEntries(after: indexedCursor)
    for entry in entries {
      if isNaming, entry.cursor > keyedCursor { try put(names(entry), of: entry) }
      if entry.isHidden { continue }
      for (place, text) in texts(entry) {
        let tokens = SearchText(text, byteCountMax: Self.tokenByteCountMax).tokens
        guard !tokens.isEmpty, (0...255).contains(place) else { continue }
        try database.run(
          "INSERT INTO search (rowid, tokens) VALUES (?, ?)", .bits(entry.cursor << 8 | UInt64(place)), .text(tokens))
      }
    }
    if isNaming, through > keyedCursor { try writeKeyedCursor(through) }
    try database.run("UPDATE search_state SET indexed = ?", .bits(through))
    return through
  }

  /// A step's entries, and the cursor up to which that is all.
  func someEntries(after cursor: UInt64) throws(StoreError) -> (entries: [StoredEntry], through: UInt64) {
    let values: [Value] = [.bits(cursor), .integer(Int64(Self.stepEntryCountMax))]
    var byteCount = 0
    var entries: [StoredEntry] = []
    try database.each(
      """
      SELECT cursor, channel, author, instance, number, lamport, hidden, bytes FROM entries
      WHERE cursor > ? ORDER BY cursor LIMIT ?
      """, values
    ) { (row) throws(StoreError) in
      let entry = try self.entry(row)
      byteCount += entry.bytes.count
      guard entries.isEmpty || byteCount <= Self.stepByteCountMax else { return false }
      entries.append(entry)
      return true
    }
    // Cursors of peer messages and of deleted entries are passed over with those around them.
    let isAll = entries.count < Self.stepEntryCountMax && byteCount <= Self.stepByteCountMax
    return (entries, isAll ? lastCursor : entries.last!.cursor)
  }

  /// Not by a migration: a node that has little said keeps FTS5's code out of its memory. Tokens are cut and folded
  /// before; the tokenizer parts them at spaces, and takes every byte above 127 and these symbols for a part of one.
  /// Ranks are not wanted, so neither are sizes. Beginnings of one to three characters have lists of their own: without
  /// them each step of a search for a letter would put together the lists of all words that begin with it.
  private func makeIndex() throws(StoreError) {
    if isIndexInMemory {
      return try database.script(
        """
        CREATE VIRTUAL TABLE IF NOT EXISTS temp.search USING fts5(
          tokens, tokenize = "ascii tokenchars '#$+<=>^`|~'", prefix = '1 2 3', columnsize = 0);
        """)
    }
    try database.script(
      """
      CREATE VIRTUAL TABLE IF NOT EXISTS search USING fts5(
        tokens, tokenize = "ascii tokenchars '#$+<=>^`|~'", prefix = '1 2 3', columnsize = 0);
      """)
  }

  private func removeSome() throws(StoreError) -> Int {
    let cursors = try database.rows(
      "SELECT cursor FROM search_removals ORDER BY cursor LIMIT ?", .integer(Int64(Self.stepEntryCountMax))
    ) { $0.bits(0) }
    for cursor in cursors {
      try database.run(
        "DELETE FROM search WHERE rowid BETWEEN ? AND ?", .bits(cursor << 8), .bits(cursor << 8 | 0xFF))
    }
    if let last = cursors.last { try database.run("DELETE FROM search_removals WHERE cursor <= ?", .bits(last)) }
    return cursors.count
  }

  /// Looks at a bounded number of further matches among what is indexed.
  package func goOn(_ search: inout StoreSearch, matchCountMax: Int = searchStepCountMax) throws(StoreError) {
    guard let channel = try row(of: search.channel), search.limit > 0, indexedCursor > 0 else {
      search.isOver = true
      return
    }
    let values: [Value] = [.text(search.expression), .bits(search.before), .integer(channel)]
    search = try repairing { () throws(StoreError) in
      var next = search
      var matchCount = 0
      // Of matches in other channels FTS5 knows no better: they count too, or a step could be as long as the index.
      try database.each(
        """
        SELECT search.rowid, e.channel = ?3, e.lamport, e.author, e.instance, e.number
        FROM search CROSS JOIN entries AS e ON e.cursor = search.rowid >> 8
        WHERE search MATCH ?1 AND search.rowid < ?2 ORDER BY search.rowid DESC
        """, values
      ) { (row) throws(StoreError) in
        matchCount += 1
        next.before = row.bits(0)
        if row.flag(1), row.bits(2) >= next.lamportMin {
          next.add(
            OrderKey(
              lamport: row.bits(2), author: PeerID(try row.key(3)), log: try row.log(4), number: row.bits(5)),
            row: row.bits(0))
        }
        return matchCount < matchCountMax
      }
      next.sort()
      next.isOver = matchCount < matchCountMax
      return next
    }
  }

  /// What a search has found, newest first; all of it once it is over.
  package func found(_ search: StoreSearch) throws(StoreError) -> [FoundEntry] {
    var entries: [FoundEntry] = []
    for hit in search.hits {
      let place = Int(hit.row & 0xFF)
      if entries.last?.entry.cursor == hit.row >> 8 {
        entries[entries.count - 1].places.append(place)
        continue
      }
      let entry = try database.first(
        """
        SELECT cursor, channel, author, instance, number, lamport, hidden, bytes FROM entries WHERE cursor = ?
        """, .bits(hit.row >> 8), read: self.entry)
      if let entry { entries.append(FoundEntry(entry: entry, places: [place])) }
    }
    return entries
  }

  /// A damaged index is built anew from the tokens beside it, which takes a second for 100,000 messages; no message
  /// depends on it.
  func repairing<T>(_ body: () throws(StoreError) -> T) throws(StoreError) -> T {
    do throws(StoreError) {
      return try body()
    } catch {
      switch error {
      case .damaged: break
      // Parts of the index that do not fit together. What else is unexpected (no memory, too large) says nothing of it.
      case .unexpected(_, let code, _) where code & 0xFF == SQLITE_CONSTRAINT: break
      default: throw error
      }
      try database.transaction { () throws(StoreError) in
        // First as FTS5 leaves them when it makes an index: without a sound record 10 it can neither open nor drop it.
        try database.run("DELETE FROM search_data")
        try database.run("DELETE FROM search_idx")
        try database.run("INSERT INTO search_data VALUES (1, x''), (10, x'00000000000000')")
        try database.run("INSERT INTO search (search) VALUES ('rebuild')")
      }
      return try body()
    }
  }
}
