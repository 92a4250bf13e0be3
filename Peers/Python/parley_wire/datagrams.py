"""Datagrams, their frames, fragments and direct messages (Datagrams.md)."""
from .keys import blake2b, first8, unseal
from .objects import SIGNATURE_BYTES
from .reading import Reader, Refused, bits

HEADER_BYTES = 44
DATAGRAM_BYTES_MIN = 60
DATAGRAM_BYTES_MAX = 1_232
MAGIC = b"PL"
VERSION = 1
FRAGMENTS_MAX = 40
MEDIA_IDS_MAX = 32


class Unopened(Exception):
    """Not a datagram of this channel; `reason`: header, tag or seal."""

    def __init__(self, reason):
        super().__init__(reason)
        self.reason = reason


def header(datagram):
    """Instance, tag and nonce."""
    if not DATAGRAM_BYTES_MIN <= len(datagram) <= DATAGRAM_BYTES_MAX:
        raise Unopened("header")
    if datagram[:4] != MAGIC + bytes([VERSION, 0]):
        raise Unopened("header")
    instance, tag = (int.from_bytes(datagram[start : start + 8], "big") for start in (4, 12))
    return instance, tag, datagram[20:HEADER_BYTES]


def open_datagram(datagram, channel):
    """The body."""
    instance, tag, nonce = header(datagram)
    if tag != channel.tag(instance):
        raise Unopened("tag")
    body = unseal(datagram[HEADER_BYTES:], datagram[:HEADER_BYTES], nonce, channel.datagram_key)
    if body is None:
        raise Unopened("seal")
    return body


def open_direct(sealed, datagram, sender, receiver, channel):
    """The plaintext of a direct frame, or None; `receiver` is the identity it is for."""
    _, _, nonce = header(datagram)
    key = receiver.pairwise_key(sender, channel.channel_id, sending=False)
    return unseal(sealed, datagram[:HEADER_BYTES], nonce, key)


def signed(data):
    reader = Reader(data)
    return {"signature": reader.bytes(SIGNATURE_BYTES, "signature").hex(), "object": reader.rest().hex()}


def media_ids(data):
    if len(data) % 32 or len(data) // 32 > MEDIA_IDS_MAX:
        raise Refused("malformed", "media IDs")
    return [data[start : start + 32].hex() for start in range(0, len(data), 32)]


def fragment(data):
    reader = Reader(data)
    group = reader.u64("fragment group")
    index = reader.u8("fragment index")
    count = reader.u8("fragment count")
    if count > FRAGMENTS_MAX or index >= count:
        raise Refused("out_of_range", "fragment index")
    part = reader.tail("fragment", 1, DATAGRAM_BYTES_MAX)
    return {"group": bits(group), "index": index, "count": count, "bytes": part.hex()}


def suspect(data):
    reader = Reader(data)
    value = {"peer": reader.bytes(32, "suspect").hex(), "incarnation": reader.varint("incarnation")}
    reader.finish()
    return value


FRAMES = {
    1: lambda data: {"type": "presence", **signed(data)},
    2: lambda data: {"type": "live", **signed(data)},
    3: lambda data: {"type": "entry", "bytes": data.hex()},
    4: lambda data: {"type": "fragment", "fragment": fragment(data)},
    5: lambda data: {"type": "direct", "bytes": data.hex()},
    6: lambda data: {"type": "suspect", **suspect(data)},
    7: lambda data: {"type": "who_has", "media": media_ids(data)},
    8: lambda data: {"type": "live_fragment", "fragment": fragment(data)},
}


def frames(body):
    reader = Reader(body)
    found = []
    while reader.remaining:
        kind = reader.varint("frame type")
        data = reader.block("frame", DATAGRAM_BYTES_MAX)
        if kind in FRAMES:
            found.append(FRAMES[kind](data))
    return found


def joined(fragments):
    """The entry that fragments make, or None while one is missing or when they are not what their group says."""
    parts = {}
    for value in fragments:
        if value["count"] == fragments[0]["count"]:
            parts.setdefault(value["index"], bytes.fromhex(value["bytes"]))
    if len(parts) != fragments[0]["count"]:
        return None
    whole = b"".join(parts[index] for index in sorted(parts))
    return whole if bits(first8(blake2b(32, whole))) == fragments[0]["group"] else None


def part(kind, data):
    if kind == 4:
        return {"type": "holding", "media": media_ids(data)}
    reader = Reader(data)
    if kind == 3:
        value = {"type": "acknowledge", "log": bits(reader.u64("log")), "number": reader.varint("number")}
    else:
        value = {"type": {1: "probe", 2: "echo"}[kind], "nonce": bits(reader.u64("nonce"))}
    reader.finish()
    return value


def direct(data):
    reader = Reader(data)
    value = {"counter": reader.varint("counter"), "parts": []}
    while reader.remaining:
        kind = reader.varint("part type")
        content = reader.block("part", DATAGRAM_BYTES_MAX)
        if 1 <= kind <= 4:
            value["parts"].append(part(kind, content))
    return value
