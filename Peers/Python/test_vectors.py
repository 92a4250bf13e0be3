"""Opens every golden vector, refuses every malformed one, and sees every turned byte noticed."""
import functools
import json
import pathlib
import unittest
from collections import Counter

import again
import make_vectors
from parley_wire import datagrams, invitations, keys, media, messages, objects, sessions, writing
from parley_wire.reading import Refused, bits, block, varint

FOLDER = pathlib.Path(__file__).resolve().parent.parent / "Vectors"
TURNS = (0x01, 0x80, 0xFF)
COUNTS = Counter()


def vectors(name):
    """Those that Swift made, then those that this side made."""
    found = []
    for path in (FOLDER / f"{name}.json", FOLDER / "python" / f"{name}.json"):
        if path.exists():
            found += json.loads(path.read_text(encoding="utf-8"))
    COUNTS[name] += len(found)
    return found


def number(text):
    return int(text, 16)


def unhex(text):
    return bytes.fromhex(text)


LAYOUTS = {
    "presence": objects.presence,
    "live": objects.live,
    "entry": objects.entry,
    "grant": objects.grant,
    "direct": datagrams.direct,
    "frames": datagrams.frames,
    "session": sessions.message,
    "media": media.message,
    "manifest": media.manifest,
    "bundle": lambda data: messages.bundle(data, make_vectors.BUNDLE_LEVELS),
    "message": lambda data: messages.message(data, ANA.peer_id),
}
ANA = keys.Identity(bytes([1]) * 32)
BEN = keys.Identity(bytes([2]) * 32)
KITCHEN = keys.Channel.open("kitchen")
# Valid, but not what a writer writes.
OTHER_SPELLINGS = {
    "any order, spaces, members that are not known", "escapes where none are needed", "a status with a message ID",
    "a photo that says what it is not", "a location in whole degrees, with an option",
    "a hand with what is no option of it", "options that say nothing",
    "a place with languages, which only texts have"}


def each(*names):
    """Runs a test for each vector of these files, and says which failed."""

    def over(check):
        @functools.wraps(check)
        def test(self):
            for name in names:
                for vector in vectors(name):
                    with self.subTest(f"{name}: {vector['name']}"):
                        check(self, vector)

        return test

    return over


