import ParleyVocabulary

/// What people may read, in the order in which it was stored, which is the order in which it was told.
package struct StoredPage: Sendable {
  package enum Item: Sendable, Equatable {
    case entry(StoredEntry)
    case peerMessage(StoredPeerMessage)
    case localMessage(StoredLocalMessage)

    package var cursor: UInt64 {
      switch self {
      case .entry(let entry): entry.cursor
      case .peerMessage(let message): message.cursor
      case .localMessage(let message): message.cursor
      }
    }
  }

  /// By cursor.
  package var items: [Item]
  /// Whatever else has a cursor up to this one was not asked for: the next page begins after it.
  package var through: UInt64
  /// Nothing more was stored when this was read.
  package var isLast: Bool
}

extension Store {
  /// Rows looked at for one page: what is asked for may be far between.
  private static let pageRowCountMax = 1_024

  /// Entries of these channels that are visible or do something to messages, and with `peerMessages` messages between
  /// two people, with cursors above `cursor`, until their bytes would exceed `byteCountMax`; the first comes whatever
  /// its size.
  package func page(
    after cursor: UInt64, in channels: Set<ChannelID>, peerMessages: Bool, byteCountMax: Int
  ) throws(StoreError) -> StoredPage {
    var page = try entryPage(after: cursor, in: channels, byteCountMax)
    var others = [try localPage(after: cursor, in: channels, byteCountMax)]
    if peerMessages { others.append(try peerPage(after: cursor, byteCountMax)) }
    for other in others {
      page.through = min(page.through, other.through)
      page.isLast = page.isLast && other.isLast
      page.items += other.items
    }
    page.items = page.items.filter { $0.cursor <= page.through }.sorted { $0.cursor < $1.cursor }
    return page
  }

  private func entryPage(
    after cursor: UInt64, in channels: Set<ChannelID>, _ byteCountMax: Int
  ) throws(StoreError) -> StoredPage {
    var page = StoredPage(items: [], through: max(cursor, lastCursor), isLast: true)
    if channels.isEmpty { return page }
    var left = byteCountMax
    var rowCount = 0
    var seen = cursor
    func take(_ row: Row) throws(StoreError) -> Bool {
      rowCount += 1
      // Before the bytes are read, which is the greater part of a row.
      if channels.contains(try channel(row: row.integer(1))) {
        let entry = try entry(row)
        guard page.items.isEmpty || entry.bytes.count <= left else {
          page.isLast = false
          return false
        }
        left -= min(left, entry.bytes.count)
        page.items.append(.entry(entry))
      }
      seen = row.bits(0)
      return true
    }
    let limit = Value.clamped(Self.pageRowCountMax)
    if channels.count == 1 {
      guard let row = try row(of: channels.first!) else { return page }
      try database.each(
        """
        SELECT cursor, channel, author, instance, number, lamport, hidden, bytes FROM entries
        WHERE channel = ? AND cursor > ?
          AND (hidden = 0 OR EXISTS (SELECT 1 FROM acts WHERE acts.cursor = entries.cursor))
        ORDER BY cursor LIMIT ?
        """, [.integer(row), .clamped(cursor), limit], take)
    } else {
      try database.each(
        """
        SELECT cursor, channel, author, instance, number, lamport, hidden, bytes FROM entries
        WHERE cursor > ?
          AND (hidden = 0 OR EXISTS (SELECT 1 FROM acts WHERE acts.cursor = entries.cursor))
        ORDER BY cursor LIMIT ?
        """, [.clamped(cursor), limit], take)
    }
    if rowCount == Self.pageRowCountMax { page.isLast = false }
    if !page.isLast { page.through = seen }
    return page
  }

  private func localPage(
    after cursor: UInt64, in channels: Set<ChannelID>, _ byteCountMax: Int
  ) throws(StoreError) -> StoredPage {
    var page = StoredPage(items: [], through: max(cursor, lastCursor), isLast: true)
    var (left, rowCount, seen) = (byteCountMax, 0, cursor)
    try database.each(
      """
      SELECT cursor, channel, author, id, lamport, kind, json FROM local_messages
      WHERE cursor > ? ORDER BY cursor LIMIT ?
      """, [.clamped(cursor), .clamped(Self.pageRowCountMax)]
    ) { (row) throws(StoreError) in
      rowCount += 1
      if channels.contains(try self.channel(row: row.integer(1))) {
        let message = try self.localMessage(row)
        guard page.items.isEmpty || message.json.count <= left else {
          page.isLast = false
          return false
        }
        left -= min(left, message.json.count)
        page.items.append(.localMessage(message))
      }
      seen = row.bits(0)
      return true
    }
    if rowCount == Self.pageRowCountMax { page.isLast = false }
    if !page.isLast { page.through = seen }
    return page
  }

  private func peerPage(after cursor: UInt64, _ byteCountMax: Int) throws(StoreError) -> StoredPage {
    var page = StoredPage(items: [], through: max(cursor, lastCursor), isLast: true)
    var left = byteCountMax
    try database.each(
      "SELECT cursor, peer, own, id, json FROM peer_messages WHERE cursor > ? ORDER BY cursor LIMIT ?",
      [.clamped(cursor), .clamped(Self.pageRowCountMax)]
    ) { (row) throws(StoreError) in
      let message = try self.peerMessage(row)
      guard page.items.isEmpty || message.json.count <= left else {
        page.isLast = false
        return false
      }
      left -= min(left, message.json.count)
      page.items.append(.peerMessage(message))
      return true
    }
    if page.items.count == Self.pageRowCountMax { page.isLast = false }
    if !page.isLast, let last = page.items.last { page.through = last.cursor }
    return page
  }
}
