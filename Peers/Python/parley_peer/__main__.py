"""The command line: `python3 -m parley_peer --help`. Commands on standard input, events on standard output."""
import argparse
import asyncio
import json
import pathlib
import shlex
import signal
import sys

from parley_wire import keys, messages, sessions

from .peer import Peer

HELP = """commands, a line each, as words or as a JSON array of words; each is answered by a line {"answer": …}:
  join CHANNEL [PASSPHRASE_FILE]     send CHANNEL TEXT [SECONDS]      hand CHANNEL up|down     leave CHANNEL
  members CHANNEL                    history CHANNEL                  tell PEER_ID TEXT        dial HOST PORT
  share CHANNEL PATH [KIND]          download MEDIA_ID PATH           media CHANNEL            down
  combine CHANNEL TITLE PATH ID…     unpack MEDIA_ID LEVELS PATH
  raw CHANNEL TYPE JSON              (a message of a type of one's own, with these members)
"""
SUITES = {"aesgcm": sessions.AESGCM_BIT, "chachapoly": sessions.CHACHAPOLY_BIT}


def shown(value):
    """Values as JSON has them: PeerIDs as text, logs as their digits."""
    if isinstance(value, bytes):
        return keys.base32(value)
    if isinstance(value, dict):
        return {
            name: f"{inner:016x}" if name == "log" else shown(inner) for name, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [shown(inner) for inner in value]
    return value


def say(value):
    # ASCII, so that nothing in it moves a cursor.
    print(json.dumps(shown(value)), flush=True)


class Commands:
    def __init__(self, peer, ended):
        self.peer, self.ended = peer, ended

    async def join(self, name, passphrase_file=None, kind="group"):
        secret = pathlib.Path(passphrase_file).read_bytes().rstrip(b"\r\n") if passphrase_file else None
        await self.peer.join(name, secret, kind == "room")

    async def attributes(self, name):
        return {"attributes": [
            {"key": found["key"], "value": found["value"], "sender_id": found["author"]}
            for found in self.peer.room(name).attributes()]}

    async def attribute(self, name, key, value=None, *options):
        """Without a value it is taken away; options: keep, leave."""
        number = await self.peer.room(name).set_attribute(
            key, value, overwrite="keep" not in options, until_leave="leave" in options)
        return {"number": number}

    async def typing(self, name, word):
        self.peer.room(name).typing(word == "on")

    async def leave(self, name):
        await self.peer.leave(self.peer.room(name).channel_id)

    async def send(self, name, text, seconds="0"):
        room = self.peer.room(name)
        message_id, number = await room.say(messages.KINDS["text"], "text", {"body": text})
        having, there = await room.everybody_has(number, float(seconds))
        return {"message_id": message_id, "delivered_to": having, "present": there}

    async def raw(self, name, kind, members):
        message_id, number = await self.peer.room(name).say(
            messages.KINDS.get(kind, 0), kind, json.loads(members))
        return {"message_id": message_id, "number": number}

    async def hand(self, name, word):
        await self.peer.room(name).hand(word == "up")

    async def members(self, name):
        return {"members": [
            {"peer_id": peer_id, "display_name": shown_name, "online": online, "hand": hand}
            for peer_id, shown_name, online, hand in self.peer.room(name).listed()]}

    async def history(self, name):
        return {"messages": self.peer.room(name).history.messages()}

    async def media(self, name):
        return {"media": [found for found in self.peer.room(name).history.messages() if "media_id" in found]}

    async def tell(self, peer_id, text):
        return {"message_id": await self.peer.peer_message(identifier(peer_id), text)}

    async def live(self, name, kind, members):
        return {"message_id": self.peer.room(name).live(kind, json.loads(members))}

    async def dial(self, host, port):
        return {"session": await self.peer.dial(host, int(port))}

    async def share(self, name, path, kind="file", own="{}"):
        media_id, _ = await self.peer.media.share(self.peer.room(name), path, kind, own=json.loads(own))
        return {"media_id": media_id}

    async def download(self, media_id, path):
        return {"path": str(await self.peer.media.download(identifier(media_id), path))}

    async def combine(self, name, title, path, *message_ids):
        """Puts messages of a channel together, in a new file."""
        room = self.peer.room(name)
        lines = room.history.written(message_ids)
        if None in lines:
            raise ValueError("not all of these messages are here")
        data = b"".join(line + b"\n" for line in lines)
        levels = 1 + max(value.get("levels", 0) for value in messages.bundle(data, messages.LEVELS_MAX))
        pathlib.Path(path).write_bytes(data)
        own = {"title": title, "summary": "", "compatible_text": f"[{title}]", "levels": levels}
        media_id, _ = await self.peer.media.share(room, path, "combine", "application/x-ndjson", own)
        return {"media_id": media_id}

    async def unpack(self, media_id, levels, path):
        """The messages of a combined one that announced so many levels."""
        found = await self.peer.media.download(identifier(media_id), path)
        return {"messages": messages.bundle(pathlib.Path(found).read_bytes(), int(levels))}

    async def down(self):
        self.ended.set()

    async def run(self, number, words):
        try:
            name, *arguments = words
            command = getattr(self, name) if name in COMMANDS else None
            if command is None:
                raise ValueError(f"there is no command {name}")
            say({"answer": number, **(await command(*arguments) or {})})
        except (ValueError, TypeError, OSError, asyncio.TimeoutError) as error:
            say({"answer": number, "error": f"{type(error).__name__}: {error}"})


COMMANDS = {
    "join", "leave", "send", "raw", "hand", "members", "history", "media", "tell", "live", "dial", "share", "download",
    "combine", "unpack", "down", "attributes", "attribute", "typing"}


def identifier(text):
    found = keys.unbase32(text)
    if found is None or len(found) != 32:
        raise ValueError(f"{text} is no ID: 52 characters of base32")
    return found


def words_of(line):
    return json.loads(line) if line.lstrip().startswith("[") else shlex.split(line)


async def main(arguments):
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    suites = [SUITES[name] for name in arguments.suites.split(",")]

    def tell(event):
        say(event)
        if event["event"] == "aborted":
            ended.set()

    peer = Peer(arguments.home, arguments.name, arguments.interface, tell, suites)
    await peer.start()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, ended.set)
    for name in arguments.join:
        await peer.join(name)
    say({"event": "ready", "peer_id": peer.peer_id, "tcp_port": peer.tcp_port})
    commands, number = Commands(peer, ended), 0
    reader = asyncio.StreamReader(limit=1 << 20)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    finish = asyncio.ensure_future(ended.wait())
    while not ended.is_set():
        line = asyncio.ensure_future(reader.readline())
        await asyncio.wait([line, finish], return_when=asyncio.FIRST_COMPLETED)
        if not line.done() or not line.result():
            line.cancel()
            # The end of the commands is no end of the peer: SIGTERM or `down` is.
            await finish
            break
        number += 1
        peer.tasks.start(commands.run(number, words_of(line.result().decode("utf-8"))))
    await peer.close()
    say({"event": "ended"})


def parsed():
    parser = argparse.ArgumentParser(
        prog="parley_peer", epilog=HELP, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--home", required=True, help="the folder for its identity and what it keeps")
    parser.add_argument("--name", required=True, help="the display name")
    parser.add_argument("--interface", required=True, help="such as eth0, or lo")
    parser.add_argument("--join", action="append", default=[], metavar="CHANNEL", help="an open channel")
    parser.add_argument("--suites", default="aesgcm,chachapoly", help="which it answers with, the preferred first")
    return parser.parse_args()


if __name__ == "__main__":
    asyncio.run(main(parsed()))
