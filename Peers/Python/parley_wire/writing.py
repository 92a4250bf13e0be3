"""Values in, bytes out: what a peer says (Objects.md, Datagrams.md, Sessions.md, Media.md, Messages.md)."""
from .datagrams import HEADER_BYTES, MAGIC, MEDIA_IDS_MAX, VERSION
from .keys import base32, blake2b, first8, is_control, object_message, seal
from .reading import block, varint
from .sessions import BUCKETS_BYTES, PREFACE_BYTES

ENTRY_IN_FRAME_BYTES_MAX = 1_169
FRAGMENT_PART_BYTES = 1_159
PRESENCE_FRAME, LIVE_FRAME, ENTRY_FRAME, FRAGMENT_FRAME = 1, 2, 3, 4
DIRECT_FRAME, SUSPECT_FRAME, WHO_HAS_FRAME, LIVE_FRAGMENT_FRAME = 5, 6, 7, 8
PROBE, ECHO, ACKNOWLEDGE, HOLDING = 1, 2, 3, 4
LAST, SEND_YOURS, OF_BUCKETS = 1, 2, 4
HIDDEN = 1
WANTS_ACKNOWLEDGEMENT = 1
ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}


def u64(value):
    return value.to_bytes(8, "big")


# JSON


def json_text(value):
    """The one spelling that writers use; members in the order given."""
    if isinstance(value, dict):
        return "{" + ",".join(f"{json_text(name)}:{json_text(inner)}" for name, inner in value.items()) + "}"
    if value is None:
        return "null"
    if isinstance(value, (list, tuple)):
        return "[" + ",".join(json_text(inner) for inner in value) + "]"
    if isinstance(value, (int, float)):
        return str(value).lower()
    return '"' + "".join(
        ESCAPES.get(sign) or (f"\\u{ord(sign):04x}" if is_control(sign) else sign) for sign in value) + '"'


def json_message(members):
    return json_text(members).encode("utf-8")


def sender(peer_id, name):
    return {"display_name": name, "sender_id": base32(peer_id)}


def status(peer_id, name, online):
    word = "online" if online else "offline"
    return json_message({"sender": sender(peer_id, name), "body": word, "type": "status"})


def typing(peer_id, name, is_typing):
    word = "true" if is_typing else "false"
    return json_message({"sender": sender(peer_id, name), "body": word, "type": "typing"})


def hand(peer_id, name, raised):
    word = "true" if raised else "false"
    return json_message({"type": "raise_hand", "sender": sender(peer_id, name), "body": word})


def kept(peer_id, name, message_id, timestamp, kind, own):
    """A message that is kept; `own`: the members of its kind, in the order of the examples."""
    common = {"sender": sender(peer_id, name), "message_id": message_id, "timestamp": timestamp, "type": kind}
    return json_message({**common, **own})


# Objects


def presence(
    author, instance, counter, incarnation, tcp_port, interval, nonce, head, digest, lamport, wants_acknowledgement,
    status_hash, status_json,
):
    return b"".join((
        author, u64(instance), varint(counter), varint(incarnation), tcp_port.to_bytes(2, "big"), varint(interval),
        u64(nonce), varint(head), digest, varint(lamport), bytes([WANTS_ACKNOWLEDGEMENT * wants_acknowledgement]),
        u64(status_hash), block(status_json)))


def live(author, instance, counter, json):
    return author + u64(instance) + varint(counter) + block(json)


def signed(identity, context, channel_id, instance, encoded):
    """The signature, and behind it what was signed."""
    return identity.sign(object_message(context, channel_id, instance, encoded)) + encoded


def entry(identity, channel_id, log, number, lamport, timestamp, hidden, messages):
    """`messages`: pairs of kind and JSON."""
    part = b"".join((
        identity.peer_id, u64(log), varint(number), varint(lamport), varint(timestamp), bytes([HIDDEN * hidden]),
        varint(len(messages)), *(varint(kind) + blake2b(32, json) for kind, json in messages)))
    signature = identity.sign(object_message("entry", channel_id, log, part))
    return part + signature + b"".join(block(json) for _, json in messages)


# Datagrams


def frame(kind, data):
    return varint(kind) + block(data)


def suspect(peer_id, incarnation):
    return frame(SUSPECT_FRAME, peer_id + varint(incarnation))


def who_has(media_ids):
    return frame(WHO_HAS_FRAME, b"".join(media_ids[:MEDIA_IDS_MAX]))


def entry_frames(encoded):
    """The frames an entry goes in, each for a datagram of its own."""
    return _split(encoded, ENTRY_FRAME, FRAGMENT_FRAME)


