import ParleyVocabulary

/// A login token that somebody showed in a channel.
package struct StoredToken: Sendable, Equatable {
  package var channel: ChannelID
  package var peer: PeerID
  /// Milliseconds since 1970.
  package var expires: Int64
  package var text: String

  package init(channel: ChannelID, peer: PeerID, expires: Int64, text: String) {
    self.channel = channel
    self.peer = peer
    self.expires = expires
    self.text = text
  }
}

extension Store {
  /// Beside as many others of this person in this channel as `countMax` allows, those that last longest.
  func add(_ token: StoredToken, countMax: Int) throws(StoreError) {
    let channel = try rowMade(for: token.channel)
    try database.run(
      """
      INSERT INTO tokens (channel, peer, expires, token) VALUES (?, ?, ?, ?)
      ON CONFLICT (channel, peer, expires) DO UPDATE SET token = excluded.token
      """, .integer(channel), .key(token.peer.value), .integer(token.expires),
      cells.text(token.text, .token(token.channel, token.peer, token.expires)))
    try database.run(
      """
      DELETE FROM tokens WHERE channel = ? AND peer = ? AND expires NOT IN (
        SELECT expires FROM tokens WHERE channel = ? AND peer = ? ORDER BY expires DESC LIMIT ?)
      """, .integer(channel), .key(token.peer.value), .integer(channel), .key(token.peer.value),
      .clamped(max(1, countMax)))
  }

  /// Those that end first come first.
  package func tokens(in channel: ChannelID) throws(StoreError) -> [StoredToken] {
    guard let row = try row(of: channel) else { return [] }
    return try database.rows(
      "SELECT peer, expires, token FROM tokens WHERE channel = ? ORDER BY peer, expires", .integer(row)
    ) { (row) throws(StoreError) in
      let (peer, expires) = (PeerID(try row.key(0)), row.integer(1))
      return StoredToken(
        channel: channel, peer: peer, expires: expires, text: cells.string(row.text(2), .token(channel, peer, expires)))
    }
  }
}
