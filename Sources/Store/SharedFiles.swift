import ParleyVocabulary

// Shares.
extension Store {
  func set(_ share: StoredShare) throws(StoreError) {
    let channel = try rowMade(for: share.channel)
    let path = cells.text(share.path, .share("share_files.path", share.id), alike: true)
    try database.run(
      """
      INSERT INTO share_files (media, path, byte_count, modified, inode, kind, manifest, piece_hashes, members)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
      ON CONFLICT (media, path) DO UPDATE
      SET byte_count = excluded.byte_count, modified = excluded.modified, inode = excluded.inode, kind = excluded.kind,
        manifest = excluded.manifest, piece_hashes = excluded.piece_hashes, members = excluded.members
      """, .key(share.id.value), path, .bits(share.byteCount), .integer(share.modifiedNanoseconds),
      .bits(share.inode), .text(share.kind),
      cells.blob(share.manifest, .share("share_files.manifest", share.id)),
      cells.blob(share.pieceHashes, .share("share_files.piece_hashes", share.id)),
      cells.blob(share.members, .share("share_files.members", share.id)))
    try database.run(
      """
      INSERT INTO share_channels (file, channel) SELECT id, ? FROM share_files WHERE media = ? AND path = ?
      ON CONFLICT DO NOTHING
      """, .integer(channel), .key(share.id.value), path)
  }

  func unshare(_ id: MediaID, from channel: ChannelID?) throws(StoreError) {
    guard let channel else {
      try database.run("DELETE FROM share_files WHERE media = ?", .key(id.value))
      return
    }
    guard let row = try row(of: channel) else { return }
    try database.run(
      "DELETE FROM share_channels WHERE channel = ? AND file IN (SELECT id FROM share_files WHERE media = ?)",
      .integer(row), .key(id.value))
    try removeUnannouncedFiles()
  }

  func removeUnannouncedFiles() throws(StoreError) {
    try database.run(
      "DELETE FROM share_files WHERE NOT EXISTS (SELECT 1 FROM share_channels WHERE file = share_files.id)")
  }

  /// One for each channel that a file is announced in, in the order in which the files were first shared.
  package func shares() throws(StoreError) -> [StoredShare] {
    try database.rows(
      """
      SELECT media, channel, path, byte_count, modified, inode, kind, manifest, piece_hashes, members
      FROM share_files JOIN share_channels ON file = id ORDER BY id, channel
      """, read: share)
  }

  package func shares(in channel: ChannelID) throws(StoreError) -> [StoredShare] {
    guard let row = try row(of: channel) else { return [] }
    return try database.rows(
      """
      SELECT media, channel, path, byte_count, modified, inode, kind, manifest, piece_hashes, members
      FROM share_files JOIN share_channels ON file = id WHERE channel = ? ORDER BY id
      """, .integer(row), read: share)
  }

  /// The same content may be shared from several paths, each announced in several channels: the latest path first.
  package func shares(of id: MediaID) throws(StoreError) -> [StoredShare] {
    try database.rows(
      """
      SELECT media, channel, path, byte_count, modified, inode, kind, manifest, piece_hashes, members
      FROM share_files JOIN share_channels ON file = id WHERE media = ? ORDER BY id DESC, channel
      """, .key(id.value), read: share)
  }

  /// The first of `shares(of:)`.
  package func share(_ id: MediaID) throws(StoreError) -> StoredShare? {
    try database.first(
      """
      SELECT media, channel, path, byte_count, modified, inode, kind, manifest, piece_hashes, members
      FROM share_files JOIN share_channels ON file = id WHERE media = ? ORDER BY id DESC, channel LIMIT 1
      """, .key(id.value), read: share)
  }

  /// The channels in which this node announces the media, by ChannelID.
  package func channels(announcing id: MediaID) throws(StoreError) -> [ChannelID] {
    try database.rows(
      """
      SELECT DISTINCT channels.channel FROM share_files
      JOIN share_channels ON share_channels.file = share_files.id
      JOIN channels ON channels.id = share_channels.channel
      WHERE share_files.media = ? ORDER BY channels.channel
      """, .key(id.value)
    ) { (row) throws(StoreError) in ChannelID(try row.key(0)) }
  }

  private func share(_ row: Row) throws(StoreError) -> StoredShare {
    let id = MediaID(try row.key(0))
    return StoredShare(
      id: id, channel: try channel(row: row.integer(1)),
      path: cells.string(row.text(2), .share("share_files.path", id)), byteCount: row.bits(3),
      modifiedNanoseconds: row.integer(4), inode: row.bits(5), kind: row.text(6),
      manifest: cells.bytes(row.blob(7), .share("share_files.manifest", id)),
      pieceHashes: cells.bytes(row.blob(8), .share("share_files.piece_hashes", id)),
      members: cells.bytes(row.blob(9), .share("share_files.members", id)))
  }
}

// Downloads.
extension Store {
  func set(_ download: StoredDownload) throws(StoreError) {
    let channel = try rowMade(for: download.channel)
    try removeDownload(download.id)
    try database.run(
      """
      INSERT INTO downloads (media, channel, target, part, replacing, manifest, piece_hashes, selected)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?)
      """, .key(download.id.value), .integer(channel),
      cells.text(download.targetPath, .share("downloads.target", download.id)),
      cells.text(download.partPath, .share("downloads.part", download.id)), .flag(download.replacing),
      cells.blob(download.manifest, .share("downloads.manifest", download.id)),
      cells.blob(download.pieceHashes, .share("downloads.piece_hashes", download.id)),
      cells.blob(download.selected, .share("downloads.selected", download.id)))
    try database.run(
      "INSERT INTO download_bitmaps (download, bitmap) VALUES (?, ?)", .integer(database.lastRow),
      .blob(download.bitmap))
  }

  func setProgress(_ id: MediaID, bitmap: [UInt8]) throws(StoreError) {
    try database.run(
      "UPDATE download_bitmaps SET bitmap = ? WHERE download = (SELECT id FROM downloads WHERE media = ?)",
      .blob(bitmap), .key(id.value))
  }

  func removeDownload(_ id: MediaID) throws(StoreError) {
    try database.run("DELETE FROM downloads WHERE media = ?", .key(id.value))
  }

  /// In the order in which they were begun.
  package func downloads() throws(StoreError) -> [StoredDownload] {
    try database.rows(
      """
      SELECT media, channel, target, part, manifest, piece_hashes, bitmap, replacing, selected
      FROM downloads JOIN download_bitmaps ON download = id ORDER BY id
      """
    ) { (row) throws(StoreError) in
      let id = MediaID(try row.key(0))
      return StoredDownload(
        id: id, channel: try self.channel(row: row.integer(1)),
        targetPath: cells.string(row.text(2), .share("downloads.target", id)),
        partPath: cells.string(row.text(3), .share("downloads.part", id)),
        manifest: cells.bytes(row.blob(4), .share("downloads.manifest", id)),
        pieceHashes: cells.bytes(row.blob(5), .share("downloads.piece_hashes", id)), bitmap: row.blob(6),
        replacing: row.flag(7), selected: cells.bytes(row.blob(8), .share("downloads.selected", id)))
    }
  }
}
