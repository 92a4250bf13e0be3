import ParleyVocabulary

/// What this profile's user decided about somebody.
package struct StoredContact: Sendable, Equatable {
  package var peer: PeerID
  /// The name under which their key was verified; nil: it was not.
  package var verifiedName: String?
  /// Milliseconds since 1970, when it was verified.
  package var verifiedAt: Int64
  package var isBlocked: Bool

  package init(peer: PeerID, verifiedName: String? = nil, verifiedAt: Int64 = 0, isBlocked: Bool = false) {
    self.peer = peer
    self.verifiedName = verifiedName
    self.verifiedAt = verifiedAt
    self.isBlocked = isBlocked
  }
}

extension Store {
  /// One who is neither verified nor blocked is forgotten.
  func set(_ contact: StoredContact) throws(StoreError) {
    guard contact.verifiedName != nil || contact.isBlocked else {
      return try database.run("DELETE FROM contacts WHERE peer = ?", .key(contact.peer.value))
    }
    try database.run(
      """
      INSERT INTO contacts (peer, verified, name, verified_at, blocked) VALUES (?, ?, ?, ?, ?)
      ON CONFLICT (peer) DO UPDATE
      SET verified = excluded.verified, name = excluded.name, verified_at = excluded.verified_at,
        blocked = excluded.blocked
      """, .key(contact.peer.value), .flag(contact.verifiedName != nil),
      cells.text(contact.verifiedName ?? "", .contactName(contact.peer)), .integer(contact.verifiedAt),
      .flag(contact.isBlocked))
  }

  /// By PeerID.
  package func contacts() throws(StoreError) -> [StoredContact] {
    try database.rows(
      "SELECT peer, verified, name, verified_at, blocked FROM contacts ORDER BY peer"
    ) { (row) throws(StoreError) in
      let peer = PeerID(try row.key(0))
      return StoredContact(
        peer: peer, verifiedName: row.flag(1) ? cells.string(row.text(2), .contactName(peer)) : nil,
        verifiedAt: row.integer(3),
        isBlocked: row.flag(4))
    }
  }

  /// Whose login tokens are believed in a channel; nil: nobody's.
  func set(organiser: OrganiserKey?, of channel: ChannelID) throws(StoreError) {
    guard let organiser else {
      guard let row = try row(of: channel) else { return }
      return try database.run("DELETE FROM organisers WHERE channel = ?", .integer(row))
    }
    try database.run(
      """
      INSERT INTO organisers (channel, key) VALUES (?, ?)
      ON CONFLICT (channel) DO UPDATE SET key = excluded.key
      """, .integer(try rowMade(for: channel)), .key(organiser.value))
  }

  package func organiser(of channel: ChannelID) throws(StoreError) -> OrganiserKey? {
    guard let row = try row(of: channel) else { return nil }
    return try database.first("SELECT key FROM organisers WHERE channel = ?", .integer(row)) {
      (row) throws(StoreError) in OrganiserKey(try row.key(0))
    }
  }
}
