import ParleyVocabulary

/// What the user has set of one channel or one person, for this node only.
package struct StoredSetting: Sendable, Equatable {
  package enum Subject: Sendable, Hashable {
    case channel(ChannelID)
    case peer(PeerID)
  }

  package var subject: Subject
  package var name: String
  /// Nil: as it is where nothing was set.
  package var value: Int64?

  package init(subject: Subject, name: String, value: Int64?) {
    self.subject = subject
    self.name = name
    self.value = value
  }
}

extension Store {
  func set(_ setting: StoredSetting) throws(StoreError) {
    let (isPeer, key) = Self.columns(setting.subject)
    guard let value = setting.value else {
      return try database.run(
        "DELETE FROM settings WHERE peer = ? AND subject = ? AND name = ?", .flag(isPeer), .key(key),
        .text(setting.name))
    }
    try database.run(
      """
      INSERT INTO settings (peer, subject, name, value) VALUES (?, ?, ?, ?)
      ON CONFLICT (peer, subject, name) DO UPDATE SET value = excluded.value
      """, .flag(isPeer), .key(key), .text(setting.name), .integer(value))
  }

  private static func columns(_ subject: StoredSetting.Subject) -> (isPeer: Bool, Bytes32) {
    switch subject {
    case .channel(let channel): (false, channel.value)
    case .peer(let peer): (true, peer.value)
    }
  }

  /// All that were set, those of a subject together.
  package func settings() throws(StoreError) -> [StoredSetting] {
    try database.rows("SELECT peer, subject, name, value FROM settings ORDER BY peer, subject, name") {
      (row) throws(StoreError) in
      let key = try row.key(1)
      return StoredSetting(
        subject: row.flag(0) ? .peer(PeerID(key)) : .channel(ChannelID(key)), name: row.text(2),
        value: row.integer(3))
    }
  }
}
