"""Chat messages, prefaces, Noise, proofs and frames (Sessions.md)."""
import hashlib
import hmac

import nacl.exceptions
from nacl import bindings

from .aesgcm import AESGCM
from .datagrams import direct, signed
from .keys import is_control, is_signed
from .objects import DIGEST_BYTES, ENTRY_BYTES_MAX, MESSAGE_BYTES_MAX, statement
from .reading import Reader, Refused, bits

HEADS_MAX, HEAD_BYTES_MIN = 500, 42
BUCKETS_BYTES = 32
RANGES_MAX, RANGE_BYTES_MIN = 256, 42
PROOFS_MAX = 64
MESSAGE_ID_BYTES_MAX = 64
REFUSALS = 3
PREFACE_BYTES = 8
VERSION = 1
SEALED_BYTES_MIN, SEALED_BYTES_MAX, HANDSHAKE_SEALED_BYTES_MAX = 16, 32_000, 2_169
IDENTITY_BYTES = 104
INITIATOR, RESPONDER = 0, 1
AESGCM_BIT, CHACHAPOLY_BIT = 1, 2


# Chat messages


def log_key(reader):
    return {"author": reader.bytes(32, "author").hex(), "log": bits(reader.u64("log"))}


def heads(reader):
    channel = reader.bytes(32, "channel").hex()
    flags = reader.flags("flags", 7)
    buckets = reader.bytes(BUCKETS_BYTES, "buckets") if flags & 4 else b"\xff" * BUCKETS_BYTES
    found = []
    for _ in range(reader.count("heads", HEADS_MAX, HEAD_BYTES_MIN)):
        head = {**log_key(reader), "number": reader.varint("number"), "floor": reader.varint("floor")}
        if head["floor"] > head["number"]:
            raise Refused("out_of_range", "floor")
        found.append(head)
    return {
        "channel": channel, "buckets": buckets.hex(), "heads": found, "last": bool(flags & 1),
        "answer_wanted": bool(flags & 2)}


def summary(reader):
    value = {"channel": reader.bytes(32, "channel").hex(), "buckets": []}
    last = -1
    while reader.remaining:
        bucket = reader.u8("bucket")
        if bucket <= last:
            raise Refused("malformed", "bucket")
        last = bucket
        value["buckets"].append({"bucket": bucket, "digest": reader.bytes(DIGEST_BYTES, "digest").hex()})
    return value


def want(reader):
    value = {"channel": reader.bytes(32, "channel").hex(), "request": reader.varint("request"), "ranges": []}
    for _ in range(reader.count("ranges", RANGES_MAX, RANGE_BYTES_MIN)):
        item = {**log_key(reader), "from": reader.varint("from"), "through": reader.varint("through")}
        if not 1 <= item["from"] <= item["through"]:
            raise Refused("out_of_range", "from")
        value["ranges"].append(item)
    return value


def entries(reader):
    value = {"channel": reader.bytes(32, "channel").hex(), "request": reader.varint("request")}
    value["last"] = reader.flags("flags", 1) == 1
    value["entries"] = []
    while reader.remaining:
        value["entries"].append(reader.block("entry", ENTRY_BYTES_MAX).hex())
    return value


def message_id(reader):
    text = reader.text("message ID", MESSAGE_ID_BYTES_MAX)
    if not text or any(is_control(character) for character in text):
        raise Refused("malformed", "message ID")
    return text


def peer_message(reader):
    identifier = message_id(reader)
    data = reader.block("json", MESSAGE_BYTES_MAX)
    return {"message_id": identifier, "json": data.decode("utf-8", "surrogateescape")}


def prove(reader):
    proofs = []
    while reader.remaining:
        proofs.append(reader.bytes(32, "proof").hex())
    if len(proofs) > PROOFS_MAX:
        raise Refused("too_many", "proofs")
    return {"proofs": proofs}


def signed_object(reader):
    return {"channel": reader.bytes(32, "channel").hex(), **signed(reader.rest())}


