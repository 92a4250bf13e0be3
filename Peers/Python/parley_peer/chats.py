"""Chat sessions: whom to dial, which of two stays, what comes in them; messages to one peer (Sessions.md)."""
import asyncio
import datetime
import secrets
import time

from parley_wire import delivered, keys, messages, sessions, writing
from parley_wire.reading import Refused

from . import links, secure
from .pausing import now, pause

PING_SECONDS_SUCCESSOR, PING_SECONDS, PONG_SECONDS = 6, 8, 3
UNUSED_SECONDS = 30
REDIAL_SECONDS, REDIAL_SECONDS_MAX = 1, 30
OTHER_SECONDS = 3
PEER_MESSAGE_SECONDS, PEER_MESSAGE_SECONDS_FAILED = 3, 0.5
PEER_MESSAGES_AT_ONCE = 32
OUTBOX_DAYS_MAX, OUTBOX_MESSAGES_MAX, OUTBOX_BYTES_MAX = 7, 10_000, 64 << 20
OUTBOX_SECONDS_MAX = datetime.timedelta(days=OUTBOX_DAYS_MAX).total_seconds()


class Chats:
    def __init__(self, peer):
        self.peer, self.all, self.dialling = peer, {}, {}
        self.stored = {}
        self.appeared = asyncio.Event()
        self.at_once = asyncio.Semaphore(PEER_MESSAGES_AT_ONCE)

    def standing(self, peer_id, instance, room=None):
        """The session with this run of a peer, if the room was proved in it."""
        session = self.all.get(peer_id)
        if session is None or session.is_closed or instance not in (None, session.instance):
            return None
        return session if room is None or room in session.rooms else None

    async def chat(self, room, member):
        """A session in which the room was proved; None when it cannot be had."""
        session = self.standing(member.peer_id, member.instance, room)
        if session is None:
            await self._dial_once(member)
            session = self.standing(member.peer_id, member.instance, room)
        if session is not None:
            session.last_used = now()
        return session

    async def anew(self, room, member):
        """Whether a suspect is reached by a new connection, with the room proved."""
        old = self.all.pop(member.peer_id, None)
        if old is not None and not old.is_closed:
            old.put(writing.closing())
            old.said_closing = True
            old.close()
        return await self.chat(room, member) is not None

    async def _dial_once(self, member):
        """Several who want the same session wait for one attempt."""
        if member.peer_id not in self.dialling:
            self.dialling[member.peer_id] = self.peer.tasks.start(self._dial(member))
        await asyncio.wait([self.dialling[member.peer_id]])

    async def _dial(self, member):
        try:
            address = member.place and (member.place[1][0], member.tcp_port, *member.place[1][2:])
            if address and member.tcp_port:
                await self.dial(address, member.peer_id)
        finally:
            del self.dialling[member.peer_id]

    async def dial(self, address, expected=None):
        """Whether it led to a session."""
        try:
            reader, writer = await asyncio.wait_for(links.connect(address), secure.HANDSHAKE_SECONDS)
            session = await secure.dial(reader, writer, secure.CHAT, self.peer, expected)
        except secure.BROKEN:
            return False
        self.take(session)
        return True

    def take(self, session):
        """A session whose handshake is done, by either."""
        session.last_heard = session.last_used = now()
        session.said_closing = session.heard_closing = False
        session.proved = set(session.rooms)
        other = self.all.get(session.peer_id)
        if other is not None and not other.is_closed and other.instance == session.instance:
            # Of two, the one dialled by the smaller PeerID stays; of two by the same, the newer.
            smaller = min(self.peer.peer_id, session.peer_id)
            if self._dialled_by(session) != smaller and self._dialled_by(other) == smaller:
                self._retire(session)
                self.peer.tasks.start(self._run(session))
                return
            self._retire(other)
        self.all[session.peer_id] = session
        self.peer.tasks.start(self._run(session))
        for room in session.rooms:
            self._proved(session, room)
        self._prove_more(session)

    def _dialled_by(self, session):
        return self.peer.peer_id if session.role == sessions.INITIATOR else session.peer_id

    def _retire(self, session):
        """Heard to its end, but nothing is said in it any more."""
        session.put(writing.closing())
        session.said_closing = True

        async def end():
            await pause(OTHER_SECONDS)
            session.close()

        self.peer.tasks.start(end())

    def _proved(self, session, room):
        member = room.members.all.get(session.peer_id)
        if member is not None and member.instance == session.instance:
            room.members.is_here(member)
        elif member is None or not member.heard_from:
            # Only this session reaches it, as far as we know: it is told by it who we are.
            session.put(writing.session_presence(room.channel_id, room.presence_object(is_full=True)))

    def joined(self):
        for session in self.all.values():
            if not session.is_closed:
                self._prove_more(session)

    def _prove_more(self, session):
        new = [room for room in self.peer.rooms.values() if room not in session.proved]
        session.proved.update(new)
        self._prove(session, new)

    def _prove(self, session, rooms):
        if rooms:
            session.put(writing.prove(
                [room.channel.proof(session.role, session.handshake_hash) for room in rooms[: sessions.PROOFS_MAX]]))

    async def _run(self, session):
        watch = self.peer.tasks.start(self._watch(session))
        try:
            while True:
                value = sessions.message(await session.receive())
                session.last_heard = now()
                if value is not None:
                    await self._heard(session, value)
        except secure.BROKEN:
            pass
        finally:
            watch.cancel()
            session.close()
            if self.all.get(session.peer_id) is session:
                del self.all[session.peer_id]
                if not session.heard_closing and not session.said_closing and not self.peer.is_closed:
                    self._lost(session)

    def _lost(self, session):
        for room in session.rooms:
            member = room.members.all.get(session.peer_id)
            if member is not None and member.instance == session.instance:
                room.members.suspect(member, tells_all=True)

    async def _watch(self, session):
        """Pings a quiet session, closes one that is not used."""
        while True:
            await pause(0.5)
            is_kept = self.peer.is_successor(session.peer_id)
            quiet = now() - session.last_heard
            limit = PING_SECONDS_SUCCESSOR if is_kept else PING_SECONDS
            if quiet > limit + PONG_SECONDS:
                session.close()
                return
            if quiet > limit:
                session.put(writing.ping(secrets.randbits(64)))
            if session.role == sessions.INITIATOR and not is_kept and now() - session.last_used > UNUSED_SECONDS:
                session.put(writing.closing())
                session.said_closing = True
                session.close()
                return

    async def _heard(self, session, value):
        kind = value["type"]
        if kind == "ping":
            await session.send(writing.pong(int(value["nonce"], 16)))
        elif kind == "closing":
            session.heard_closing = True
            if self.all.get(session.peer_id) is session:
                del self.all[session.peer_id]
        elif kind == "prove":
            self._prove_heard(session, [bytes.fromhex(proof) for proof in value["proofs"]])
        elif kind == "peer_message":
            session.last_used = now()
            await self._peer_message(session, value)
        elif kind == "live_peer_message":
            session.last_used = now()
            await self._live_peer_message(session, value)
        elif kind == "peer_stored":
            if value["message_id"] in self.stored:
                self.stored[value["message_id"]].set()
        elif "channel" in value:
            session.last_used = now()
            room = self.peer.rooms.get(bytes.fromhex(value["channel"]))
            if room is not None and room in session.rooms:
                await room.asked(session, value)

    def _prove_heard(self, session, proofs):
        theirs = 1 - session.role
        for room in self.peer.rooms.values():
            if room.channel.proof(theirs, session.handshake_hash) in proofs and room not in session.rooms:
                session.rooms.append(room)
                # Proved back even where it was proved before: they may not have known the channel then.
                session.proved.add(room)
                self._prove(session, [room])
                self._proved(session, room)

    # Messages to one

    def _read_peer_message(self, session, value, is_live):
        """The checked message, and its JSON; None when it is not what it should be."""
        json = value["json"].encode("utf-8", "surrogateescape")
        try:
            found = messages.message(json, session.peer_id)
            is_ours = "receivers" not in found or keys.base32(self.peer.peer_id) in found["receivers"]
            is_allowed = delivered.is_live(found) if is_live else found["type"] not in delivered.LIVE
            if found["message_id"] == value["message_id"] and is_ours and is_allowed:
                return found, json
        except Refused:
            pass
        self.peer.malformed += 1
        return None, json

    async def _live_peer_message(self, session, value):
        found, _ = self._read_peer_message(session, value, is_live=True)
        if found is not None:
            await session.send(writing.peer_stored(found["message_id"]))
            self.peer.tell({"event": "live", "channel": None, "author": session.peer_id, **found})

    async def _peer_message(self, session, value):
        found, json = self._read_peer_message(session, value, is_live=False)
        if found is None:
            return
        is_new = self.peer.store.keep_received(session.peer_id, found["message_id"], json)
        await session.send(writing.peer_stored(found["message_id"]))
        if is_new:
            self.peer.tell({"event": "peer_message", "author": session.peer_id, **found})

    async def deliver(self, message_id, peer_id, json, since):
        """Says it until the other has it on disk, or it has waited for too long."""
        stored = self.stored[message_id] = asyncio.Event()
        while not stored.is_set() and time.time() - since < OUTBOX_SECONDS_MAX:
            found = self.peer.member(peer_id)
            if found is None:
                self.appeared.clear()
                await pause(PEER_MESSAGE_SECONDS, until=self.appeared)
                continue
            async with self.at_once:
                session = await self.chat(*found)
                if session is not None:
                    session.put(writing.peer_message(message_id, json))
                wait = PEER_MESSAGE_SECONDS if session is not None else PEER_MESSAGE_SECONDS_FAILED
                await pause(wait, until=stored)
        del self.stored[message_id]
        self.peer.store.waits_no_more(message_id)
        outcome = "delivered" if stored.is_set() else "expired"
        self.peer.tell({"event": outcome, "message_id": message_id, "peer_id": peer_id})

    # The kept session

    async def keep_successors(self):
        """One session to the present member with the next greater PeerID of each channel, else to the least."""
        wait, failed = REDIAL_SECONDS, {}
        while True:
            for room in list(self.peer.rooms.values()):
                member = self.peer.successor(room)
                if member is None or self.standing(member.peer_id, member.instance, room):
                    failed.pop(room.channel_id, None)
                    continue
                due, wait = failed.get(room.channel_id, (0, REDIAL_SECONDS))
                if now() >= due and await self.chat(room, member) is None:
                    failed[room.channel_id] = now() + wait, min(REDIAL_SECONDS_MAX, 2 * wait)
            self.appeared.clear()
            await pause(0.5, until=self.appeared)
