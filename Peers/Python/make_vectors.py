#!/usr/bin/env python3
"""Makes the vectors that are this peer's: Peers/Vectors/python. Everything follows from the names; nothing is drawn.
`make_vectors.py --write` writes the files; a test compares them, and Swift's tests read them."""
import json
import pathlib
import sys

import again
import deeds
import option_values
from drawing import TEXTS, Draw, person
from make_handshakes import handshake_vectors
from parley_wire import datagrams, keys, media, messages, objects, sessions, writing
from parley_wire.reading import COUNTER_MAX, Refused, bits

FOLDER = pathlib.Path(__file__).resolve().parent.parent / "Vectors" / "python"
# Of the bundles among what is malformed.
BUNDLE_LEVELS = 5
READERS = {
    "presence": objects.presence, "live": objects.live, "entry": objects.entry, "direct": datagrams.direct,
    "frames": datagrams.frames, "session": sessions.message, "media": media.message, "manifest": media.manifest,
}


def channels():
    for at, name in enumerate(("a", "Cafe\u0301", "\u65e5\u672c", "x" * 64, "e\u0323\u0301 \U0001F600")):
        yield f"open {at + 1}", "open", name, keys.Channel.open(name), {}
    for name, passphrase in (("a", b"a"), ("Cafe\u0301", "grüße".encode("utf-8")), ("x", bytes(range(256)) * 4)):
        channel = keys.Channel.passphrase(name, passphrase)
        yield f"passphrase of {len(passphrase)} bytes", "passphrase", name, channel, {"passphrase": passphrase.hex()}
    for at, name in enumerate(("a", "\u65e5\u672c")):
        yield f"open room {at + 1}", "open", name, keys.Channel.open(name, room=True), {"type": "room"}
    channel = keys.Channel.passphrase("a", b"a", room=True)
    yield "passphrase, room", "passphrase", "a", channel, {"passphrase": b"a".hex(), "type": "room"}


def channel_vectors():
    for name, kind, given, channel, more in channels():
        tags = [{"instance": bits(at), "tag": bits(channel.tag(at))} for at in (1, 1 << 32, (1 << 64) - 2)]
        yield {
            "name": name, "kind": kind, "given_name": given, **more, "name_bytes": keys.name_bytes(given).hex(),
            "secret": channel.secret.hex(), "channel_id": channel.channel_id.hex(),
            "datagram_key": channel.datagram_key.hex(), "proof_key": channel.proof_key.hex(), "tags": tags}


def identity_vectors():
    for at in range(5):
        seed = Draw(f"seed {at}").bytes(32)
        peer = keys.Identity(seed).peer_id
        yield {
            "name": f"drawn {at + 1}", "seed": seed.hex(), "peer_id": peer.hex(), "text": keys.base32(peer),
            "fingerprint": keys.fingerprint(peer)}


def pairwise_vectors():
    for at in range(5):
        draw = Draw(f"pair {at}")
        seed, receiver, channel_id = draw.bytes(32), person(draw), draw.bytes(32)
        sender = keys.Identity(seed)
        yield {
            "name": f"drawn {at + 1}", "sender_seed": seed.hex(), "sender": sender.peer_id.hex(),
            "receiver": receiver.peer_id.hex(), "channel_id": channel_id.hex(),
            "key": sender.pairwise_key(receiver.peer_id, channel_id, sending=True).hex()}


def signature_vectors():
    for at, context in enumerate(("presence", "live", "entry", "entry", "live")):
        draw = Draw(f"signature {at}")
        seed, channel_id, instance, signed = draw.bytes(32), draw.bytes(32), draw.u64(), draw.bytes(40 * at)
        message = keys.object_message(context, channel_id, again.number(instance), signed)
        yield {
            "name": f"{context} {at + 1}", "seed": seed.hex(), "context": context, "channel_id": channel_id.hex(),
            "instance": instance, "object": signed.hex(), "signature": keys.Identity(seed).sign(message).hex()}


