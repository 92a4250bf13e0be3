/// One step of the format. It runs in one transaction and sets `user_version` to its place in the list, counted from 1.
struct Migration {
  let script: StaticString
}

enum Schema {
  /// "PRLY": what tells our file from another program's database (SQLite file format, section 1.3.17).
  static let applicationID: Int64 = 0x5052_4C59

  /// Only ever added to: a file of any earlier version goes through the rest of the list.
  static let migrations: [Migration] = [
    Migration(
      script: """
        PRAGMA application_id = 0x50524C59;

        -- One row: the last cursor given. Not taken from the tables, or deleting would let a cursor come back.
        CREATE TABLE sequence (id INTEGER PRIMARY KEY CHECK (id = 1), last INTEGER NOT NULL) STRICT;
        INSERT INTO sequence VALUES (1, 0);

        CREATE TABLE channels (
          id INTEGER PRIMARY KEY, channel BLOB NOT NULL UNIQUE CHECK (length(channel) = 32)) STRICT;

        -- contiguous, beyond (a count), lamport_max and last_hidden (a number, 0 for none) follow from the entries that
        -- were stored, and are kept so that nothing needs to read those.
        CREATE TABLE logs (
          id INTEGER PRIMARY KEY,
          channel INTEGER NOT NULL REFERENCES channels (id) ON DELETE CASCADE,
          author BLOB NOT NULL CHECK (length(author) = 32),
          instance BLOB NOT NULL CHECK (length(instance) = 8),
          contiguous INTEGER NOT NULL, beyond INTEGER NOT NULL,
          lamport_max INTEGER NOT NULL, last_hidden INTEGER NOT NULL,
          UNIQUE (channel, author, instance)) STRICT;

        -- channel, author and instance repeat those of the log so that one index holds the channel's order.
        -- stored_at: what the age clock showed, in milliseconds; rises with the cursor.
        CREATE TABLE entries (
          cursor INTEGER PRIMARY KEY,
          log INTEGER NOT NULL REFERENCES logs (id) ON DELETE CASCADE,
          number INTEGER NOT NULL CHECK (number > 0),
          lamport INTEGER NOT NULL, hidden INTEGER NOT NULL, stored_at INTEGER NOT NULL,
          channel INTEGER NOT NULL, author BLOB NOT NULL, instance BLOB NOT NULL,
          bytes BLOB NOT NULL) STRICT;
        CREATE UNIQUE INDEX entries_by_number ON entries (log, number);
        CREATE INDEX entries_by_order ON entries (channel, lamport, author, instance, number) WHERE hidden = 0;
        CREATE INDEX entries_by_channel ON entries (channel);

        CREATE TABLE peer_messages (
          cursor INTEGER PRIMARY KEY,
          peer BLOB NOT NULL CHECK (length(peer) = 32), own INTEGER NOT NULL, id TEXT NOT NULL,
          stored_at INTEGER NOT NULL, json BLOB NOT NULL,
          UNIQUE (peer, own, id)) STRICT;

        CREATE TABLE outbox (
          place INTEGER PRIMARY KEY,
          peer BLOB NOT NULL CHECK (length(peer) = 32), id TEXT NOT NULL,
          queued_at INTEGER NOT NULL, json BLOB NOT NULL,
          UNIQUE (peer, id)) STRICT;

        CREATE TABLE members (
          channel INTEGER NOT NULL REFERENCES channels (id) ON DELETE CASCADE,
          peer BLOB NOT NULL CHECK (length(peer) = 32),
          name TEXT NOT NULL, online INTEGER NOT NULL, incarnation INTEGER NOT NULL,
          PRIMARY KEY (channel, peer)) STRICT, WITHOUT ROWID;

        CREATE TABLE delivered (
          channel INTEGER NOT NULL REFERENCES channels (id) ON DELETE CASCADE,
          instance BLOB NOT NULL CHECK (length(instance) = 8),
          peer BLOB NOT NULL CHECK (length(peer) = 32),
          number INTEGER NOT NULL,
          PRIMARY KEY (channel, instance, peer)) STRICT, WITHOUT ROWID;

        CREATE TABLE share_files (
          id INTEGER PRIMARY KEY,
          media BLOB NOT NULL CHECK (length(media) = 32), path TEXT NOT NULL,
          byte_count INTEGER NOT NULL, modified INTEGER NOT NULL, inode INTEGER NOT NULL,
          kind TEXT NOT NULL, manifest BLOB NOT NULL, piece_hashes BLOB NOT NULL,
          UNIQUE (media, path)) STRICT;
        CREATE TABLE share_channels (
          file INTEGER NOT NULL REFERENCES share_files (id) ON DELETE CASCADE,
          channel INTEGER NOT NULL REFERENCES channels (id) ON DELETE CASCADE,
          PRIMARY KEY (file, channel)) STRICT, WITHOUT ROWID;
        CREATE INDEX share_channels_by_channel ON share_channels (channel);

        CREATE TABLE downloads (
          id INTEGER PRIMARY KEY,
          media BLOB NOT NULL UNIQUE CHECK (length(media) = 32),
          channel INTEGER NOT NULL REFERENCES channels (id) ON DELETE CASCADE,
          target TEXT NOT NULL, part TEXT NOT NULL, replacing INTEGER NOT NULL,
          manifest BLOB NOT NULL, piece_hashes BLOB NOT NULL) STRICT;
        CREATE INDEX downloads_by_channel ON downloads (channel);
        -- Apart from the rest, a hundred kilobytes for a large file, which would be written again with every piece.
        CREATE TABLE download_bitmaps (
          download INTEGER PRIMARY KEY REFERENCES downloads (id) ON DELETE CASCADE, bitmap BLOB NOT NULL) STRICT;

        PRAGMA user_version = 1;
        """),
    Migration(
      script: """
        -- The age clock (AgeClock) and the time of day when it was last written, in milliseconds; -1 before the first.
        -- In this row, since every batch writes it.
        ALTER TABLE sequence ADD COLUMN age INTEGER NOT NULL DEFAULT -1;
        ALTER TABLE sequence ADD COLUMN wall INTEGER NOT NULL DEFAULT -1;

        -- Entries up to the floor were pruned, but for the last hidden one. contiguous is never below it.
        ALTER TABLE logs ADD COLUMN floor INTEGER NOT NULL DEFAULT 0;

        -- Hidden entries too, which count as much for what is too much.
        DROP INDEX entries_by_order;
        CREATE INDEX entries_by_order ON entries (channel, lamport, author, instance, number, hidden);

        PRAGMA user_version = 2;
        """),
    Migration(
      script: """
        -- The index itself, `search`, is made with the first entry that goes into it (Search.swift).
        -- One row: entries up to this cursor are indexed.
        CREATE TABLE search_state (id INTEGER PRIMARY KEY CHECK (id = 1), indexed INTEGER NOT NULL) STRICT;
        INSERT INTO search_state VALUES (1, 0);
        -- Entries that are gone and still to be taken from the index.
        CREATE TABLE search_removals (cursor INTEGER PRIMARY KEY) STRICT;
        CREATE TRIGGER entries_deleted AFTER DELETE ON entries
          WHEN old.hidden = 0 AND old.cursor <= (SELECT indexed FROM search_state)
          BEGIN INSERT INTO search_removals VALUES (old.cursor); END;

        PRAGMA user_version = 3;
        """),
    Migration(
      script: """
        -- Of a shared folder: what each of its files was when its hashes were taken, and where it lies. Empty: a file.
        ALTER TABLE share_files ADD COLUMN members BLOB NOT NULL DEFAULT x'';

        -- What files hashed to, so that what has not changed is not read again. Those hashed last have the highest id.
        CREATE TABLE scans (
          id INTEGER PRIMARY KEY, path TEXT NOT NULL UNIQUE,
          byte_count INTEGER NOT NULL, modified INTEGER NOT NULL, inode INTEGER NOT NULL,
          piece_hashes BLOB NOT NULL) STRICT;

        PRAGMA user_version = 4;
        """),
    Migration(
      script: """
        -- The files of a folder whose piece hashes are kept, a bit each; empty: all.
        ALTER TABLE downloads ADD COLUMN selected BLOB NOT NULL DEFAULT x'';

        PRAGMA user_version = 5;
        """),
    Migration(
      script: """
        -- What the user decided about somebody. name: under which they were verified.
        CREATE TABLE contacts (
          peer BLOB PRIMARY KEY CHECK (length(peer) = 32),
          verified INTEGER NOT NULL, name TEXT NOT NULL, verified_at INTEGER NOT NULL, blocked INTEGER NOT NULL
        ) STRICT, WITHOUT ROWID;
        -- Whose login tokens are believed in a channel.
        CREATE TABLE organisers (
          channel INTEGER PRIMARY KEY REFERENCES channels (id) ON DELETE CASCADE,
          key BLOB NOT NULL CHECK (length(key) = 32)) STRICT;

        PRAGMA user_version = 6;
        """),
    Migration(
      script: """
        -- Login tokens that were shown. expires: milliseconds since 1970.
        CREATE TABLE tokens (
          channel INTEGER NOT NULL REFERENCES channels (id) ON DELETE CASCADE,
          peer BLOB NOT NULL CHECK (length(peer) = 32), expires INTEGER NOT NULL, token TEXT NOT NULL,
          PRIMARY KEY (channel, peer, expires)) STRICT, WITHOUT ROWID;

        PRAGMA user_version = 7;
        """),
    Migration(
      script: """
        -- Like no other row: of two numbers, what is read from a damaged file could not tell those of (file, channel)
        -- from those of an index of entries, and shared a file where nobody had shared it.
        DROP INDEX share_channels_by_channel;
        CREATE INDEX share_channels_by_channel ON share_channels (channel, -file);

        PRAGMA user_version = 8;
        """),
    Migration(
      script: """
        -- What the user set of channels and, where peer is 1, of people. No secret: other tables name them, too.
        CREATE TABLE settings (
          peer INTEGER NOT NULL, subject BLOB NOT NULL CHECK (length(subject) = 32),
          name TEXT NOT NULL, value INTEGER NOT NULL,
          PRIMARY KEY (peer, subject, name)) STRICT, WITHOUT ROWID;

        PRAGMA user_version = 9;
        """),
    Migration(
      script: """
        -- Where in the channel something is done to a message, whether that is here or not. target: 16 bytes that stand
        -- for its key (Acts.swift). at: milliseconds since 1970, as signed. One row a message, entry and kind.
        CREATE TABLE acts (
          channel INTEGER NOT NULL REFERENCES channels (id) ON DELETE CASCADE,
          target BLOB NOT NULL CHECK (length(target) = 16), cursor INTEGER NOT NULL, kind INTEGER NOT NULL,
          at INTEGER NOT NULL, PRIMARY KEY (channel, target, cursor, kind)) STRICT, WITHOUT ROWID;
        CREATE INDEX acts_by_cursor ON acts (cursor);
        CREATE INDEX acts_by_kind ON acts (channel, kind, cursor);
        -- Where a message is: place is its entry's cursor × 256 + its place there. Filled behind the commits.
        CREATE TABLE message_keys (
          place INTEGER PRIMARY KEY,
          channel INTEGER NOT NULL REFERENCES channels (id) ON DELETE CASCADE,
          key BLOB NOT NULL CHECK (length(key) = 16)) STRICT;
        CREATE INDEX message_keys_by_key ON message_keys (channel, key);
        -- One row: messages of entries up to this cursor are in message_keys.
        CREATE TABLE key_state (id INTEGER PRIMARY KEY CHECK (id = 1), keyed INTEGER NOT NULL) STRICT;
        INSERT INTO key_state VALUES (1, 0);
        CREATE TRIGGER acts_gone AFTER DELETE ON entries WHEN old.hidden <> 0
          BEGIN DELETE FROM acts WHERE cursor = old.cursor; END;
        CREATE TRIGGER messages_gone AFTER DELETE ON entries WHEN old.hidden = 0
          BEGIN DELETE FROM message_keys WHERE place BETWEEN old.cursor << 8 AND old.cursor << 8 | 255; END;

        PRAGMA user_version = 10;
        """),
    Migration(
      script: """
        -- Messages of a channel that are no entries (for whoever was there, or for some members only): kept here, given
        -- to nobody. lamport: what the channel's clock showed when it came, which is its place in the history.
        CREATE TABLE local_messages (
          cursor INTEGER PRIMARY KEY,
          channel INTEGER NOT NULL REFERENCES channels (id) ON DELETE CASCADE,
          author BLOB NOT NULL CHECK (length(author) = 32), id TEXT NOT NULL,
          lamport INTEGER NOT NULL, kind INTEGER NOT NULL, stored_at INTEGER NOT NULL, json BLOB NOT NULL,
          UNIQUE (channel, author, id)) STRICT;
        CREATE INDEX local_messages_by_order ON local_messages (channel, lamport, author, cursor);

        PRAGMA user_version = 11;
        """),
  ]

  /// Brings the file to the newest version, one transaction a step.
  static func migrate(_ database: Database, through migrations: [Migration]) throws(StoreError) {
    for (index, migration) in migrations.enumerated().dropFirst(try version(of: database)) {
      try database.transaction { () throws(StoreError) in
        try database.script(migration.script)
        let version = try version(of: database)
        precondition(version == index + 1, "a migration sets user_version to its place in the list")
      }
    }
  }

  static func version(of database: Database) throws(StoreError) -> Int {
    Int(try database.first("PRAGMA user_version") { $0.integer(0) } ?? 0)
  }
}

extension Database {
  /// All of `body`, or on an error nothing of it.
  func transaction<T>(_ body: () throws(StoreError) -> T) throws(StoreError) -> T {
    try run("BEGIN IMMEDIATE")
    do throws(StoreError) {
      let result = try body()
      try run("COMMIT")
      return result
    } catch {
      // SQLite has rolled back by itself after some errors (a full disk, a failed write) but not after others. A
      // rollback that fails changes nothing either: the transaction was never committed.
      if isInTransaction { _ = try? run("ROLLBACK") }
      throw error
    }
  }
}