def direct_parts(reader):
    channel = reader.bytes(32, "channel").hex()
    value = direct(reader.rest())
    if value["counter"] != 0:
        raise Refused("out_of_range", "counter")
    return {"channel": channel, "parts": value["parts"]}


def generation(reader):
    channel = reader.bytes(32, "channel").hex()
    secret = reader.bytes(32, "secret").hex()
    value = signed(reader.rest())
    statement(bytes.fromhex(value["object"]))
    return {"channel": channel, "secret": secret, **value}


def refused(reader):
    channel = reader.bytes(32, "channel").hex()
    reason = reader.u8("reason")
    if not 1 <= reason <= REFUSALS:
        raise Refused("out_of_range", "reason")
    return {"channel": channel, "reason": reason}


def nonce(reader):
    return {"nonce": bits(reader.u64("nonce"))}


MESSAGES = {
    1: ("heads", heads),
    2: ("want", want),
    3: ("entries", entries),
    4: ("peer_message", peer_message),
    5: ("peer_stored", lambda reader: {"message_id": message_id(reader)}),
    6: ("ping", nonce),
    7: ("pong", nonce),
    8: ("prove", prove),
    9: ("presence", signed_object),
    10: ("live", signed_object),
    11: ("closing", lambda reader: {}),
    12: ("direct", direct_parts),
    13: ("summary", summary),
    14: ("generation", generation),
    15: ("refused", refused),
    16: ("live_peer_message", peer_message),
}


def message(data):
    """None for a type to be skipped."""
    reader = Reader(data)
    kind = reader.u8("message type")
    if kind not in MESSAGES:
        return None
    name, read = MESSAGES[kind]
    value = {"type": name, **read(reader)}
    reader.finish()
    return value


# The handshake


class Ended(Exception):
    """Why a handshake ended; the reasons of Refusals.md."""

    def __init__(self, reason):
        super().__init__(reason)
        self.reason = reason


# Noise_NN_25519, revision 34


class ChaChaPoly:
    name = "ChaChaPoly"

    def __init__(self, key):
        self.key = key

    def _nonce(self, counter):
        return bytes(4) + counter.to_bytes(8, "little")

    def open(self, sealed, associated, counter):
        return bindings.crypto_aead_chacha20poly1305_ietf_decrypt(
            sealed, associated, self._nonce(counter), self.key)


SUITES = {AESGCM_BIT: AESGCM, CHACHAPOLY_BIT: ChaChaPoly}


class Direction:
    """One direction of a session: opens its frames in order."""

    def __init__(self, cipher, longest=SEALED_BYTES_MAX):
        self.cipher = cipher
        self.longest = longest
        self.counter = 0

    def open(self, frame):
        """The payload of one whole frame."""
        length = int.from_bytes(frame[:2], "big")
        if length > self.longest:
            raise Refused("too_long", "frame")
        if length < SEALED_BYTES_MIN:
            raise Refused("truncated", "frame")
        if len(frame) != 2 + length:
            raise Refused("trailing" if len(frame) > 2 + length else "truncated", "frame")
        try:
            payload = self.cipher.open(frame[2:], b"", self.counter)
        except nacl.exceptions.CryptoError:
            raise Refused("malformed", "frame") from None
        self.counter += 1
        return payload


def preface(data, role):
    """Purpose and suites."""
    if data[:4] != b"PLY" + (b"S" if role == INITIATOR else b"R"):
        raise Ended("not_parley")
    if data[4] != VERSION:
        raise Ended("version")
    if data[5] > 1:
        raise Ended("purpose")
    if data[7] != 0:
        raise Ended("malformed")
    return data[5], data[6]


def chosen(offered, supported):
    """What a responder answers to a hello: the first suite it supports."""
    for suite in supported:
        if offered & suite:
            return suite
    raise Ended("suite")


def hkdf(chaining_key, material):
    def mac(key, data):
        return hmac.new(key, data, hashlib.sha256).digest()

    temporary = mac(chaining_key, material)
    first = mac(temporary, b"\1")
    return first, mac(temporary, first + b"\2")


