"""Writes again what the decoders read: their values in, the bytes out. For the vectors, which give both."""
from parley_wire import keys, writing
from parley_wire.reading import block, varint


def unhex(text):
    return bytes.fromhex(text)


def number(text):
    return int(text, 16)


def bytes_of(text):
    return text.encode("utf-8", "surrogateescape")


def presence(value):
    return writing.presence(
        unhex(value["author"]), number(value["instance"]), value["counter"], value["incarnation"], value["tcp_port"],
        value["interval"], number(value["nonce"]), value["head"], unhex(value["digest"]), value["lamport"],
        value["wants_acknowledgement"], number(value["status_hash"]), bytes_of(value["status"]))


def live(value):
    return writing.live(unhex(value["author"]), number(value["instance"]), value["counter"], bytes_of(value["json"]))


def entry(value):
    return b"".join((
        unhex(value["author"]), unhex(value["log"]), varint(value["number"]), varint(value["lamport"]),
        varint(value["timestamp"]), bytes([value["hidden"]]), varint(len(value["messages"])),
        *(varint(item["kind"]) + unhex(item["hash"]) for item in value["messages"]), unhex(value["signature"]),
        *(block(bytes_of(item["body"] or "")) for item in value["messages"])))


def part(value):
    return {
        "probe": lambda: writing.probe(number(value["nonce"])),
        "echo": lambda: writing.echo(number(value["nonce"])),
        "acknowledge": lambda: writing.acknowledge(number(value["log"]), value["number"]),
        "holding": lambda: writing.holding([unhex(media) for media in value["media"]]),
    }[value["type"]]()


def direct(value):
    return varint(value["counter"]) + b"".join(part(item) for item in value["parts"])


def fragment(value):
    return unhex(value["group"]) + bytes([value["index"], value["count"]]) + unhex(value["bytes"])


def frame(value):
    return {
        "presence": lambda: writing.frame(writing.PRESENCE_FRAME, unhex(value["signature"] + value["object"])),
        "live": lambda: writing.frame(writing.LIVE_FRAME, unhex(value["signature"] + value["object"])),
        "entry": lambda: writing.frame(writing.ENTRY_FRAME, unhex(value["bytes"])),
        "fragment": lambda: writing.frame(writing.FRAGMENT_FRAME, fragment(value["fragment"])),
        "live_fragment": lambda: writing.frame(writing.LIVE_FRAGMENT_FRAME, fragment(value["fragment"])),
        "direct": lambda: writing.frame(writing.DIRECT_FRAME, unhex(value["bytes"])),
        "suspect": lambda: writing.suspect(unhex(value["peer"]), value["incarnation"]),
        "who_has": lambda: writing.who_has([unhex(media) for media in value["media"]]),
    }[value["type"]]()


def frames(values):
    return b"".join(frame(value) for value in values)


def _heads(value, channel):
    buckets = int.from_bytes(unhex(value["buckets"]), "little")
    which = [bucket for bucket in range(256) if buckets >> bucket & 1]
    found = [(unhex(head["author"]), number(head["log"]), head["number"], head["floor"]) for head in value["heads"]]
    return writing.heads(
        channel, found, value["last"], value["answer_wanted"], None if len(which) == 256 else which)


def session(value):
    channel = unhex(value.get("channel", ""))
    return {
        "heads": lambda: _heads(value, channel),
        "want": lambda: writing.want(channel, value["request"], [
            (unhex(item["author"]), number(item["log"]), item["from"], item["through"]) for item in value["ranges"]]),
        "entries": lambda: writing.entries(
            channel, value["request"], value["last"], [unhex(data) for data in value["entries"]]),
        "peer_message": lambda: writing.peer_message(value["message_id"], bytes_of(value["json"])),
        "live_peer_message": lambda: writing.live_peer_message(value["message_id"], bytes_of(value["json"])),
        "peer_stored": lambda: writing.peer_stored(value["message_id"]),
        "ping": lambda: writing.ping(number(value["nonce"])),
        "pong": lambda: writing.pong(number(value["nonce"])),
        "prove": lambda: writing.prove([unhex(proof) for proof in value["proofs"]]),
        "presence": lambda: writing.session_presence(channel, unhex(value["signature"] + value["object"])),
        "live": lambda: writing.session_live(channel, unhex(value["signature"] + value["object"])),
        "closing": writing.closing,
        "direct": lambda: writing.session_direct(channel, [part(item) for item in value["parts"]]),
        "generation": lambda: b"\x0e" + channel + unhex(value["secret"] + value["signature"] + value["object"]),
        "refused": lambda: b"\x0f" + channel + bytes([value["reason"]]),
        "summary": lambda: writing.summary(
            channel, {item["bucket"]: unhex(item["digest"]) for item in value["buckets"]}),
    }[value["type"]]()


# The type, and the fields in their order: numbers as they are, other values as bytes.
MEDIA = {
    "manifest": (0x01, "media", "offset"), "piece_hashes": (0x02, "media", "file", "first", "count"),
    "block": (0x03, "media", "file", "index"), "have": (0x04, "media", "first"), "cancel": (0x05,),
    "manifest_part": (0x81, "total", "offset", "bytes"), "piece_hashes_part": (0x82, "bytes"),
    "block_data": (0x83, "bytes"), "holding_all": (0x84,), "holding_some": (0x85, "count", "first", "bitmap"),
    "refused": (0x86, "reason"),
}


def media(value):
    kind, *names = MEDIA[value["type"]]
    fields = [value[name] if isinstance(value[name], int) else unhex(value[name]) for name in names]
    # Of one block nothing is said.
    if value["type"] in ("block", "cancel") and value["count"] > 1:
        fields.append(value["count"])
    return writing.media_message(kind, value["number"], *fields)


def manifest(value):
    return writing.manifest(value["mime"] or "", [
        (file["path"], file["size"], unhex(file["root"]), file["executable"]) for file in value["files"]])


def grant(value):
    return b"".join((
        unhex(value["inviter"]), unhex(value["invite_id"]), bytes([("member", "admin").index(value["role"])]),
        *(varint(value[name]) for name in ("issued", "expires", "uses")), unhex(value["signature"])))


# Types whose members of their own are read as they are written, and in that order; what acts hold is not.
WRITTEN = (
    "status", "raise_hand", "text", "photo", "file", "voice", "video", "location", "custom", "attribute", "typing",
    "combine", "recall", "edit", "react", "pin", "read", "cmd")
COMMON = ("type", "sender_id", "display_name", "message_id", "timestamp")


def message(value):
    """The JSON of a type that this version has."""
    peer = keys.unbase32(value["sender_id"])
    if value["type"] == "status":
        return writing.status(peer, value["display_name"], value["online"])
    if value["type"] == "raise_hand":
        return writing.hand(peer, value["display_name"], value["raised"])
    if value["type"] == "typing":
        return writing.typing(peer, value["display_name"], value["typing"])
    if value["type"] == "attribute":
        # Of the flags, those that are not as they are where nothing is said.
        value = {**value, "overwrite": None if value["overwrite"] else 0}
    # What is missing, or false or empty as if it were, is not written; *ext* is.
    own = {
        name: inner for name, inner in value.items()
        if name not in COMMON and inner is not None and (inner is not False or name == "on")
        and (inner != {} or name == "ext")}
    if "overwrite" in own:
        own["overwrite"] = False
    return writing.kept(
        peer, value["display_name"], value["message_id"], value["timestamp"], value["type"], own)


LAYOUTS = {
    "presence": presence, "live": live, "entry": entry, "direct": direct, "frames": frames, "session": session,
    "media": media, "manifest": manifest, "message": message, "grant": grant,
}
