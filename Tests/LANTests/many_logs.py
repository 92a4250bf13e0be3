#!/usr/bin/env python3
"""Fills the store of a Python peer that does not run yet: HOME COUNT CHANNEL…; an entry each of so many authors in each
open channel. Runs with the Python that has what Peers/Python needs."""
import pathlib
import secrets
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "Peers" / "Python"))
from parley_peer.store import Store  # noqa: E402
from parley_wire import keys, messages, writing  # noqa: E402

home, count, *names = sys.argv[1:]
store = Store(home)
for name in names:
    channel = keys.Channel.open(name)
    rows = []
    for number in range(int(count)):
        author, log = keys.Identity(secrets.token_bytes(32)), secrets.randbits(64)
        json = writing.kept(
            author.peer_id, f"Author {number}", f"m-{number}", "2021-03-12T09:05:16Z", "text",
            {"body": f"word of author {number}"})
        data = writing.entry(author, channel.channel_id, log, 1, number + 1, 0, False, [(messages.KINDS["text"], json)])
        rows.append((author.peer_id, log, 1, data))
    store.keep_entries(channel.channel_id, rows)
store.close()
