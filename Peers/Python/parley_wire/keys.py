"""Identities, channels, signatures and seals (Wire.md, Identity and Channels; Datagrams.md; Objects.md)."""
import base64
import hashlib
import unicodedata

import nacl.exceptions
from nacl import bindings

ARGON2ID_PASSES = 3
ARGON2ID_BYTES = 65_536 * 1_024
PASSPHRASE_BYTES_MAX = 1_024
NAME_BYTES_MAX = 64


def blake2b(size, *parts, key=b""):
    state = hashlib.blake2b(digest_size=size, key=key)
    for part in parts:
        state.update(part)
    return state.digest()


def first8(digest):
    return int.from_bytes(digest[:8], "big")


def base32(data):
    return base64.b32encode(data).decode("ascii").rstrip("=").lower()


def unbase32(text):
    """The bytes, or None for a text that no bytes have."""
    if any(character not in "abcdefghijklmnopqrstuvwxyz234567" for character in text):
        return None
    try:
        data = base64.b32decode(text.upper() + "=" * (-len(text) % 8))
    except ValueError:
        return None
    return data if base32(data) == text else None


def is_control(character):
    return unicodedata.category(character) == "Cc"


def is_visible(character):
    """Neither white space nor invisible."""
    hidden = unicodedata.category(character) in ("Cf", "Zl", "Zp", "Co", "Cs", "Cn", "Cc")
    return not character.isspace() and not hidden and ord(character) not in (0x115F, 0x1160, 0x3164, 0xFFA0, 0x2800)


def name_trouble(name):
    """The name in NFC and None, or None and what is wrong with it."""
    if any(is_control(character) for character in name):
        return None, "control character"
    normal = unicodedata.normalize("NFC", name)
    if not any(is_visible(character) for character in normal):
        return None, "nothing visible"
    if len(normal.encode("utf-8")) > NAME_BYTES_MAX:
        return None, "too long"
    return normal, None


class Identity:
    def __init__(self, seed):
        self.peer_id, self._secret = bindings.crypto_sign_seed_keypair(seed)

    def sign(self, message):
        return bindings.crypto_sign(message, self._secret)[:64]

    def pairwise_key(self, other, channel_id, sending):
        own = bindings.crypto_sign_ed25519_sk_to_curve25519(self._secret)
        point = bindings.crypto_sign_ed25519_pk_to_curve25519(other)
        shared = bindings.crypto_scalarmult(own, point)
        sender, receiver = (self.peer_id, other) if sending else (other, self.peer_id)
        return blake2b(32, b"parley/1/pairwise", shared, channel_id, sender, receiver)


def fingerprint(peer_id):
    text = base32(peer_id)
    return text[:4] + "-" + text[4:8]


def safety_code(one, other):
    low, high = sorted((one, other))
    state = blake2b(64, b"parley/1/safety", low, high)
    for _ in range(5200):
        state = blake2b(64, state, low, high)
    groups = [int.from_bytes(state[5 * group:5 * group + 5], "big") % 100_000 for group in range(6)]
    return " ".join(f"{group:05}" for group in groups)


def is_signed(signature, peer_id, message):
    try:
        bindings.crypto_sign_open(signature + message, peer_id)
        return True
    except (nacl.exceptions.BadSignatureError, ValueError):
        return False


def object_message(context, channel_id, instance, encoded):
    return b"parley/1/" + context.encode("ascii") + b"\0" + channel_id + instance.to_bytes(8, "big") + encoded


class Channel:
    def __init__(self, secret, owned_id=b""):
        self.secret = secret
        self.channel_id = owned_id or blake2b(32, b"parley/1/channel/id", key=secret)
        self.discovery_key = blake2b(32, b"parley/1/channel/discovery", owned_id, key=secret)
        self.datagram_key = blake2b(32, b"parley/1/channel/datagram", owned_id, key=secret)
        self.proof_key = blake2b(32, b"parley/1/channel/proof", owned_id, key=secret)

    @classmethod
    def owned(cls, name, founder, salt, secret, room=False):
        label = b"parley/1/room/owned" if room else b"parley/1/channel/owned"
        return cls(secret, blake2b(32, label, founder, salt, name_bytes(name)))

    def generation_hash(self, number):
        return blake2b(
            32, b"parley/1/channel/generation", self.channel_id, number.to_bytes(8, "big"), self.secret)

    @classmethod
    def open(cls, name, room=False):
        label = b"parley/1/room/open" if room else b"parley/1/channel/open"
        return cls(blake2b(32, label, name_bytes(name)))

    @classmethod
    def passphrase(cls, name, passphrase, room=False):
        if not 1 <= len(passphrase) <= PASSPHRASE_BYTES_MAX:
            raise ValueError("a passphrase has 1 to 1,024 bytes")
        label = b"parley/1/room/salt" if room else b"parley/1/channel/salt"
        salt = blake2b(16, label, name_bytes(name))
        return cls(
            bindings.crypto_pwhash_alg(
                32, passphrase, salt, ARGON2ID_PASSES, ARGON2ID_BYTES, bindings.crypto_pwhash_ALG_ARGON2ID13))

    def tag(self, instance):
        return first8(blake2b(16, instance.to_bytes(8, "big"), key=self.discovery_key))

    def proof(self, role, handshake_hash):
        return blake2b(
            32, b"parley/1/proof", bytes([role]), self.channel_id, handshake_hash, key=self.proof_key)


def name_bytes(name):
    normal, trouble = name_trouble(name)
    if trouble:
        raise ValueError(trouble)
    return normal.encode("utf-8")


def bucket(log):
    """The first byte of its instance."""
    return log.to_bytes(8, "big")[0]


def bucket_digest(logs):
    """Logs of one bucket: (author, log, head, runs above a gap as (first, last))."""
    state = hashlib.blake2b(digest_size=16)
    for author, log, head, _ in sorted(logs):
        if head > 0:
            state.update(author + log.to_bytes(8, "big") + head.to_bytes(8, "big"))
    for author, log, _, runs in sorted(logs):
        for first, last in sorted(runs):
            state.update(author + log.to_bytes(8, "big") + first.to_bytes(8, "big") + last.to_bytes(8, "big"))
    return state.digest()


def heads_digest(logs):
    """Logs of a channel, as for a bucket."""
    buckets = {}
    for log in logs:
        if log[2] > 0 or log[3]:
            buckets.setdefault(bucket(log[1]), []).append(log)
    state = hashlib.blake2b(digest_size=16)
    for number in sorted(buckets):
        state.update(bytes([number]) + bucket_digest(buckets[number]))
    return state.digest()


def unseal(sealed, associated, nonce, key):
    """XChaCha20-Poly1305; None when it does not open."""
    try:
        return bindings.crypto_aead_xchacha20poly1305_ietf_decrypt(sealed, associated, nonce, key)
    except (nacl.exceptions.CryptoError, ValueError):
        return None


def seal(plaintext, associated, nonce, key):
    return bindings.crypto_aead_xchacha20poly1305_ietf_encrypt(plaintext, associated, nonce, key)