class Transcript:
    """Follows a handshake with the ephemeral secret of one end."""

    def __init__(self, hello, answer, ephemeral, role):
        self.purpose, offered = preface(hello[:PREFACE_BYTES], INITIATOR)
        purpose, suites = preface(answer[:PREFACE_BYTES], RESPONDER)
        if purpose != self.purpose:
            raise Ended("purpose")
        if suites not in SUITES or not suites & offered:
            raise Ended("suite")
        if len(hello) != PREFACE_BYTES + 32 or len(answer) != PREFACE_BYTES + 48:
            raise Ended("malformed")
        suite = SUITES[suites]
        self.suite = suites
        protocol = f"Noise_NN_25519_{suite.name}_SHA256".encode("ascii")
        digest = protocol.ljust(32, b"\0") if len(protocol) <= 32 else hashlib.sha256(protocol).digest()
        chaining_key = digest
        theirs = {INITIATOR: answer, RESPONDER: hello}[role][PREFACE_BYTES : PREFACE_BYTES + 32]
        sealed = answer[PREFACE_BYTES + 32 :]
        first, second = (data[PREFACE_BYTES : PREFACE_BYTES + 32] for data in (hello, answer))
        for part in (hello[:PREFACE_BYTES] + answer[:PREFACE_BYTES], first, b"", second):
            digest = hashlib.sha256(digest + part).digest()
        try:
            # A key of small order makes this fail.
            shared = bindings.crypto_scalarmult(ephemeral, theirs)
            chaining_key, key = hkdf(chaining_key, shared)
            suite(key).open(sealed, digest, 0)
        except (nacl.exceptions.CryptoError, nacl.exceptions.RuntimeError):
            raise Ended("seal") from None
        self.handshake_hash = hashlib.sha256(digest + sealed).digest()
        there, back = hkdf(chaining_key, b"")
        self.from_initiator = Direction(suite(there), HANDSHAKE_SEALED_BYTES_MAX)
        self.from_responder = Direction(suite(back), HANDSHAKE_SEALED_BYTES_MAX)

    def established(self):
        self.from_initiator.longest = self.from_responder.longest = SEALED_BYTES_MAX


def proofs(payload):
    """The proofs of an offer or an acceptance, and what is behind them."""
    if not payload or not 1 <= payload[0] <= PROOFS_MAX:
        raise Ended("malformed")
    end = 1 + 32 * payload[0]
    if len(payload) < end:
        raise Ended("malformed")
    return [payload[at : at + 32] for at in range(1, end, 32)], payload[end:]


def shared_of_offer(payload, channels, handshake_hash):
    """The responder: which of its channels the initiator shares, in the order of the offer."""
    found, rest = proofs(payload)
    if rest:
        raise Ended("malformed")
    own = {channel.proof(INITIATOR, handshake_hash): channel for channel in channels}
    shared = [own[proof] for proof in found if proof in own]
    if len(set(id(channel) for channel in shared)) != len(shared):
        raise Ended("proof")
    if not shared:
        raise Ended("no_channel")
    return shared


def shared_of_acceptance(payload, offered, handshake_hash):
    """The initiator: which of its channels the responder proved, in order, and the bytes of its identity."""
    found, rest = proofs(payload)
    shared, candidates = [], list(offered)
    for proof in found:
        while candidates and candidates[0].proof(RESPONDER, handshake_hash) != proof:
            candidates.pop(0)
        if not candidates:
            raise Ended("proof")
        shared.append(candidates.pop(0))
    return shared, rest


def identity(data, role, handshake_hash, own=None):
    """PeerID and instance; `own` is the reader's PeerID."""
    if len(data) != IDENTITY_BYTES:
        raise Ended("malformed")
    peer, instance, signature = data[:32], int.from_bytes(data[32:40], "big"), data[40:]
    if not is_signed(signature, peer, b"parley/1/id" + bytes([role]) + handshake_hash):
        raise Ended("identity")
    if peer == own:
        raise Ended("ourself")
    return peer, instance
