import ParleyVocabulary

// Peer messages and the outbox.
extension Store {
  func add(_ message: StoredPeerMessage) throws(StoreError) -> UInt64 {
    let cursor = lastCursor + 1
    try database.run(
      """
      INSERT INTO peer_messages (cursor, peer, own, id, stored_at, json) VALUES (?, ?, ?, ?, ?, ?)
      ON CONFLICT (peer, own, id) DO NOTHING
      """, .bits(cursor), .key(message.peer.value), .flag(message.isOwn), .text(message.id.text),
      .integer(batchAge),
      cells.blob(message.json, .peerMessage(message.peer, isOwn: message.isOwn, message.id)))
    guard database.changeCount > 0 else { return 0 }
    lastCursor = cursor
    return cursor
  }

  func add(_ item: OutboxItem) throws(StoreError) {
    try database.run(
      "INSERT INTO outbox (peer, id, queued_at, json) VALUES (?, ?, ?, ?) ON CONFLICT (peer, id) DO NOTHING",
      .key(item.peer.value), .text(item.id.text), .integer(batchAge),
      cells.blob(item.json, .outbox(item.peer, item.id)))
  }

  func removeFromOutbox(_ peer: PeerID, _ id: MessageID) throws(StoreError) {
    try database.run("DELETE FROM outbox WHERE peer = ? AND id = ?", .key(peer.value), .text(id.text))
  }

  /// The last ones, the newest first.
  package func peerMessages(limit: Int) throws(StoreError) -> [StoredPeerMessage] {
    try database.rows(
      "SELECT cursor, peer, own, id, json FROM peer_messages ORDER BY cursor DESC LIMIT ?", .clamped(max(0, limit)),
      read: peerMessage)
  }

  /// Those between this node and `peer` before `cursor` (nil: the last ones), the newest first.
  package func peerMessages(
    with peer: PeerID, before cursor: UInt64?, limit: Int
  ) throws(StoreError) -> [StoredPeerMessage] {
    try database.rows(
      """
      SELECT cursor, peer, own, id, json FROM peer_messages WHERE peer = ? AND cursor < ? ORDER BY cursor DESC LIMIT ?
      """, .key(peer.value), .clamped(cursor ?? .max), .clamped(max(0, limit)), read: peerMessage)
  }

  /// Those stored after `cursor`, by cursor.
  package func peerMessagesAfter(cursor: UInt64, limit: Int) throws(StoreError) -> [StoredPeerMessage] {
    try database.rows(
      "SELECT cursor, peer, own, id, json FROM peer_messages WHERE cursor > ? ORDER BY cursor LIMIT ?",
      .clamped(cursor), .clamped(max(0, limit)), read: peerMessage)
  }

  /// Whether a message that `peer` wrote is stored.
  package func hasPeerMessage(from peer: PeerID, id: MessageID) throws(StoreError) -> Bool {
    try database.first(
      "SELECT 1 FROM peer_messages WHERE peer = ? AND own = 0 AND id = ?", .key(peer.value), .text(id.text)
    ) { _ in true } ?? false
  }

  /// In the order in which they were added.
  package func outbox() throws(StoreError) -> [OutboxItem] {
    try database.rows("SELECT peer, id, json, queued_at FROM outbox ORDER BY place", read: outboxItem)
  }

  package func outbox(for peer: PeerID) throws(StoreError) -> [OutboxItem] {
    try database.rows(
      "SELECT peer, id, json, queued_at FROM outbox WHERE peer = ? ORDER BY place", .key(peer.value),
      read: outboxItem)
  }

  /// Bytes of JSON that wait.
  package var outboxByteCount: Int {
    get throws(StoreError) {
      let more = cells.seal == nil ? 0 : Cells.overheadByteCount
      return try database.first("SELECT ifnull(sum(length(json)), 0), count(*) FROM outbox") {
        Int($0.integer(0)) - more * Int($0.integer(1))
      } ?? 0
    }
  }

  func peerMessage(_ row: Row) throws(StoreError) -> StoredPeerMessage {
    let (peer, isOwn, id) = (PeerID(try row.key(1)), row.flag(2), try row.messageID(3))
    return StoredPeerMessage(
      peer: peer, isOwn: isOwn, id: id, json: cells.bytes(row.blob(4), .peerMessage(peer, isOwn: isOwn, id)),
      cursor: row.bits(0))
  }

  private func outboxItem(_ row: Row) throws(StoreError) -> OutboxItem {
    let (peer, id) = (PeerID(try row.key(0)), try row.messageID(1))
    return OutboxItem(peer: peer, id: id, json: cells.bytes(row.blob(2), .outbox(peer, id)), queuedAt: row.integer(3))
  }
}

// Members, and who has what of mine.
extension Store {
  func set(_ member: StoredMember) throws(StoreError) {
    let incarnation = try Self.counter(member.incarnation, field: "incarnation")
    try database.run(
      """
      INSERT INTO members (channel, peer, name, online, incarnation) VALUES (?, ?, ?, ?, ?)
      ON CONFLICT (channel, peer) DO UPDATE
      SET name = excluded.name, online = excluded.online, incarnation = excluded.incarnation
      """, .integer(try rowMade(for: member.channel)), .key(member.peer.value),
      cells.text(member.displayName, .memberName(member.channel, member.peer)),
      .flag(member.isOnline), incarnation)
  }

  func setDelivered(
    _ channel: ChannelID, log: Instance, peer: PeerID, number: UInt64
  ) throws(StoreError) {
    let number = try Self.counter(number, field: "number")
    try database.run(
      """
      INSERT INTO delivered (channel, instance, peer, number) VALUES (?, ?, ?, ?)
      ON CONFLICT (channel, instance, peer) DO UPDATE SET number = excluded.number WHERE excluded.number > number
      """, .integer(try rowMade(for: channel)), .log(log), .key(peer.value), number)
  }

  /// By PeerID.
  package func members(in channel: ChannelID) throws(StoreError) -> [StoredMember] {
    guard let row = try row(of: channel) else { return [] }
    return try database.rows(
      "SELECT peer, name, online, incarnation FROM members WHERE channel = ? ORDER BY peer", .integer(row)
    ) { (row) throws(StoreError) in
      let peer = PeerID(try row.key(0))
      return StoredMember(
        channel: channel, peer: peer, displayName: cells.string(row.text(1), .memberName(channel, peer)),
        isOnline: row.flag(2),
        incarnation: row.bits(3))
    }
  }

  /// For each of my logs and each peer the highest number that the peer has, by log and PeerID.
  package func delivered(
    in channel: ChannelID
  ) throws(StoreError) -> [(log: Instance, peer: PeerID, number: UInt64)] {
    guard let row = try row(of: channel) else { return [] }
    return try database.rows(
      "SELECT instance, peer, number FROM delivered WHERE channel = ? ORDER BY instance, peer", .integer(row)
    ) { (row) throws(StoreError) in
      (log: try row.log(0), peer: PeerID(try row.key(1)), number: row.bits(2))
    }
  }
}