class DerivationTests(unittest.TestCase):
    @each("channels")
    def test_channels(self, vector):
        name, room = vector["given_name"], vector.get("type") == "room"
        self.assertEqual(keys.name_bytes(name).hex(), vector["name_bytes"])
        channel = {
            "open": lambda: keys.Channel.open(name, room),
            "passphrase": lambda: keys.Channel.passphrase(name, unhex(vector["passphrase"]), room),
            "secret": lambda: keys.Channel(unhex(vector["secret"])),
        }[vector["kind"]]()
        for key in ("secret", "channel_id", "datagram_key", "proof_key"):
            self.assertEqual(getattr(channel, key).hex(), vector[key])
        for pair in vector["tags"]:
            self.assertEqual(bits(channel.tag(number(pair["instance"]))), pair["tag"])

    @each("owned_channels")
    def test_owned_channels(self, vector):
        channel = keys.Channel.owned(
            vector["given_name"], unhex(vector["founder"]), unhex(vector["salt"]), unhex(vector["secret"]),
            vector.get("type") == "room")
        self.assertEqual(channel.generation_hash(vector["generation"]).hex(), vector["hash"])
        for key in ("channel_id", "datagram_key", "proof_key"):
            self.assertEqual(getattr(channel, key).hex(), vector[key])
        for pair in vector["tags"]:
            self.assertEqual(bits(channel.tag(number(pair["instance"]))), pair["tag"])

    @each("invitations")
    def test_invitations(self, vector):
        for form in ("link", "link_in_capitals"):
            value = invitations.invitation(f" {vector[form]}\n")
            self.assertEqual(value.pop("grant"), objects.grant(unhex(vector["grant"])))
            self.assertEqual(value.pop("name"), vector["given_name"])
            self.assertEqual(value.pop("type"), vector.get("type", "group"))
            self.assertEqual(value, {key: vector[key] for key in value})
        for at, character in enumerate(vector["link"]):
            altered = vector["link"][:at] + ("a" if character != "a" else "b") + vector["link"][at + 1:]
            with self.assertRaises(Refused):
                invitations.invitation(altered)

    @each("identities")
    def test_identities(self, vector):
        peer = keys.Identity(unhex(vector["seed"])).peer_id
        self.assertEqual(peer.hex(), vector["peer_id"])
        self.assertEqual(keys.base32(peer), vector["text"])
        self.assertEqual(keys.unbase32(vector["text"]), peer)
        self.assertEqual(keys.fingerprint(peer), vector["fingerprint"])

    @each("safety_codes")
    def test_safety_codes(self, vector):
        code = keys.safety_code(unhex(vector["one"]), unhex(vector["other"]))
        self.assertEqual(code, vector["code"])

    @each("pairwise_keys")
    def test_pairwise_keys(self, vector):
        sender = keys.Identity(unhex(vector["sender_seed"]))
        self.assertEqual(sender.peer_id.hex(), vector["sender"])
        key = sender.pairwise_key(unhex(vector["receiver"]), unhex(vector["channel_id"]), sending=True)
        self.assertEqual(key.hex(), vector["key"])

    @each("signatures")
    def test_signatures(self, vector):
        identity = keys.Identity(unhex(vector["seed"]))
        message = keys.object_message(
            vector["context"], unhex(vector["channel_id"]), number(vector["instance"]), unhex(vector["object"]))
        self.assertEqual(identity.sign(message).hex(), vector["signature"])
        self.assertTrue(keys.is_signed(unhex(vector["signature"]), identity.peer_id, message))
        self.assertFalse(keys.is_signed(unhex(vector["signature"]), identity.peer_id, message + b"\0"))

    @each("heads_digests")
    def test_heads_digests(self, vector):
        logs = [
            (unhex(head["author"]), number(head["log"]), head["number"],
             [(run["from"], run["through"]) for run in head["beyond"]])
            for head in vector["heads"]]
        self.assertEqual(keys.heads_digest(logs).hex(), vector["digest"])

    @each("proofs")
    def test_proofs(self, vector):
        h = unhex(vector["handshake_hash"])
        self.assertEqual(keys.Channel.open(vector["channel"]).proof(vector["role"], h).hex(), vector["proof"])
        peer = keys.Identity(unhex(vector["seed"])).peer_id
        found = sessions.identity(unhex(vector["identity"]), vector["role"], h)
        self.assertEqual(found, (peer, number(vector["instance"])))
        with self.assertRaises(sessions.Ended):
            sessions.identity(unhex(vector["identity"]), 1 - vector["role"], h)


