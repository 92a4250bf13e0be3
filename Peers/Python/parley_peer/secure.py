"""Sessions: the handshake on noiseprotocol, and frames (Sessions.md)."""
import asyncio
import os
import warnings

from cryptography.exceptions import InvalidTag
from nacl import bindings
from noise.connection import Keypair, NoiseConnection
from noise.exceptions import NoiseInvalidMessage
from parley_wire import sessions, writing
from parley_wire.reading import Refused

from . import links

HANDSHAKE_SECONDS = 5
CHAT, MEDIA = 0, 1
NAMES = {
    sessions.AESGCM_BIT: b"Noise_NN_25519_AESGCM_SHA256",
    sessions.CHACHAPOLY_BIT: b"Noise_NN_25519_ChaChaPoly_SHA256",
}
SUITES = sessions.AESGCM_BIT | sessions.CHACHAPOLY_BIT
# What a session's end looks like from below.
BROKEN = (OSError, EOFError, asyncio.IncompleteReadError, asyncio.TimeoutError, Refused, sessions.Ended)


def noise(suite, prologue, is_initiator, ephemeral=None):
    """`ephemeral`: the secret of this end, where it is known already."""
    connection = NoiseConnection.from_name(NAMES[suite])
    connection.set_prologue(prologue)
    if ephemeral is not None:
        connection.set_keypair_from_private_bytes(Keypair.EPHEMERAL, ephemeral)
    if is_initiator:
        connection.set_as_initiator()
    else:
        connection.set_as_responder()
    with warnings.catch_warnings():
        # It warns of keys that are not its own making. This one is new for each connection.
        warnings.simplefilter("ignore", UserWarning)
        connection.start_handshake()
    return connection


class Ourself(sessions.Ended):
    """Our own PeerID, in another run."""

    def __init__(self, instance):
        super().__init__("ourself")
        self.instance = instance


class Session:
    """An authenticated connection. `rooms`: those proved by both; `peer_id`, `instance`: whose the other end is."""

    def __init__(self, reader, writer, role):
        self.reader, self.writer, self.role = reader, writer, role
        self.connection, self.purpose, self.rooms = None, None, []
        self.peer_id = self.instance = self.handshake_hash = None
        self.longest = sessions.HANDSHAKE_SEALED_BYTES_MAX
        self.is_closed = False

    def put(self, payload):
        sealed = self.connection.encrypt(bytes(payload))
        self.writer.write(len(sealed).to_bytes(2, "big") + sealed)

    async def send(self, payload):
        self.put(payload)
        await self.writer.drain()

    async def receive(self):
        length = int.from_bytes(await self.reader.readexactly(2), "big")
        if not sessions.SEALED_BYTES_MIN <= length <= self.longest:
            raise sessions.Ended("frame")
        try:
            return self.connection.decrypt(await self.reader.readexactly(length))
        except NoiseInvalidMessage:
            raise sessions.Ended("frame") from None

    def close(self):
        self.is_closed = True
        self.writer.close()

    @property
    def host(self):
        return self.writer.get_extra_info("peername")


async def dial(reader, writer, purpose, peer, expected=None):
    """The initiator's end; `expected`: the PeerID that is dialled."""
    session = Session(reader, writer, sessions.INITIATOR)
    try:
        await asyncio.wait_for(_dial(session, purpose, peer, expected), HANDSHAKE_SECONDS)
    except BaseException:
        session.close()
        raise
    return session


async def _dial(session, purpose, peer, expected):
    # The key goes out before the suite is known; the Noise state is made when it is, with this same key.
    ephemeral = os.urandom(32)
    ours = writing.preface(b"S", purpose, SUITES)
    session.writer.write(ours + bindings.crypto_scalarmult_base(ephemeral))
    answer = await session.reader.readexactly(sessions.PREFACE_BYTES + 48)
    theirs = answer[: sessions.PREFACE_BYTES]
    answered, suite = sessions.preface(theirs, sessions.RESPONDER)
    if answered != purpose:
        raise sessions.Ended("purpose")
    if suite not in NAMES or not suite & SUITES:
        raise sessions.Ended("suite")
    session.connection = noise(suite, ours + theirs, True, ephemeral)
    session.connection.write_message()
    try:
        session.connection.read_message(answer[sessions.PREFACE_BYTES :])
    except (InvalidTag, ValueError):
        raise sessions.Ended("seal") from None
    session.purpose, h = purpose, session.connection.get_handshake_hash()
    offered = list(peer.rooms.values())[: sessions.PROOFS_MAX]
    if not offered:
        raise sessions.Ended("no_channel")
    proofs = [room.channel.proof(sessions.INITIATOR, h) for room in offered]
    await session.send(bytes([len(proofs)]) + b"".join(proofs))
    by_channel = {room.channel: room for room in offered}
    shared, rest = sessions.shared_of_acceptance(await session.receive(), [room.channel for room in offered], h)
    session.peer_id, session.instance = sessions.identity(rest, sessions.RESPONDER, h)
    if session.peer_id == peer.peer_id:
        raise Ourself(session.instance)
    if expected is not None and session.peer_id != expected:
        raise sessions.Ended("unexpected")
    await session.send(writing.identity_proof(peer.identity, peer.instance, sessions.INITIATOR, h))
    session.rooms, session.handshake_hash = [by_channel[channel] for channel in shared], h
    session.longest = sessions.SEALED_BYTES_MAX


async def is_alive_copy(address, instance, peer):
    """Whether who answers there has our own key and runs as this instance."""
    try:
        reader, writer = await asyncio.wait_for(links.connect(address), HANDSHAKE_SECONDS)
        await dial(reader, writer, CHAT, peer)
    except Ourself as found:
        return found.instance == instance
    except BROKEN:
        pass
    return False


async def answer(reader, writer, peer):
    """The responder's end."""
    session = Session(reader, writer, sessions.RESPONDER)
    try:
        await asyncio.wait_for(_answer(session, peer), HANDSHAKE_SECONDS)
    except BaseException:
        session.close()
        raise
    return session


async def _answer(session, peer):
    hello = await session.reader.readexactly(sessions.PREFACE_BYTES + 32)
    theirs = hello[: sessions.PREFACE_BYTES]
    session.purpose, offered = sessions.preface(theirs, sessions.INITIATOR)
    suite = sessions.chosen(offered, peer.suites)
    ours = writing.preface(b"R", session.purpose, suite)
    session.connection = noise(suite, theirs + ours, False)
    try:
        session.connection.read_message(hello[sessions.PREFACE_BYTES :])
        session.writer.write(ours + session.connection.write_message())
    except ValueError:
        raise sessions.Ended("seal") from None
    h = session.connection.get_handshake_hash()
    by_channel = {room.channel: room for room in peer.rooms.values()}
    shared = sessions.shared_of_offer(await session.receive(), list(by_channel), h)
    proofs = [channel.proof(sessions.RESPONDER, h) for channel in shared]
    own = writing.identity_proof(peer.identity, peer.instance, sessions.RESPONDER, h)
    await session.send(bytes([len(proofs)]) + b"".join(proofs) + own)
    introduction = await session.receive()
    session.peer_id, session.instance = sessions.identity(
        introduction, sessions.INITIATOR, h, own=peer.peer_id)
    session.rooms, session.handshake_hash = [by_channel[channel] for channel in shared], h
    session.longest = sessions.SEALED_BYTES_MAX