def live_frames(signed_object):
    """The frames a signed live object goes in, each for a datagram of its own."""
    return _split(signed_object, LIVE_FRAME, LIVE_FRAGMENT_FRAME)


def _split(encoded, whole, fragment):
    if len(encoded) <= ENTRY_IN_FRAME_BYTES_MAX:
        return [frame(whole, encoded)]
    group = u64(first8(blake2b(32, encoded)))
    parts = [encoded[at : at + FRAGMENT_PART_BYTES] for at in range(0, len(encoded), FRAGMENT_PART_BYTES)]
    return [
        frame(fragment, group + bytes([index, len(parts)]) + part) for index, part in enumerate(parts)]


def probe(nonce):
    return varint(PROBE) + block(u64(nonce))


def echo(nonce):
    return varint(ECHO) + block(u64(nonce))


def acknowledge(log, number):
    return varint(ACKNOWLEDGE) + block(u64(log) + varint(number))


def holding(media_ids):
    return varint(HOLDING) + block(b"".join(media_ids[:MEDIA_IDS_MAX]))


def datagram(channel, instance, nonce, frames, direct=None):
    """`direct`: a pairwise key and the plaintext of a direct message, the last frame."""
    header = MAGIC + bytes([VERSION, 0]) + u64(instance) + u64(channel.tag(instance)) + nonce
    assert len(header) == HEADER_BYTES
    body = b"".join(frames)
    if direct is not None:
        key, plain = direct
        body += frame(DIRECT_FRAME, seal(plain, header, nonce, key))
    return header + seal(body, header, nonce, channel.datagram_key)


# Sessions


def preface(role_letter, purpose, suites):
    data = b"PLY" + role_letter + bytes([VERSION, purpose, suites, 0])
    assert len(data) == PREFACE_BYTES
    return data


def identity_proof(identity, instance, role, handshake_hash):
    return identity.peer_id + u64(instance) + identity.sign(b"parley/1/id" + bytes([role]) + handshake_hash)


def heads(channel_id, found, is_last, send_yours, buckets=None):
    """`found`: author, log, number, floor of each."""
    flags = LAST * is_last | SEND_YOURS * send_yours | OF_BUCKETS * (buckets is not None)
    which = b""
    if buckets is not None:
        which = sum(1 << bucket for bucket in buckets).to_bytes(BUCKETS_BYTES, "little")
    listed = (author + u64(log) + varint(number) + varint(floor) for author, log, number, floor in found)
    return b"\x01" + channel_id + bytes([flags]) + which + varint(len(found)) + b"".join(listed)


def want(channel_id, request, ranges):
    listed = (author + u64(log) + varint(first) + varint(last) for author, log, first, last in ranges)
    return b"\x02" + channel_id + varint(request) + varint(len(ranges)) + b"".join(listed)


def entries(channel_id, request, is_last, encoded):
    flags = bytes([LAST * is_last])
    return b"\x03" + channel_id + varint(request) + flags + b"".join(block(entry) for entry in encoded)


def peer_message(message_id, json):
    return b"\x04" + block(message_id.encode("utf-8")) + block(json)


def live_peer_message(message_id, json):
    return b"\x10" + block(message_id.encode("utf-8")) + block(json)


def peer_stored(message_id):
    return b"\x05" + block(message_id.encode("utf-8"))


def ping(nonce):
    return b"\x06" + u64(nonce)


def pong(nonce):
    return b"\x07" + u64(nonce)


def prove(proofs):
    return b"\x08" + b"".join(proofs)


def session_presence(channel_id, signed_object):
    return b"\x09" + channel_id + signed_object


def session_live(channel_id, signed_object):
    return b"\x0a" + channel_id + signed_object


def closing():
    return b"\x0b"


def session_direct(channel_id, parts):
    return b"".join((b"\x0c", channel_id, varint(0), *parts))


def summary(channel_id, digests):
    """`digests`: by bucket."""
    return b"\x0d" + channel_id + b"".join(bytes([bucket]) + digests[bucket] for bucket in sorted(digests))


# Media


def manifest(mime, files):
    """`files`: path (components), size, root, executable; in the order of paths as bytes."""
    found = [b"\x01", block(mime.encode("utf-8")), varint(len(files))]
    for path, size, root, executable in files:
        found.append(bytes([executable]) + varint(len(path)))
        found += [block(name.encode("utf-8")) for name in path]
        found.append(varint(size) + root)
    return b"".join(found)


def media_message(kind, number, *fields):
    """`fields`: numbers, as varints, and bytes."""
    parts = (varint(field) if isinstance(field, int) else field for field in fields)
    return bytes([kind]) + varint(number) + b"".join(parts)