class LayoutTests(unittest.TestCase):
    @each("objects")
    def test_objects(self, vector):
        self.assertEqual(LAYOUTS[vector["layout"]](unhex(vector["bytes"])), vector["value"])
        if vector["layout"] == "entry":
            self.assertTrue(objects.is_genuine_entry(unhex(vector["bytes"]), KITCHEN.channel_id))
            self.assertFalse(objects.is_genuine_entry(unhex(vector["bytes"]), bytes(32)))
        if vector["layout"] == "grant":
            self.assertTrue(objects.is_genuine_grant(unhex(vector["bytes"]), KITCHEN.channel_id))
            self.assertFalse(objects.is_genuine_grant(unhex(vector["bytes"]), bytes(32)))

    @each("frames")
    def test_frames(self, vector):
        self.assertEqual(datagrams.frames(unhex(vector["bytes"])), vector["value"])
        for frame in vector["value"]:
            if frame["type"] in ("presence", "live"):
                self.assertTrue(self.is_genuine(frame))

    def is_genuine(self, frame):
        return objects.is_genuine(
            frame["type"], unhex(frame["signature"]), unhex(frame["object"]), KITCHEN.channel_id)

    @each("fragments")
    def test_fragments(self, vector):
        found = [datagrams.fragment(unhex(data)) for data in vector["fragments"]]
        self.assertEqual(found, vector["value"])
        self.assertEqual(datagrams.joined(list(reversed(found))).hex(), vector["entry"])
        self.assertTrue(objects.is_genuine_entry(unhex(vector["entry"]), KITCHEN.channel_id))
        self.assertIsNone(datagrams.joined(found[1:]))

    @each("datagrams")
    def test_datagrams(self, vector):
        channel = keys.Channel.open(vector["channel"])
        sender, receiver = (keys.Identity(unhex(vector[key])) for key in ("sender_seed", "receiver_seed"))
        datagram = unhex(vector["datagram"])
        body = datagrams.open_datagram(datagram, channel)
        self.assertEqual(body.hex(), vector["body"])
        self.assertEqual(bits(datagrams.header(datagram)[0]), vector["instance"])
        frames = datagrams.frames(body)
        self.assertEqual(frames, vector["frames"])
        if vector["direct"] is not None:
            sealed = unhex(frames[-1]["bytes"])
            plain = datagrams.open_direct(sealed, datagram, sender.peer_id, receiver, channel)
            self.assertEqual(plain.hex(), vector["direct"])
            datagrams.direct(plain)
            self.assertIsNone(datagrams.open_direct(sealed, datagram, receiver.peer_id, sender, channel))
        nonce = unhex(vector["nonce"])
        again = datagram[:44] + keys.seal(body, datagram[:44], nonce, channel.datagram_key)
        self.assertEqual(again, datagram)

    @each("session_messages")
    def test_session_messages(self, vector):
        self.assertEqual(sessions.message(unhex(vector["bytes"])), vector["value"])

    @each("verdicts")
    def test_verdicts(self, vector):
        data, read = unhex(vector["bytes"]), LAYOUTS[vector["layout"]]
        changed = [data[:count] for count in range(len(data))]
        changed += [turn(data, at, mask) for at in range(len(data)) for mask in TURNS]
        COUNTS["verdicts compared"] += len(changed)
        verdicts = "".join(verdict(read, data) for data in changed)
        self.assertEqual(keys.blake2b(32, verdicts.encode("utf-8")).hex(), vector["verdicts"])

    def test_unknown_session_messages_are_skipped(self):
        self.assertIsNone(sessions.message(b"\x7f\x00"))

    @each("media_messages")
    def test_media_messages(self, vector):
        self.assertEqual(media.message(unhex(vector["bytes"])), vector["value"])

    @each("manifests")
    def test_manifests(self, vector):
        data = unhex(vector["bytes"])
        self.assertEqual(media.manifest(data), vector["value"])
        self.assertEqual(media.sha256(data).hex(), vector["media_id"])
        self.assertEqual(keys.base32(media.sha256(data)), vector["media_id_text"])

    @each("trees")
    def test_trees(self, vector):
        size = vector["size"]
        content = bytes((131 * i + 17 * (i >> 8) + 7 * (i >> 16)) & 0xFF for i in range(size))
        self.assertEqual(media.sha256(content).hex(), vector["sha256"])
        hashes = media.piece_hashes(content)
        self.assertEqual([digest.hex() for digest in hashes], vector["piece_hashes"])
        self.assertEqual(media.root(hashes).hex(), vector["root"])
        manifest = b"\x01\x00\x01" + b"\x00\x01" + block(b"f") + varint(size) + media.root(hashes)
        self.assertEqual(media.manifest(manifest)["files"][0]["size"], size)
        self.assertEqual(media.sha256(manifest).hex(), vector["media_id"])

    @each("messages")
    def test_messages(self, vector):
        self.assertEqual(messages.message(vector["json"].encode("utf-8")), vector["value"])

    @each("bundles")
    def test_bundles(self, vector):
        data = vector["bundle"].encode("utf-8")
        self.assertEqual(messages.bundle(data, vector["levels"]), vector["value"])
        with self.assertRaises(Refused):
            messages.bundle(data, vector["levels"] - 1)


class WritingTests(unittest.TestCase):
    """What was read is written again, byte for byte."""

    @each("objects")
    def test_objects(self, vector):
        if "unknown part" not in vector["name"]:
            self.assertEqual(again.LAYOUTS[vector["layout"]](vector["value"]).hex(), vector["bytes"])

    @each("frames")
    def test_frames(self, vector):
        if "unknown" not in vector["name"]:
            self.assertEqual(again.frames(vector["value"]).hex(), vector["bytes"])

    @each("fragments")
    def test_fragments(self, vector):
        parts = [datagrams.frames(frame)[0]["fragment"] for frame in writing.entry_frames(unhex(vector["entry"]))]
        self.assertEqual([again.fragment(part).hex() for part in parts], vector["fragments"])

    @each("session_messages")
    def test_session_messages(self, vector):
        self.assertEqual(again.session(vector["value"]).hex(), vector["bytes"])

    @each("media_messages")
    def test_media_messages(self, vector):
        self.assertEqual(again.media(vector["value"]).hex(), vector["bytes"])

    @each("manifests")
    def test_manifests(self, vector):
        self.assertEqual(again.manifest(vector["value"]).hex(), vector["bytes"])

    def test_messages(self):
        written = 0
        for vector in vectors("messages"):
            if vector["name"] in OTHER_SPELLINGS or vector["value"]["type"] not in again.WRITTEN:
                continue
            with self.subTest(vector["name"]):
                self.assertEqual(again.message(vector["value"]).decode("utf-8"), vector["json"])
            written += 1
        self.assertGreater(written, 30)


