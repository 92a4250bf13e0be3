import ParleyVocabulary

/// What stands in a channel's history.
package enum HistoryItem: Sendable, Equatable {
  case entry(StoredEntry)
  case localMessage(StoredLocalMessage)

  package var order: OrderKey {
    switch self {
    case .entry(let entry): entry.order
    case .localMessage(let message): message.order
    }
  }
}

// Messages that are no entries.
extension Store {
  func add(_ message: StoredLocalMessage) throws(StoreError) -> UInt64 {
    let lamport = try Self.counter(message.lamport, field: "lamport")
    let kind = try Self.counter(message.kind, field: "kind")
    let cursor = lastCursor + 1
    try database.run(
      """
      INSERT INTO local_messages (cursor, channel, author, id, lamport, kind, stored_at, json)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (channel, author, id) DO NOTHING
      """, .bits(cursor), .integer(try rowMade(for: message.channel)), .key(message.author.value),
      .text(message.id.text), lamport, kind, .integer(batchAge),
      cells.blob(message.json, .localMessage(message.channel, message.author, message.id)))
    guard database.changeCount > 0 else { return 0 }
    lastCursor = cursor
    return cursor
  }

  /// The visible entries and the messages that are none right before a place in the channel's order (the last ones, for
  /// nil), falling.
  package func historyBefore(
    _ order: OrderKey?, in channel: ChannelID, limit: Int
  ) throws(StoreError) -> [HistoryItem] {
    let entries = try entriesBefore(order, in: channel, limit: limit).map { HistoryItem.entry($0) }
    let locals = try localMessagesBefore(order, in: channel, limit: limit).map { HistoryItem.localMessage($0) }
    if locals.isEmpty { return entries }
    return Array((entries + locals).sorted { $1.order < $0.order }.prefix(max(0, limit)))
  }

  /// What was given this cursor in the channel, unless it is hidden or gone.
  package func historyItem(at cursor: UInt64, in channel: ChannelID) throws(StoreError) -> HistoryItem? {
    guard cursor > 0, let row = try row(of: channel) else { return nil }
    if let entry = try entriesAfter(cursor: cursor - 1, in: channel, limit: 1).first, entry.cursor == cursor {
      return entry.isHidden ? nil : .entry(entry)
    }
    return try database.rows(
      """
      SELECT cursor, channel, author, id, lamport, kind, json FROM local_messages WHERE cursor = ? AND channel = ?
      """, .bits(cursor), .integer(row), read: localMessage
    ).first.map { .localMessage($0) }
  }

  private func localMessagesBefore(
    _ order: OrderKey?, in channel: ChannelID, limit: Int
  ) throws(StoreError) -> [StoredLocalMessage] {
    guard let row = try row(of: channel) else { return [] }
    guard let order else {
      return try database.rows(
        """
        SELECT cursor, channel, author, id, lamport, kind, json FROM local_messages WHERE channel = ?
        ORDER BY lamport DESC, author DESC, cursor DESC LIMIT ?
        """, .integer(row), .clamped(max(0, limit)), read: localMessage)
    }
    // Before the place of an entry is all of its author's time: a log stands before what is none.
    let cursor = order.log == Instance(.max) ? order.number : 0
    return try database.rows(
      """
      SELECT cursor, channel, author, id, lamport, kind, json FROM local_messages
      WHERE channel = ? AND (lamport, author, cursor) < (?, ?, ?)
      ORDER BY lamport DESC, author DESC, cursor DESC LIMIT ?
      """, .integer(row), .clamped(order.lamport), .key(order.author.value), .clamped(cursor),
      .clamped(max(0, limit)), read: localMessage)
  }

  func localMessage(_ row: Row) throws(StoreError) -> StoredLocalMessage {
    let (channel, author, id) = (
      try channel(row: row.integer(1)), PeerID(try row.key(2)), try row.messageID(3)
    )
    return StoredLocalMessage(
      channel: channel, author: author, id: id, lamport: row.bits(4), kind: row.bits(5),
      json: cells.bytes(row.blob(6), .localMessage(channel, author, id)), cursor: row.bits(0))
  }

  /// For whom something with this ID waits.
  package func waitingPeers(of id: MessageID) throws(StoreError) -> Set<PeerID> {
    Set(
      try database.rows("SELECT peer FROM outbox WHERE id = ?", .text(id.text)) { (row) throws(StoreError) in
        PeerID(try row.key(0))
      })
  }

  /// Those that are too old, and the first in order of what is too many; at most so many.
  func pruneLocalMessages(
    _ channel: Int64, before cutoff: Int64, keeping count: Int, countMax: Int
  ) throws(StoreError) -> Int {
    try database.run(
      """
      DELETE FROM local_messages WHERE cursor IN (
        SELECT cursor FROM local_messages WHERE channel = ?1 AND stored_at < ?2
        UNION
        SELECT cursor FROM (
          SELECT cursor FROM local_messages WHERE channel = ?1
          ORDER BY lamport DESC, author DESC, cursor DESC LIMIT -1 OFFSET ?3)
        LIMIT ?4)
      """, .integer(channel), .integer(cutoff), .integer(Int64(count)), .integer(Int64(countMax)))
    return database.changeCount
  }
}
