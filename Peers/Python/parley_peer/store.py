"""What a peer keeps: who it is, entries, peer messages, shares. One SQLite file, synced before it is promised."""
import contextlib
import os
import pathlib
import sqlite3

TABLES = """
CREATE TABLE IF NOT EXISTS own (name TEXT PRIMARY KEY, value);
CREATE TABLE IF NOT EXISTS entries (channel BLOB, author BLOB, log BLOB, number INTEGER, bytes BLOB,
  PRIMARY KEY (channel, author, log, number));
CREATE TABLE IF NOT EXISTS received (sender BLOB, message_id TEXT, json BLOB, PRIMARY KEY (sender, message_id));
CREATE TABLE IF NOT EXISTS outbox (message_id TEXT PRIMARY KEY, peer BLOB, json BLOB, since REAL);
CREATE TABLE IF NOT EXISTS floors (channel BLOB, author BLOB, log BLOB, floor INTEGER,
  PRIMARY KEY (channel, author, log));
CREATE TABLE IF NOT EXISTS media (media_id BLOB, channel BLOB, path TEXT, manifest BLOB, hashes BLOB,
  PRIMARY KEY (media_id, channel));
"""


class Store:
    def __init__(self, home):
        home = pathlib.Path(home)
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = home / "peer.db"
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
        self.database, self.is_together = sqlite3.connect(path), False
        self.database.executescript("PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;" + TABLES)

    def own(self, name, make):
        """The value of this name; made and kept when there is none."""
        row = self.database.execute("SELECT value FROM own WHERE name = ?", (name,)).fetchone()
        if row:
            return row[0]
        value = make()
        self.set_own(name, value)
        return value

    def set_own(self, name, value):
        with self.database:
            self.database.execute("INSERT OR REPLACE INTO own VALUES (?, ?)", (name, value))

    @contextlib.contextmanager
    def one_commit(self):
        """What is kept inside is on disk at the end of the outermost of these."""
        if self.is_together:
            yield
            return
        self.is_together = True
        try:
            with self.database:
                yield
        finally:
            self.is_together = False

    def keep_entries(self, channel_id, rows):
        """`rows`: author, log, number, bytes."""
        with self.one_commit():
            self.database.executemany(
                "INSERT OR IGNORE INTO entries VALUES (?, ?, ?, ?, ?)",
                [(channel_id, author, log.to_bytes(8, "big"), number, data) for author, log, number, data in rows])

    def entries(self, channel_id):
        found = self.database.execute(
            "SELECT author, log, number, bytes FROM entries WHERE channel = ? ORDER BY author, log, number",
            (channel_id,))
        return [(author, int.from_bytes(log, "big"), number, data) for author, log, number, data in found]

    def keep_floor(self, channel_id, author, log, floor):
        with self.one_commit():
            self.database.execute(
                "INSERT OR REPLACE INTO floors VALUES (?, ?, ?, ?)",
                (channel_id, author, log.to_bytes(8, "big"), floor))

    def floors(self, channel_id):
        found = self.database.execute("SELECT author, log, floor FROM floors WHERE channel = ?", (channel_id,))
        return {(author, int.from_bytes(log, "big")): floor for author, log, floor in found}

    def keep_received(self, sender, message_id, json):
        """Whether it is new."""
        with self.database:
            return self.database.execute(
                "INSERT OR IGNORE INTO received VALUES (?, ?, ?)", (sender, message_id, json)).rowcount == 1

    def keep_outgoing(self, message_id, peer, json, since):
        """`since`: when it began to wait, in seconds since 1970."""
        with self.database:
            self.database.execute("INSERT INTO outbox VALUES (?, ?, ?, ?)", (message_id, peer, json, since))

    def outgoing(self):
        return self.database.execute("SELECT message_id, peer, json, since FROM outbox ORDER BY rowid").fetchall()

    def waiting(self):
        """How many messages wait for people, and their bytes."""
        return self.database.execute("SELECT count(*), coalesce(sum(length(json)), 0) FROM outbox").fetchone()

    def waits_no_more(self, message_id):
        with self.database:
            self.database.execute("DELETE FROM outbox WHERE message_id = ?", (message_id,))

    def keep_media(self, media_id, channel_id, path, manifest, hashes):
        with self.database:
            self.database.execute(
                "INSERT OR REPLACE INTO media VALUES (?, ?, ?, ?, ?)",
                (media_id, channel_id, str(path), manifest, hashes))

    def media(self):
        return self.database.execute("SELECT media_id, channel, path, manifest, hashes FROM media").fetchall()

    def close(self):
        self.database.close()
