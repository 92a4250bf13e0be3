"""Presence, live objects and entries (Objects.md)."""
from .keys import blake2b, first8, is_signed, object_message
from .reading import Reader, Refused, bits

SIGNATURE_BYTES = 64
STATUS_BYTES_MAX = 512
MESSAGE_BYTES_MAX = 30_000
ENTRY_BYTES_MAX = 31_600
MESSAGES_PER_ENTRY_MAX = 256
MESSAGE_BYTES_LEFT_MIN = 34
DIGEST_BYTES = 16
GENERATION_MAX = 0xFFFF_FFFF
EXCLUDED_MAX = 8


def shown(data):
    """Bytes that ought to be text, without losing any."""
    return data.decode("utf-8", "surrogateescape")


def presence(data):
    reader = Reader(data)
    value = {
        "author": reader.bytes(32, "author").hex(),
        "instance": bits(reader.u64("instance")),
        "counter": reader.varint("counter"),
        "incarnation": reader.varint("incarnation"),
        "tcp_port": reader.u16("tcp port"),
        "interval": reader.varint("interval"),
        "nonce": bits(reader.u64("nonce")),
        "head": reader.varint("head"),
        "digest": reader.bytes(DIGEST_BYTES, "digest").hex(),
        "lamport": reader.varint("lamport"),
        "wants_acknowledgement": reader.flags("flags", 1) == 1,
        "status_hash": bits(reader.u64("status hash")),
    }
    status = reader.block("status", STATUS_BYTES_MAX)
    reader.finish()
    if status and bits(first8(blake2b(32, status))) != value["status_hash"]:
        raise Refused("malformed", "status hash")
    value["status"] = shown(status)
    return value


def live(data):
    reader = Reader(data)
    value = {
        "author": reader.bytes(32, "author").hex(),
        "instance": bits(reader.u64("instance")),
        "counter": reader.varint("counter"),
        "json": shown(reader.block("json", MESSAGE_BYTES_MAX)),
    }
    reader.finish()
    return value


def statement(data):
    """Who made a generation of an owned channel."""
    reader = Reader(data)
    value = {"author": reader.bytes(32, "author").hex(), "generation": reader.varint("generation")}
    if value["generation"] > GENERATION_MAX:
        raise Refused("out_of_range", "generation")
    value["hash"] = reader.bytes(32, "hash").hex()
    if reader.remaining % 32:
        raise Refused("trailing")
    if reader.remaining // 32 > EXCLUDED_MAX:
        raise Refused("too_many", "excluded")
    value["excluded"] = [reader.bytes(32, "excluded").hex() for _ in range(reader.remaining // 32)]
    return value


def entry(data):
    if len(data) > ENTRY_BYTES_MAX:
        raise Refused("too_long", "entry")
    reader = Reader(data)
    value = {"author": reader.bytes(32, "author").hex(), "log": bits(reader.u64("log"))}
    value["number"] = reader.varint("number")
    if value["number"] == 0:
        raise Refused("out_of_range", "number")
    value["lamport"] = reader.varint("lamport")
    value["timestamp"] = reader.varint("timestamp")
    value["hidden"] = reader.flags("flags", 1) == 1
    count = reader.count("messages", MESSAGES_PER_ENTRY_MAX, MESSAGE_BYTES_LEFT_MIN)
    if count == 0:
        raise Refused("out_of_range", "messages")
    heads = [(reader.varint("kind"), reader.bytes(32, "hash")) for _ in range(count)]
    signature = reader.bytes(SIGNATURE_BYTES, "signature")
    value["messages"] = []
    for kind, digest in heads:
        body = reader.block("body", MESSAGE_BYTES_MAX)
        if body and blake2b(32, body) != digest:
            raise Refused("malformed", "body")
        value["messages"].append({"kind": kind, "hash": digest.hex(), "body": shown(body) if body else None})
    value["signature"] = signature.hex()
    reader.finish()
    return value


INVITE_ID_BYTES = 16
GRANT_ROLES = ("member", "admin")


def grant(data):
    reader = Reader(data)
    value = {"inviter": reader.bytes(32, "inviter").hex()}
    value["invite_id"] = reader.bytes(INVITE_ID_BYTES, "invite id").hex()
    value["role"] = GRANT_ROLES[reader.flags("role", 1)]
    for field in ("issued", "expires", "uses"):
        value[field] = reader.varint(field)
    value["signature"] = reader.bytes(SIGNATURE_BYTES, "signature").hex()
    reader.finish()
    return value


def is_genuine_grant(data, channel_id):
    value = grant(data)
    message = object_message("grant", channel_id, 0, data[:-SIGNATURE_BYTES])
    return is_signed(data[-SIGNATURE_BYTES:], bytes.fromhex(value["inviter"]), message)


def signed_part(data):
    """The bytes of a well-formed entry that its signature covers, and the signature."""
    reader = Reader(data)
    reader.bytes(40, "author and log")
    for field in ("number", "lamport", "timestamp"):
        reader.varint(field)
    reader.u8("flags")
    for _ in range(reader.varint("messages")):
        reader.varint("kind")
        reader.bytes(32, "hash")
    return data[: reader.at], reader.bytes(SIGNATURE_BYTES, "signature")


def is_genuine_entry(data, channel_id):
    value = entry(data)
    part, signature = signed_part(data)
    message = object_message("entry", channel_id, int(value["log"], 16), part)
    return is_signed(signature, bytes.fromhex(value["author"]), message)


def is_genuine(context, signature, encoded, channel_id):
    """Of a presence or a live object."""
    value = {"presence": presence, "live": live}[context](encoded)
    message = object_message(context, channel_id, int(value["instance"], 16), encoded)
    return is_signed(signature, bytes.fromhex(value["author"]), message)
