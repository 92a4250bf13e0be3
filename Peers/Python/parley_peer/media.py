"""Media: what is shared and served (Media.md, Messages)."""
import asyncio
import pathlib

from parley_wire import media, messages, writing
from parley_wire.reading import Refused

from . import files, secure
from .download import Download
from .pausing import now, pause

MANIFEST_PART, PIECE_HASHES_PART, BLOCK_DATA, HOLDING_ALL, HOLDING_SOME, REFUSED = 0x81, 0x82, 0x83, 0x84, 0x85, 0x86
UNKNOWN, CHANGED, NOT_A_MEMBER, BUSY = 1, 2, 3, 4
HAVE_PER_SECOND, HAVES_MAX = 10, 64


class Media:
    def __init__(self, peer):
        self.peer = peer
        # What is served: content by media ID, and the channels it is served in.
        self.held, self.channels = {}, {}
        self.sources, self.news = {}, asyncio.Event()
        self.downloads = {}

    def joined(self, room):
        """What was shared in the channel in an earlier run is served again."""
        for media_id, channel_id, path, manifest, hashes in self.peer.store.media():
            if channel_id == room.channel_id and pathlib.Path(path).exists():
                content = self.held.get(media_id)
                if content is None:
                    pieces = [hashes[at : at + 32] for at in range(0, len(hashes), 32)]
                    content = files.Content(manifest)
                    counts = [content.piece_count(file) for file in content.files]
                    content.hashes = [[pieces.pop(0) for _ in range(count)] for count in counts]
                    content.is_at(path)
                    content.here = set(range(content.count))
                self._serve(content, [channel_id])

    def _serve(self, content, channel_ids):
        self.held[content.media_id] = content
        self.channels.setdefault(content.media_id, set()).update(channel_ids)

    def keep(self, content, channel_ids):
        """Serves it from now on, in later runs as well."""
        self._serve(content, channel_ids)
        hashes = b"".join(digest for pieces in content.hashes for digest in pieces)
        for channel_id in channel_ids:
            self.peer.store.keep_media(content.media_id, channel_id, content.path, content.manifest_bytes, hashes)

    async def share(self, room, path, kind="file", mime="application/octet-stream", own=None):
        """The media ID and the number of the entry that announces it. `own`: members besides those of all media."""
        content = await asyncio.to_thread(files.shared, path, mime)
        self.keep(content, [room.channel_id])
        members = {
            "media_id": writing.base32(content.media_id), "file_name": pathlib.Path(path).name,
            "size": sum(file["size"] for file in content.files), "mime": content.mime, **(own or {})}
        _, number = await room.say(messages.KINDS[kind], kind, members)
        return content.media_id, number

    def serves(self, media_id, room):
        """Whether who asks in this room is told that it is here."""
        content = self.held.get(media_id)
        return content is not None and room.channel_id in self.channels[media_id] and content.knows_hashes()

    def holds(self, member, media_ids):
        for media_id in media_ids:
            self.sources.setdefault(media_id, {})[member.peer_id] = now()
        self.news.set()

    def announced(self, media_id):
        """The rooms in which it was, or all."""
        text = writing.base32(media_id)
        names = ("media_id", "big_media_id", "thumbnail_media_id")
        return [
            room for room in self.peer.rooms.values()
            if any(text in [found.get(name) for name in names] for found in room.history.messages())
        ] or list(self.peer.rooms.values())

    async def download(self, media_id, target, within=300):
        """The path, when every byte is verified; replaces nothing."""
        target = pathlib.Path(target)
        if target.exists():
            raise FileExistsError(str(target))
        download = Download(self, media_id, self.announced(media_id), target)
        self.downloads[media_id] = download
        try:
            await asyncio.wait_for(download.run(), within)
        finally:
            del self.downloads[media_id]
        return target

    # Serving

    async def serve(self, session):
        telling = {}
        try:
            while True:
                value = media.message(await session.receive())
                if value["type"] == "cancel":
                    for number in range(value["number"], value["number"] + value["count"]):
                        telling.pop(number, None)
                    continue
                if value["type"] == "block":
                    await self._blocks(session, value)
                    continue
                answer = self._answer(session, value)
                if value["type"] == "have" and answer[0] == HOLDING_SOME:
                    if len(telling) >= HAVES_MAX:
                        telling.pop(next(iter(telling)))
                    telling[value["number"]] = value
                    self.peer.tasks.start(self._tell_more(session, value, telling))
                await session.send(writing.media_message(answer[0], value["number"], *answer[1:]))
        except secure.BROKEN:
            pass
        finally:
            telling.clear()
            session.close()

    async def _blocks(self, session, value):
        """So many in a row, each under a number of its own."""
        for at in range(value["count"]):
            answer = self._answer(session, {**value, "index": value["index"] + at})
            await session.send(writing.media_message(answer[0], value["number"] + at, *answer[1:]))

    def _answer(self, session, value):
        """Type and fields."""
        if "media" not in value:
            raise Refused("out_of_range", "media.type")  # an answer to whom asks nothing
        media_id = bytes.fromhex(value["media"])
        shared = self.channels.get(media_id, set()) & {room.channel_id for room in session.rooms}
        if not shared & self.peer.rooms.keys():
            # The same whether it is held elsewhere or nowhere: that is not for them to know.
            return REFUSED, bytes([NOT_A_MEMBER])
        content = self.held[media_id]
        return {
            "manifest": self._manifest, "piece_hashes": self._piece_hashes, "block": self._block, "have": self._have,
        }[value["type"]](content, value)

    def _manifest(self, content, value):
        data, offset = content.manifest_bytes, value["offset"]
        if offset >= len(data):
            return REFUSED, bytes([UNKNOWN])
        return MANIFEST_PART, len(data), offset, data[offset : offset + media.MANIFEST_PART_BYTES_MAX]

    def _piece_hashes(self, content, value):
        number, first, count = value["file"], value["first"], value["count"]
        hashes = content.hashes[number] if number < len(content.files) else []
        if first >= len(hashes) or count != media.power_of_two(count) or first % count \
                or count > media.power_of_two(len(hashes)):
            return REFUSED, bytes([UNKNOWN])
        if None in hashes:
            return REFUSED, bytes([BUSY])
        return PIECE_HASHES_PART, b"".join(hashes[first : first + count] + files.uncles(hashes, first, count))

    def _block(self, content, value):
        number, offset = value["file"], value["index"] * media.BLOCK_BYTES
        if number >= len(content.files) or offset >= content.files[number]["size"]:
            return REFUSED, bytes([UNKNOWN])
        if content.first_pieces[number] + offset // media.PIECE_BYTES not in content.here:
            return REFUSED, bytes([UNKNOWN])
        data = content.read(number, offset, min(media.BLOCK_BYTES, content.files[number]["size"] - offset))
        return (REFUSED, bytes([CHANGED])) if data is None else (BLOCK_DATA, data)

    def _have(self, content, value):
        if not content.knows_hashes():
            return REFUSED, bytes([BUSY])
        if len(content.here) == content.count:
            return (HOLDING_ALL,)
        if value["first"] > content.count:
            return REFUSED, bytes([UNKNOWN])
        return HOLDING_SOME, content.count, value["first"], bitmap(content, value["first"])

    async def _tell_more(self, session, value, telling):
        content = self.held[bytes.fromhex(value["media"])]
        told = len(content.here)
        while telling.get(value["number"]) is value:
            await pause(1 / HAVE_PER_SECOND)
            if len(content.here) != told and telling.get(value["number"]) is value:
                told = len(content.here)
                answer = self._have(content, value)
                session.put(writing.media_message(answer[0], value["number"], *answer[1:]))
                if answer[0] == HOLDING_ALL:
                    telling.pop(value["number"], None)


def bitmap(content, first):
    count = min(content.count - first, 8 * media.BITMAP_BYTES_MAX)
    bits = bytearray((count + 7) // 8)
    for piece in content.here:
        if first <= piece < first + count:
            bits[(piece - first) // 8] |= 0x80 >> (piece - first) % 8
    return bytes(bits)
