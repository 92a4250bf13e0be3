"""A download: sources, manifest, hashes, pieces; verified before anything is written (Media.md)."""
import asyncio
import os
import random
import shutil

from parley_wire import media, writing
from parley_wire.reading import Refused

from . import files, links, secure
from .pausing import now, pause

MANIFEST, PIECE_HASHES, BLOCK, HAVE = 0x01, 0x02, 0x03, 0x04
WHO_HAS_SECONDS, WHO_HAS_FOR = 0.4, 4
RUN_PIECES = 512
SILENCE_SECONDS, DROP_SECONDS = 2, 8
UNKNOWN, CHANGED, NOT_A_MEMBER, BUSY = 1, 2, 3, 4
UNKNOWN_MAX = 3


class Lied(Exception):
    """What a source sent does not verify: it is not asked again."""


class Declined(Exception):
    def __init__(self, reason):
        super().__init__(media.REFUSALS[reason])
        self.reason = reason


class Source:
    """A media session to a holder: requests out, answers in."""

    def __init__(self, session):
        self.session, self.number, self.waiting, self.rows = session, 0, {}, {}
        self.holds_all, self.pieces, self.news = False, set(), asyncio.Event()
        self.have_number = None

    def ask(self, kind, *fields):
        self.number += 1
        answer = self.waiting[self.number] = asyncio.get_running_loop().create_future()
        self.session.put(writing.media_message(kind, self.number, *fields))
        return answer

    def ask_row(self, media_id, number, first, count):
        """So many blocks of a file from `first` on, by one request; an answer to each."""
        answers = [asyncio.get_running_loop().create_future() for _ in range(count)]
        for at, answer in enumerate(answers, start=1):
            self.waiting[self.number + at] = answer
        fields = (media_id, number, first) + ((count,) if count > 1 else ())
        self.rows[self.number + 1] = answers
        self.session.put(writing.media_message(BLOCK, self.number + 1, *fields))
        self.number += count
        return answers

    async def asked(self, kind, wanted, *fields):
        value = await asyncio.wait_for(self.ask(kind, *fields), DROP_SECONDS)
        if value["type"] == "refused":
            raise Declined(value["reason"])
        if value["type"] != wanted:
            raise Lied(f"{value['type']} answers what asked for {wanted}")
        return value

    async def listen(self):
        try:
            while True:
                value = media.message(await self.session.receive())
                if value["type"] in ("holding_all", "holding_some"):
                    self._holding(value)
                if value["type"] == "refused" and self._is_row_refused(value):
                    continue
                answer = self.waiting.pop(value["number"], None)
                if answer is not None and not answer.done():
                    answer.set_result(value)
                elif value["number"] != self.have_number:
                    raise Refused("malformed", "media.number")
        except secure.BROKEN as error:
            for answer in self.waiting.values():
                if not answer.done():
                    answer.set_exception(OSError(f"the source has gone: {error}"))
            self.waiting = {}
            self.session.close()

    def _is_row_refused(self, value):
        """A refusal under a row's first number stands for all of it that was not answered."""
        left = [answer for answer in self.rows.get(value["number"], ()) if not answer.done()]
        for answer in left:
            answer.set_result(value)
        return bool(left)

    def _holding(self, value):
        if value["type"] == "holding_all":
            self.holds_all = True
        else:
            bits = bytes.fromhex(value["bitmap"])
            for at in range(8 * len(bits)):
                if bits[at // 8] & 0x80 >> at % 8:
                    self.pieces.add(value["first"] + at)
        self.news.set()

    def has(self, piece):
        return self.holds_all or piece in self.pieces


class Download:
    def __init__(self, owner, media_id, rooms, target):
        self.owner, self.peer, self.media_id, self.rooms, self.target = owner, owner.peer, media_id, rooms, target
        self.part = target.with_name(f".{target.name}.{os.urandom(4).hex()}.part")
        self.content, self.failed = None, set()
        self.open, self.assigned = set(), {}
        self.is_done, self.ended, self.news = asyncio.Event(), None, asyncio.Event()
        self.received_from = {}

    async def run(self):
        working = {}
        asking = self.peer.tasks.start(self._who_has())
        try:
            while not self.is_done.is_set():
                for peer_id in list(self.owner.sources.get(self.media_id, {})):
                    if peer_id not in working and peer_id not in self.failed:
                        working[peer_id] = self.peer.tasks.start(self._from(peer_id))
                for peer_id in [peer_id for peer_id, task in working.items() if task.done()]:
                    del working[peer_id]
                self.owner.news.clear()
                waiting = [asyncio.ensure_future(self.owner.news.wait()), asyncio.ensure_future(self.is_done.wait())]
                await asyncio.wait(waiting, timeout=WHO_HAS_SECONDS, return_when=asyncio.FIRST_COMPLETED)
                for wait in waiting:
                    wait.cancel()
        finally:
            asking.cancel()
            for task in working.values():
                task.cancel()
            if not self.is_done.is_set():
                self._forget()
        if self.ended:
            raise self.ended

    async def _who_has(self):
        """Again every 400 ms for 4 s; then more seldom, for who comes later."""
        begun = now()
        while True:
            for room in self.rooms:
                room.send([writing.who_has([self.media_id])])
            await pause(WHO_HAS_SECONDS if now() - begun < WHO_HAS_FOR else WHO_HAS_FOR)

    async def _from(self, peer_id):
        """Works with one source until it fails or all is here."""
        found = next(
            ((room, member) for room in self.rooms for member in room.members.there() if member.peer_id == peer_id),
            None)
        if found is None or not found[1].place:
            self._without(peer_id)
            return
        member = found[1]
        address = (member.place[1][0], member.tcp_port, *member.place[1][2:])
        session = listening = None
        try:
            reader, writer = await asyncio.wait_for(links.connect(address), secure.HANDSHAKE_SECONDS)
            session = await secure.dial(reader, writer, secure.MEDIA, self.peer, peer_id)
            source = Source(session)
            listening = self.peer.tasks.start(source.listen())
            await self._have(source)
            await self._manifest(source)
            await self._hashes(source)
            await self._pieces(source, peer_id)
        except Lied:
            self.failed.add(peer_id)
        except (Declined, *secure.BROKEN):
            self._without(peer_id)
        finally:
            if listening:
                listening.cancel()
            if session:
                session.close()

    def _without(self, peer_id):
        """Not now; when it says again that it holds it, it is asked again."""
        self.owner.sources.get(self.media_id, {}).pop(peer_id, None)

    async def _have(self, source):
        for _ in range(UNKNOWN_MAX):
            try:
                answer = source.ask(HAVE, self.media_id, 0)
                source.have_number = source.number
                value = await asyncio.wait_for(answer, DROP_SECONDS)
                if value["type"] == "refused":
                    raise Declined(value["reason"])
                return
            except Declined as declined:
                if declined.reason != BUSY:
                    raise
                await pause(WHO_HAS_SECONDS)
        raise Declined(BUSY)

    async def _manifest(self, source):
        if self.content is not None:
            return
        data = b""
        while True:
            value = await source.asked(MANIFEST, "manifest_part", self.media_id, len(data))
            if value["offset"] != len(data):
                raise Lied("another part of the manifest")
            data += bytes.fromhex(value["bytes"])
            if len(data) >= value["total"]:
                break
        if media.sha256(data) != self.media_id:
            raise Lied("another manifest")
        if self.content is None:
            try:
                content = files.Content(data)
            except Refused as refusal:
                self.ended = refusal  # the right bytes say nothing: no other source can help
                self.is_done.set()
                raise
            self._begin(content)

    def _begin(self, content):
        """The part, empty."""
        content.is_at(self.part)
        for number, path in enumerate(content.paths):
            path.parent.mkdir(parents=True, exist_ok=True)
            with open(path, "xb") as file:
                file.truncate(content.files[number]["size"])
        self.content, self.open = content, set(range(content.count))
        self._is_it_done()

    async def _hashes(self, source):
        for number, file in enumerate(self.content.files):
            count = self.content.piece_count(file)
            run = min(RUN_PIECES, media.power_of_two(count)) if count > 1 else 1
            for first in range(0, count if count > 1 else 0, run):
                if self.content.hashes[number][first] is not None:
                    continue
                value = await source.asked(PIECE_HASHES, "piece_hashes_part", self.media_id, number, first, run)
                data = bytes.fromhex(value["bytes"])
                hashes = [data[at : at + 32] for at in range(0, len(data), 32)]
                found = files.is_run_of(bytes.fromhex(file["root"]), count, first, run, hashes)
                if found is None:
                    raise Lied("hashes that do not lead to the root")
                self.content.hashes[number][first : first + len(found)] = found
        # Whoever downloads serves what is verified, too.
        self.owner._serve(self.content, [room.channel_id for room in self.rooms])

    async def _pieces(self, source, peer_id):
        while not self.is_done.is_set():
            piece = self._next_piece(source)
            if piece is None:
                source.news.clear()
                await pause(0.2, until=source.news)
                if source.session.is_closed:
                    raise OSError("the source has gone")
                continue
            self.assigned[piece] = now()
            try:
                await self._piece(source, piece, peer_id)
            finally:
                self.assigned.pop(piece, None)

    def _next_piece(self, source):
        free = [piece for piece in self.open if source.has(piece) and piece not in self.assigned]
        if free:
            return random.choice(free)
        slow = [
            piece for piece, since in self.assigned.items() if source.has(piece) and now() - since > SILENCE_SECONDS]
        return random.choice(slow) if slow else None

    async def _piece(self, source, piece, peer_id):
        number, at = self.content.place(piece)
        size = self.content.piece_size(number, at)
        first = at * media.LEAVES_PER_PIECE
        count = -(-size // media.BLOCK_BYTES)
        answers = source.ask_row(self.media_id, number, first, count)
        data = bytearray()
        try:
            for answer in answers:
                value = await asyncio.wait_for(asyncio.shield(answer), DROP_SECONDS)
                if value["type"] == "refused":
                    raise Declined(value["reason"])
                expected = min(media.BLOCK_BYTES, size - len(data))
                if value["type"] != "block_data" or len(value["bytes"]) != 2 * expected:
                    raise Lied("not the block that was asked for")
                data += bytes.fromhex(value["bytes"])
        finally:
            for answer in answers:
                # What is not awaited any more must not be reported as an error nobody saw.
                answer.add_done_callback(lambda done: done.cancelled() or done.exception())
        source.rows = {first: row for first, row in source.rows.items() if not all(answer.done() for answer in row)}
        if not self.content.verifies(number, at, bytes(data)):
            raise Lied("a piece that does not verify")
        if piece in self.open:
            with open(self.content.paths[number], "r+b") as file:
                os.pwrite(file.fileno(), data, at * media.PIECE_BYTES)
            self.open.discard(piece)
            self.content.here.add(piece)
            self.received_from[peer_id] = self.received_from.get(peer_id, 0) + 1
            self._is_it_done()

    def _is_it_done(self):
        if self.open or self.is_done.is_set():
            return
        for path in self.content.paths:
            with open(path, "rb") as file:
                os.fsync(file.fileno())
        if self.target.exists():
            self.ended = FileExistsError(str(self.target))
        else:
            os.rename(self.part, self.target)
            self.content.is_at(self.target)
            self.content.here = set(range(self.content.count))
            self.owner.keep(self.content, [room.channel_id for room in self.rooms])
        self.is_done.set()

    def _forget(self):
        if self.content is not None:
            self.owner.held.pop(self.media_id, None)
            self.owner.channels.pop(self.media_id, None)
        if self.part.is_dir():
            shutil.rmtree(self.part, ignore_errors=True)
        else:
            self.part.unlink(missing_ok=True)
