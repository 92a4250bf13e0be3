"""A member gone bad that speaks the protocol: the Python peer with one of its parts changed. Started as that peer is,
with one option more, `--lie NAME`; `hold CHANNEL PATH` has it serve a file as if it had it from the one who shared it.
Each lie that it tells is said once, as {"event": "lied"}."""
import argparse
import asyncio
import os
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "Peers" / "Python"))

import parley_peer.__main__ as program  # noqa: E402
from parley_peer import files, history, links, media, peer, room, secure  # noqa: E402
from parley_wire import sessions, writing  # noqa: E402
from parley_wire import media as media_wire  # noqa: E402

told = set()


def lied(what):
    if what not in told:
        told.add(what)
        program.say({"event": "lied", "what": what})


def changed(data, at=0):
    return data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]


# Media


class WrongBytes(media.Media):
    def _block(self, content, value):
        kind, data = super()._block(content, value)
        if kind != media.BLOCK_DATA:
            return kind, data
        lied("wrong_bytes")
        return kind, changed(data, len(data) // 2)


class WrongNodes(media.Media):
    def _piece_hashes(self, content, value):
        kind, data = super()._piece_hashes(content, value)
        if kind != media.PIECE_HASHES_PART:
            return kind, data
        lied("wrong_nodes")
        return kind, changed(data)


class EndlessManifest(media.Media):
    """As long as may be, and no end of it: every part says that there is more."""

    def _manifest(self, content, value):
        lied("endless_manifest")
        return (media.MANIFEST_PART, media_wire.MANIFEST_BYTES_MAX, value["offset"],
                os.urandom(media_wire.MANIFEST_PART_BYTES_MAX))


class FalseClaims(media.Media):
    """Has everything, and then nothing."""

    def _block(self, content, value):
        lied("false_claims")
        return media.REFUSED, bytes([media.UNKNOWN])


class Silent(media.Media):
    """Has everything, and never says it."""

    async def _blocks(self, session, value):
        lied("silent")


class Trickle(media.Media):
    """A byte a second."""

    async def _blocks(self, session, value):
        lied("trickle")
        answer = self._answer(session, value)
        sealed = session.connection.encrypt(bytes(writing.media_message(answer[0], value["number"], *answer[1:])))
        for byte in len(sealed).to_bytes(2, "big") + sealed:
            session.writer.write(bytes([byte]))
            await session.writer.drain()
            await asyncio.sleep(1)


# History


def entries_answered(room, value, spoil):
    """What was asked for, each entry spoiled."""
    found = []
    for item in value["ranges"]:
        known = room.logs.all.get((bytes.fromhex(item["author"]), int(item["log"], 16)))
        for number in sorted(known.held) if known else ():
            if item["from"] <= number <= item["through"] and len(found) < 256:
                found.append(spoil(known.held[number]))
    return found


class Poisoned(history.History):
    """Answers with entries of which one byte is another."""

    async def _answer(self, session, value):
        lied("poisoned")
        parts = entries_answered(self, value, lambda data: changed(data, len(data) - 1))
        await session.send(writing.entries(self.room.channel_id, value["request"], True, parts[:100]))


class Withholding(history.History):
    """Says that it has them, and that there are none."""

    async def _answer(self, session, value):
        lied("withholding")
        await session.send(writing.entries(self.room.channel_id, value["request"], True, []))


class Endless(history.History):
    """Heads of logs that are longer than anything anybody said."""

    def _send_heads(self, session, buckets, send_yours, all_buckets=False):
        lied("endless_heads")
        found = self.logs.heads(set(buckets), self.own_key)
        longer = [(*head[:2], head[2] + (1 << 40), *head[3:]) for head in found]
        session.put(writing.heads(
            self.room.channel_id, longer[: sessions.HEADS_MAX], True, send_yours,
            None if all_buckets else buckets))

    async def _answer(self, session, value):
        await session.send(writing.entries(self.room.channel_id, value["request"], True, []))


MEDIA_LIES = {
    "wrong_bytes": WrongBytes, "wrong_nodes": WrongNodes, "endless_manifest": EndlessManifest,
    "false_claims": FalseClaims, "silent": Silent, "trickle": Trickle,
}
HISTORY_LIES = {"poisoned": Poisoned, "withholding": Withholding, "endless_heads": Endless}


class Commands(program.Commands):
    async def hold(self, name, path):
        """As one who has downloaded it, but without a word in the channel."""
        content = await asyncio.to_thread(files.shared, path, "application/octet-stream")
        self.peer.media.keep(content, [self.peer.room(name).channel_id])
        return {"media_id": content.media_id}

    async def greedy(self, name, peer_id, media_id, count, requests):
        """Asks one member for all of a file, over so many connections at once, and reads nothing of it."""
        room = self.peer.room(name)
        member = next(found for found in room.members.there() if found.peer_id == program.identifier(peer_id))
        address = (member.place[1][0], member.tcp_port, *member.place[1][2:])
        self.held = []
        for _ in range(int(count)):
            reader, writer = await links.connect(address)
            session = await secure.dial(reader, writer, secure.MEDIA, self.peer, member.peer_id)
            self.held.append(session)
            for number in range(int(requests)):
                session.put(writing.media_message(
                    0x03, 1 + 64 * number, program.identifier(media_id), 0, 64 * number, 64))
        lied("greedy")
        return {"connections": len(self.held)}


def main():
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--lie", default="", choices=["", *MEDIA_LIES, *HISTORY_LIES])
    own, sys.argv[1:] = parser.parse_known_args()
    program.Commands = Commands
    program.COMMANDS |= {"hold", "greedy"}
    if own.lie in MEDIA_LIES:
        peer.Media = MEDIA_LIES[own.lie]
    if own.lie in HISTORY_LIES:
        room.History = HISTORY_LIES[own.lie]
    asyncio.run(program.main(program.parsed()))


if __name__ == "__main__":
    main()