class MadeTests(unittest.TestCase):
    def test_the_files_are_what_is_made(self):
        for name in make_vectors.FILES:
            with self.subTest(name):
                path = FOLDER / "python" / f"{name}.json"
                self.assertEqual(path.read_text(encoding="utf-8"), make_vectors.text_of(name))

    def test_half_of_the_vectors_are_made_here(self):
        ours, theirs = (
            sum(len(json.loads(path.read_text(encoding="utf-8"))) for path in folder.glob("*.json"))
            for folder in (FOLDER / "python", FOLDER))
        self.assertGreaterEqual(ours, theirs)


class SessionTests(unittest.TestCase):
    @each("handshake_chachapoly", "handshake_aesgcm")
    def test_handshakes(self, vector):
        for role, key in ((0, "initiator_ephemeral_key"), (1, "responder_ephemeral_key")):
            self.follow(vector, role, unhex(vector[key]))

    def follow(self, vector, role, ephemeral):
        session = sessions.Transcript(unhex(vector["hello"]), unhex(vector["answer"]), ephemeral, role)
        h = session.handshake_hash
        self.assertEqual(h.hex(), vector["handshake_hash"])
        self.assertEqual((session.purpose, session.suite), (vector["purpose"], vector["suite"]))
        offered, rest = sessions.proofs(session.from_initiator.open(unhex(vector["offer"])))
        expected = [keys.Channel.open(name).proof(0, h) for name in vector["offered_channels"]]
        self.assertEqual((offered, rest), (expected, b""))
        shared, rest = sessions.proofs(session.from_responder.open(unhex(vector["acceptance"])))
        self.assertEqual(shared, [keys.Channel.open(name).proof(1, h) for name in vector["shared_channels"]])
        ends = [keys.Identity(unhex(vector[key])).peer_id for key in ("initiator_seed", "responder_seed")]
        self.assertEqual(sessions.identity(rest, 1, h), (ends[1], number(vector["responder_instance"])))
        introduction = session.from_initiator.open(unhex(vector["introduction"]))
        self.assertEqual(sessions.identity(introduction, 0, h), (ends[0], number(vector["initiator_instance"])))
        session.established()
        for direction, key in (
            (session.from_initiator, "frames_from_initiator"), (session.from_responder, "frames_from_responder"),
        ):
            opened = [direction.open(unhex(frame)).hex() for frame in vector[key]]
            self.assertEqual(opened, vector["payloads"])

    def test_every_turned_byte_of_a_handshake_is_refused(self):
        vector = vectors("handshake_chachapoly")[0]
        for key in ("hello", "answer", "offer", "acceptance", "introduction"):
            data = unhex(vector[key])
            for at in range(len(data)):
                turned = {**vector, key: turn(data, at, 0xFF).hex()}
                with self.subTest(f"{key}, byte {at}"), self.assertRaises((Refused, sessions.Ended, AssertionError)):
                    self.follow(turned, 0, unhex(vector["initiator_ephemeral_key"]))