def digest_vectors():
    for count in (2, 3, 40, 300):
        draw = Draw(f"digest {count}")
        heads = []
        for _ in range(count):
            head = draw.number()
            first = min(head + 2, COUNTER_MAX - 1)
            beyond = [{"from": first, "through": first + 1}] if draw.below(3) == 0 and head < 1 << 60 else []
            heads.append({
                "author": draw.bytes(32).hex(), "log": draw.u64(), "number": head, "beyond": beyond})
        logs = [
            (again.unhex(head["author"]), again.number(head["log"]), head["number"],
             [(run["from"], run["through"]) for run in head["beyond"]]) for head in heads]
        yield {"name": f"{count} logs", "heads": heads, "digest": keys.heads_digest(logs).hex()}


def proof_vectors():
    for at in range(4):
        draw, role = Draw(f"proof {at}"), at % 2
        name, seed, instance, h = ("garden", "会議室")[at // 2], draw.bytes(32), draw.u64(), draw.bytes(32)
        yield {
            "name": f"drawn {at + 1}", "channel": name, "seed": seed.hex(), "instance": instance, "role": role,
            "handshake_hash": h.hex(), "proof": keys.Channel.open(name).proof(role, h).hex(),
            "identity": writing.identity_proof(keys.Identity(seed), again.number(instance), role, h).hex()}


# Values of layouts


def json_values(draw):
    """A message of each type, by one author."""
    peer = keys.base32(draw.bytes(32))
    name = "".join(sign for sign in draw.of(TEXTS) if not keys.is_control(sign))
    common = {
        "sender_id": peer, "display_name": name, "message_id": f"m-{draw.below(1_000)}",
        "timestamp": "2024-02-29T23:59:60.25-11:30"}
    file = {
        "media_id": keys.base32(draw.bytes(32)), "file_name": draw.of(("", "a.bin", "../ещё", "CON.txt")),
        "size": draw.number(), "mime": draw.of((None, "", "image/png"))}
    size = {"width": draw.of((None, 1, 2_147_483_647)), "height": draw.of((None, 1, 640))}
    other = draw.of((None, keys.base32(draw.bytes(32))))
    without = {"sender_id": peer, "display_name": name, "message_id": None, "timestamp": None}
    yield {"type": "status", **without, "online": draw.below(2) == 0}
    yield {"type": "raise_hand", **without, "raised": draw.below(2) == 0}
    yield {"type": "text", **common, "body": draw.of(TEXTS)}
    yield {"type": "photo", **common, **file, **size, "original": draw.below(2) == 0, "gif": draw.below(2) == 0,
           "big_media_id": other, "thumbnail_media_id": draw.of((None, keys.base32(draw.bytes(32))))}
    yield {"type": "file", **common, **file}
    yield {"type": "video", **common, **file, "duration": draw.of((0, 61)), **size, "thumbnail_media_id": other}
    yield {"type": "voice", **common, **file, "duration": draw.of((0, 61))}
    yield {"type": "location", **common, "latitude": draw.of((-90.0, 52.5163)), "longitude": draw.of((180.0, -0.25)),
           "address": draw.of((None, "", "人民大道 200")), "building_name": draw.of((None, "博物馆"))}
    yield {"type": "custom", **common, "event": draw.of(("seat", "x" * 128)),
           "custom_ext": draw.of(({}, {"row": "3", "": "\n"}))}
    yield {"type": "typing", **without, "typing": draw.below(2) == 0}
    is_set, overwrites = draw.below(2) == 0, draw.below(2) == 0
    yield {"type": "attribute", **common, "key": draw.of(("k", "x" * 128)),
           "value": draw.of(("", "v" * 4_096)) if is_set else None, "until_leave": is_set and draw.below(2) == 0,
           "overwrite": overwrites, "replaces": None if overwrites else draw.of((None, "0123456789abcdef"))}
    yield {"type": "combine", **common, "title": draw.of(("Friday", "x" * 256)), "summary": draw.of(("", "Ana: 会議")),
           "compatible_text": draw.of(("[Friday]", "x" * 1_024)), "media_id": keys.base32(draw.bytes(32)),
           "size": draw.of((0, messages.BUNDLE_BYTES_MAX)), "levels": draw.of((1, 10))}
    yield from deeds.values(draw, peer, common, TEXTS)
    yield {"type": "text", **common, "body": draw.of(TEXTS), "ext": draw.of(({}, {"n": [1, 2.5, None, {"a": True}]})),
           "reply_to": {"sender_id": peer, "message_id": f"m-{draw.below(1_000)}"}}
    yield from option_values.message_values(draw, common, file, size, TEXTS)


def signed(draw, context, channel_id, identity, instance, encoded):
    message = keys.object_message(context, channel_id, again.number(instance), encoded)
    return {"signature": identity.sign(message).hex(), "object": encoded.hex()}


def presence_value(draw, identity, instance):
    status = writing.status(identity.peer_id, "Ana", online=True)
    return {
        "author": identity.peer_id.hex(), "instance": instance, "counter": draw.number(least=1),
        "incarnation": draw.number(), "tcp_port": draw.below(65_536), "interval": draw.number(),
        "nonce": draw.u64(), "head": draw.number(), "digest": draw.bytes(16).hex(), "lamport": draw.number(),
        "wants_acknowledgement": draw.below(2) == 1, "status_hash": keys.blake2b(32, status)[:8].hex(),
        "status": draw.of(("", status.decode("utf-8")))}


def live_value(draw, identity, instance):
    json_text = writing.status(identity.peer_id, draw.of(TEXTS[:3]), online=False).decode("utf-8")
    return {
        "author": identity.peer_id.hex(), "instance": instance, "counter": draw.number(least=1), "json": json_text}


def entry_bytes(draw, identity, channel_id, size=40):
    found = [
        (draw.of((0, 2, 3, 4, 5, 7, 16_384)), draw.bytes(1 + draw.below(size)).hex().encode("ascii"))
        for _ in range(1 + draw.below(3))]
    return writing.entry(
        identity, channel_id, again.number(draw.u64()), draw.number(least=1), draw.number(), draw.number(),
        draw.below(2) == 1, found)


def part_values(draw):
    ids = [draw.bytes(32).hex() for _ in range(draw.of((0, 1, 3)))]
    return [
        {"type": "probe", "nonce": draw.u64()}, {"type": "echo", "nonce": draw.u64()},
        {"type": "acknowledge", "log": draw.u64(), "number": draw.number()}, {"type": "holding", "media": ids},
    ][draw.below(4):]


KITCHEN = keys.Channel.open("kitchen")


def object_vectors():
    for at in range(4):
        draw = Draw(f"object {at}")
        identity, instance = person(draw), draw.u64()
        entry = objects.entry(entry_bytes(draw, identity, KITCHEN.channel_id))
        if at == 3:
            entry["messages"][0]["body"] = None
        direct = {"counter": draw.number(), "parts": part_values(draw)}
        for layout, value in (
            ("presence", presence_value(draw, identity, instance)), ("live", live_value(draw, identity, instance)),
            ("entry", entry), ("direct", direct),
        ):
            yield {
                "name": f"{layout} {at + 1}", "layout": layout, "bytes": again.LAYOUTS[layout](value).hex(),
                "value": value}


def frame_values(at):
    draw = Draw(f"frames {at}")
    identity, instance, found = person(draw), draw.u64(), []
    for context, make, encode in (("presence", presence_value, again.presence), ("live", live_value, again.live)):
        encoded = encode(make(draw, identity, instance))
        found.append({"type": context, **signed(draw, context, KITCHEN.channel_id, identity, instance, encoded)})
    found.append({"type": "entry", "bytes": entry_bytes(draw, identity, KITCHEN.channel_id).hex()})
    found.append({"type": "suspect", "peer": draw.bytes(32).hex(), "incarnation": draw.number()})
    found.append({"type": "who_has", "media": [draw.bytes(32).hex() for _ in range(at % 3)]})
    # Each alone, then all that fit.
    return [found[at]] if at < len(found) else found[at % 2 : 4 : 2] + found[4:]


def frame_vectors():
    for at in range(9):
        value = frame_values(at)
        yield {"name": f"drawn {at + 1}", "bytes": again.frames(value).hex(), "value": value}
    # What begins a live object that no datagram holds whole.
    first = writing.live_frames(Draw("live fragment").bytes(2_000))[0]
    yield {"name": "live fragment", "bytes": first.hex(), "value": datagrams.frames(first)}


def fragment_vectors():
    def whole_of(body):
        identity = person(Draw(f"fragments {len(body)}"))
        return writing.entry(identity, KITCHEN.channel_id, 1, 1, 1, 1, False, [(messages.KINDS["text"], body)])

    # The smallest that goes as fragments, then longer ones.
    least = 1_170 - (len(whole_of(bytes(200))) - 200)
    for size in (least, 1_200, 6_000):
        whole = whole_of(Draw(f"body of {size}").bytes(size).hex()[:size].encode("ascii"))
        parts = [datagrams.frames(frame)[0]["fragment"] for frame in writing.entry_frames(whole)]
        yield {
            "name": f"entry of {len(whole)} bytes", "entry": whole.hex(),
            "fragments": [again.fragment(part).hex() for part in parts], "value": parts}


def datagram_vectors():
    for at in range(10):
        draw = Draw(f"datagram {at}")
        name = ("kitchen", "会議室")[at % 2]
        channel, seeds = keys.Channel.open(name), [draw.bytes(32), draw.bytes(32)]
        instance, nonce = draw.u64(), draw.bytes(24)
        sender, receiver = (keys.Identity(seed) for seed in seeds)
        frames = frame_values(at)[:2] if at % 3 else []
        plain = again.direct({"counter": draw.number(), "parts": part_values(draw)}) if at % 2 == 0 else None
        key = sender.pairwise_key(receiver.peer_id, channel.channel_id, sending=True)
        datagram = writing.datagram(
            channel, again.number(instance), nonce, [again.frame(frame) for frame in frames], plain and (key, plain))
        body = datagrams.open_datagram(datagram, channel)
        yield {
            "name": f"drawn {at + 1}", "channel": name, "sender_seed": seeds[0].hex(), "receiver_seed": seeds[1].hex(),
            "instance": instance, "nonce": nonce.hex(), "datagram": datagram.hex(), "body": body.hex(),
            "direct": plain.hex() if plain else None, "frames": datagrams.frames(body)}


def session_values():
    draw = Draw("session")
    identity, instance = person(draw), draw.u64()

    def key():
        return {"author": draw.bytes(32).hex(), "log": draw.u64()}

    channel = draw.bytes(32).hex()
    for at, buckets in enumerate(("ff" * 32, "00" * 32, draw.bytes(32).hex())):
        heads = [{**key(), "number": draw.number(), "floor": 0} for _ in range(draw.below(4))]
        heads.append({**key(), "number": COUNTER_MAX, "floor": draw.number()})
        yield {
            "type": "heads", "channel": channel, "buckets": buckets, "heads": heads, "last": at != 1,
            "answer_wanted": at > 0}
    for count in (0, 3):
        ranges = [{**key(), "from": 1 + at, "through": draw.number(least=64)} for at in range(count)]
        yield {"type": "want", "channel": channel, "request": draw.number(), "ranges": ranges}
    for count in (0, 2):
        entries = [entry_bytes(draw, identity, KITCHEN.channel_id).hex() for _ in range(count)]
        yield {
            "type": "entries", "channel": channel, "request": draw.number(), "last": count == 0, "entries": entries}
    text = list(json_values(Draw("peer message")))[2]
    yield {
        "type": "peer_message", "message_id": text["message_id"], "json": again.message(text).decode("utf-8")}
    yield {
        "type": "live_peer_message", "message_id": text["message_id"], "json": again.message(text).decode("utf-8")}
    yield {"type": "peer_stored", "message_id": "ж" * 32}
    yield {"type": "ping", "nonce": draw.u64()}
    yield {"type": "pong", "nonce": draw.u64()}
    yield {"type": "prove", "proofs": [draw.bytes(32).hex() for _ in range(64)]}
    yield {"type": "prove", "proofs": []}
    for context, make, encode in (("presence", presence_value, again.presence), ("live", live_value, again.live)):
        value = encode(make(draw, identity, instance))
        yield {
            "type": context, "channel": KITCHEN.channel_id.hex(),
            **signed(draw, context, KITCHEN.channel_id, identity, instance, value)}
    yield {"type": "closing"}
    yield {"type": "direct", "channel": channel, "parts": part_values(draw)}
    digests = [{"bucket": bucket, "digest": draw.bytes(16).hex()} for bucket in (0, 1, 254, 255)]
    yield {"type": "summary", "channel": channel, "buckets": digests}


def media_values():
    draw = Draw("media")
    media_id = draw.bytes(32).hex()
    for number in (0, 64):
        yield {"type": "manifest", "number": number, "media": media_id, "offset": draw.of((0, 16_777_216))}
    yield {"type": "piece_hashes", "number": 1, "media": media_id, "file": 453_438, "first": 67_108_864, "count": 512}
    yield {"type": "piece_hashes", "number": 16_384, "media": media_id, "file": 0, "first": 0, "count": 1}
    for count in (1, 2, 64):
        yield {
            "type": "block", "number": 1 << 30, "media": media_id, "file": 63, "index": 4_294_967_296, "count": count}
        yield {"type": "cancel", "number": 16_383, "count": count}
    yield {"type": "have", "number": 2, "media": media_id, "first": 67_108_864}
    yield {"type": "cancel", "number": COUNTER_MAX, "count": 1}
    yield {"type": "manifest_part", "number": 3, "total": 100, "offset": 60, "bytes": draw.bytes(40).hex()}
    yield {"type": "manifest_part", "number": 3, "total": 16_777_216, "offset": 0, "bytes": draw.bytes(1).hex()}
    yield {"type": "piece_hashes_part", "number": 4, "bytes": draw.bytes(32 * 3).hex()}
    yield {"type": "block_data", "number": 5, "bytes": draw.bytes(300).hex()}
    yield {"type": "holding_all", "number": 6}
    yield {"type": "holding_some", "number": 7, "count": 16, "first": 8, "bitmap": "01"}
    yield {"type": "holding_some", "number": 8, "count": 67_108_864, "first": 67_108_864, "bitmap": ""}
    for reason in media.REFUSALS:
        yield {"type": "refused", "number": 8 + reason, "reason": reason}


def manifest_values():
    draw = Draw("manifest")
    root, zero = draw.bytes(32).hex(), media.ZERO.hex()

    def file(*path, size=1, executable=False):
        return {"path": list(path), "size": size, "root": root if size else zero, "executable": executable}

    yield {"mime": "application/x-тест", "files": [file("z" * 255, size=COUNTER_MAX)]}
    yield {"mime": None, "files": [file("...", size=0)]}
    yield {"mime": "inode/directory", "files": [file("a", "b", executable=True), file("a", "c", size=0), file("b")]}
    yield {"mime": "inode/directory", "files": [file(*["d"] * 64, size=1 << 30)]}
    yield {"mime": None, "files": [file("A"), file("a"), file("é", size=16_384), file("😀")]}


def tree_vectors():
    for size in (2, 16_384 * 63, 16_384 * 64 - 16_383, media.PIECE_BYTES * 4, media.PIECE_BYTES * 4 + 1):
        content = bytes((131 * i + 17 * (i >> 8) + 7 * (i >> 16)) & 0xFF for i in range(size))
        hashes = media.piece_hashes(content)
        manifest = again.manifest({"mime": None, "files": [
            {"path": ["f"], "size": size, "root": media.root(hashes).hex(), "executable": False}]})
        yield {
            "name": f"{size} bytes", "size": size, "sha256": media.sha256(content).hex(),
            "piece_hashes": [digest.hex() for digest in hashes], "root": media.root(hashes).hex(),
            "media_id": media.sha256(manifest).hex()}


def named(values, layout):
    for at, value in enumerate(values):
        encoded = again.LAYOUTS[layout](value)
        yield {"name": f"{value.get('type', layout)} {at + 1}", "bytes": encoded.hex(), "value": value}


def manifest_vectors():
    for vector in named(manifest_values(), "manifest"):
        media_id = media.sha256(again.unhex(vector["bytes"]))
        yield {**vector, "media_id": media_id.hex(), "media_id_text": keys.base32(media_id)}


def message_vectors():
    for at in range(4):
        for value in json_values(Draw(f"message {at}")):
            yield {"name": f"{value['type']} {at + 1}", "json": again.message(value).decode("utf-8"), "value": value}


def bundle_vectors():
    for at in range(5):
        draw = Draw(f"bundle {at}")
        found = [
            {**value, "levels": 1 + at} if value["type"] == "combine" else value
            for value in json_values(draw) if value["type"] in messages.COMBINED]
        found = found[: 1 + at * 2]
        levels = 2 + at if any(value["type"] == "combine" for value in found) else 1
        text = "".join(again.message(value).decode("utf-8") + "\n" for value in found)
        yield {"name": f"drawn {at + 1}", "levels": levels, "bundle": text, "value": found}


# What must be refused


def changes(data, draw):
    """Cuts, a byte more, turned bytes, and bytes put in: each with a word about it."""
    for count in range(len(data)):
        yield f"cut to {count} bytes", data[:count]
    yield "a byte more", data + b"\0"
    for at in range(len(data)):
        for mask in (0x01, 0x40, 0x80, 0xFF):
            yield f"byte {at} turned by {mask:#04x}", data[:at] + bytes([data[at] ^ mask]) + data[at + 1 :]
    for at in range(0, len(data), 7):
        yield f"a byte put in at {at}", data[:at] + draw.bytes(1) + data[at:]


def malformed_vectors():
    """For each layout and each way in which it can be refused, the first change that leads there, and one more."""
    sources = [(vector["layout"], vector["bytes"]) for vector in object_vectors()]
    sources += [("frames", vector["bytes"]) for vector in frame_vectors()]
    sources += [("session", vector["bytes"]) for vector in named(session_values(), "session")]
    sources += [("media", vector["bytes"]) for vector in named(media_values(), "media")]
    sources += [("manifest", vector["bytes"]) for vector in manifest_vectors()]
    ana = keys.Identity(bytes([1]) * 32).peer_id
    for value in json_values(Draw("malformed")):
        value = {**value, "sender_id": keys.base32(ana)}
        sources.append(("message", again.message(value).hex()))
    for vector in list(bundle_vectors())[3:4]:
        sources.append(("bundle", vector["bundle"].encode("utf-8").hex()))
    readers = {
        **READERS, "bundle": lambda data: messages.bundle(data, BUNDLE_LEVELS),
        "message": lambda data: messages.message(data, ana)}
    seen = {}
    for number, (layout, text) in enumerate(sources):
        for word, data in changes(again.unhex(text), Draw(f"{layout} {number}")):
            try:
                readers[layout](data)
            except Refused as refusal:
                key = layout, refusal.reason, refusal.field
                # JSON is refused by parsers in ways that only they can name: what is no JSON stays with one.
                if seen.get(key, 0) < (1 if refusal.field == "json" else 2):
                    seen[key] = seen.get(key, 0) + 1
                    yield {
                        "name": f"{layout} {number + 1}, {word}", "layout": layout, "bytes": data.hex(), "tail": None,
                        "reason": refusal.reason, "field": refusal.field}


FILES = {
    "channels": channel_vectors, "identities": identity_vectors, "pairwise_keys": pairwise_vectors,
    "signatures": signature_vectors, "heads_digests": digest_vectors, "proofs": proof_vectors,
    "objects": object_vectors, "frames": frame_vectors, "fragments": fragment_vectors,
    "datagrams": datagram_vectors, "session_messages": lambda: named(session_values(), "session"),
    "media_messages": lambda: named(media_values(), "media"), "manifests": manifest_vectors, "trees": tree_vectors,
    "messages": message_vectors, "bundles": bundle_vectors, "malformed": malformed_vectors,
    "handshake_chachapoly": lambda: handshake_vectors(sessions.CHACHAPOLY_BIT, 1),
    "handshake_aesgcm": lambda: handshake_vectors(sessions.AESGCM_BIT, 0),
}


def text_of(name):
    return json.dumps(list(FILES[name]()), ensure_ascii=False, indent=1) + "\n"


def main():
    if sys.argv[1:] != ["--write"]:
        sys.exit("usage: make_vectors.py --write")
    FOLDER.mkdir(exist_ok=True)
    for name in FILES:
        (FOLDER / f"{name}.json").write_text(text_of(name), encoding="utf-8")


if __name__ == "__main__":
    main()