class MalformedTests(unittest.TestCase):
    @each("malformed")
    def test_malformed(self, vector):
        tail = bytes([vector["tail"][0]]) * vector["tail"][1] if vector["tail"] else b""
        with self.assertRaises(Refused) as refusal:
            LAYOUTS[vector["layout"]](unhex(vector["bytes"]) + tail)
        found = (refusal.exception.reason, refusal.exception.field)
        self.assertEqual(found, (vector["reason"], vector["field"]))

    @each("malformed_datagrams")
    def test_malformed_datagrams(self, vector):
        with self.assertRaises(datagrams.Unopened) as refusal:
            datagrams.open_datagram(unhex(vector["bytes"]), keys.Channel.open(vector["channel"]))
        self.assertEqual(refusal.exception.reason, vector["reason"])

    @each("malformed_handshakes")
    def test_malformed_handshakes(self, vector):
        with self.assertRaises(sessions.Ended) as end:
            self.play(vector)
        self.assertEqual(end.exception.reason, vector["reason"])

    def play(self, vector):
        """Ana dials Ben; both are in the kitchen and the garden and can ChaChaPoly only."""
        hello, frame, step = unhex(vector["hello"]), unhex(vector["frame"]), vector["step"]
        sessions.chosen(sessions.preface(hello[:8], 0)[1], [sessions.CHACHAPOLY_BIT])
        ephemeral = unhex(vector["initiator_ephemeral_key"])
        session = sessions.Transcript(hello, unhex(vector["answer"]), ephemeral, 0)
        h, channels = session.handshake_hash, [KITCHEN, keys.Channel.open("garden")]
        direction = session.from_responder if step == "acceptance" else session.from_initiator
        # The offer takes the first nonce.
        direction.counter = 1 if step == "introduction" else 0
        try:
            payload = direction.open(frame)
        except Refused:
            raise sessions.Ended("frame") from None
        if step == "offer":
            sessions.shared_of_offer(payload, channels, h)
        elif step == "acceptance":
            _, rest = sessions.shared_of_acceptance(payload, channels, h)
            sessions.identity(rest, 1, h, own=ANA.peer_id)
        else:
            sessions.identity(payload, 0, h, own=BEN.peer_id)


class CompletenessTests(unittest.TestCase):
    def test_no_file_is_forgotten(self):
        text = pathlib.Path(__file__).read_text(encoding="utf-8")
        unread = [path.name for path in FOLDER.rglob("*.json") if f'"{path.stem}"' not in text]
        self.assertEqual(unread, [])


def verdict(read, data):
    try:
        read(data)
        return "taken\n"
    except Refused as refusal:
        return f"{refusal.reason} {refusal.field}\n"


def turn(data, at, mask):
    return data[:at] + bytes([data[at] ^ mask]) + data[at + 1 :]


class MutationTests(unittest.TestCase):
    """Whatever byte of a golden encoding turns, it is refused or read as something else."""

    def noticed(self, name, data, read, value):
        for at in range(len(data)):
            for mask in TURNS:
                try:
                    found = read(turn(data, at, mask))
                except Refused:
                    continue
                if found == value:
                    self.fail(f"{name}: byte {at} turned by {mask:#x} goes unnoticed")
                COUNTS["turned bytes"] += 1

    @each("objects")
    def test_objects(self, vector):
        # A part that is skipped says nothing, so turning it changes nothing.
        if "unknown" not in vector["name"] or vector["layout"] == "entry":
            self.noticed(vector["name"], unhex(vector["bytes"]), LAYOUTS[vector["layout"]], vector["value"])

    @each("frames")
    def test_frames(self, vector):
        if "unknown" not in vector["name"]:
            self.noticed(vector["name"], unhex(vector["bytes"]), datagrams.frames, vector["value"])

    @each("session_messages")
    def test_session_messages(self, vector):
        self.noticed(vector["name"], unhex(vector["bytes"]), sessions.message, vector["value"])

    @each("media_messages")
    def test_media_messages(self, vector):
        self.noticed(vector["name"], unhex(vector["bytes"]), media.message, vector["value"])

    @each("manifests")
    def test_manifests(self, vector):
        self.noticed(vector["name"], unhex(vector["bytes"]), media.manifest, vector["value"])

    @each("fragments")
    def test_fragments(self, vector):
        for data, value in zip(vector["fragments"], vector["value"]):
            self.noticed(vector["name"], unhex(data), datagrams.fragment, value)

    def test_messages(self):
        spelled_as_written = [
            vector for vector in vectors("messages")
            if vector["name"] not in OTHER_SPELLINGS and vector["value"]["type"] in again.WRITTEN]
        for vector in spelled_as_written:
            self.noticed(vector["name"], vector["json"].encode("utf-8"), messages.message, vector["value"])

    @each("datagrams")
    def test_datagrams(self, vector):
        datagram = unhex(vector["datagram"])
        for at in range(len(datagram)):
            with self.assertRaises(datagrams.Unopened):
                datagrams.open_datagram(turn(datagram, at, 0x01), keys.Channel.open(vector["channel"]))


def tearDownModule():
    print("vectors read: " + ", ".join(f"{name} {count}" for name, count in sorted(COUNTS.items())))


if __name__ == "__main__":
    unittest.main()
