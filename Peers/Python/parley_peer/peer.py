"""A peer: who it is, its sockets, its channels; what the command line and the tests use."""
import asyncio
import datetime
import os
import secrets
import sys
import time
import traceback

from parley_wire import datagrams, keys, sessions, writing
from parley_wire.reading import Refused

from . import links, secure
from .chats import OUTBOX_BYTES_MAX, OUTBOX_MESSAGES_MAX, Chats
from .media import Media
from .pausing import Tasks, now
from .room import Room
from .store import Store

ROOMS_MAX = 64
HALF_OPEN_MAX = 256
MESSAGE_ID_BYTES = 16
COPY_SECONDS = 1


class Peer:
    """`tell`: called with each event, a dictionary with a member `event`."""

    def __init__(self, home, name, interface, tell, suites=(sessions.AESGCM_BIT, sessions.CHACHAPOLY_BIT)):
        self.store, self.name, self.interface, self.tell, self.suites = Store(home), name, interface, tell, suites
        self.identity = keys.Identity(self.store.own("seed", lambda: os.urandom(32)))
        self.peer_id = self.identity.peer_id
        self.instance = secrets.randbits(64)
        self.incarnation = self.store.own("incarnation", lambda: 0) + 1
        self.store.set_own("incarnation", self.incarnation)
        self.counter, self.last_timestamp, self.malformed = 0, 0, 0
        self.rooms, self.tags, self.former, self.half_open = {}, {}, {}, {}
        self.links, self.server, self.tcp_port, self.is_closed = [], [], 0, False
        self.met_copy = -COPY_SECONDS
        self.tasks = Tasks(self.trouble)
        self.sessions, self.media = Chats(self), Media(self)

    async def start(self):
        self.links = links.links(self.interface)
        if not self.links:
            raise OSError(f"{self.interface} has no address")
        for link in self.links:
            await link.open(self._datagram)
        for link in self.links:
            listening = link.listening_socket(self.tcp_port)
            self.tcp_port = listening.getsockname()[1]
            self.server.append(await asyncio.start_server(self._connection, sock=listening))
        self.tasks.start(self.sessions.keep_successors())
        for waiting in self.store.outgoing():
            self.tasks.start(self.sessions.deliver(*waiting))

    async def close(self):
        """With goodbyes."""
        for channel_id in list(self.rooms):
            await self.leave(channel_id)
        self.is_closed = True
        for session in list(self.sessions.all.values()):
            if not session.is_closed:
                session.put(writing.closing())
                session.said_closing = True
                session.close()
        for server in self.server:
            server.close()
        await self.tasks.end()
        for link in self.links:
            link.close()
        self.store.close()

    async def meet_copy(self, instance, incarnation, tcp_port, came_from):
        """Somebody says to be us in another run: only a handshake shows that this is no recording."""
        if now() - self.met_copy < COPY_SECONDS:
            return
        self.met_copy = now()
        address = (came_from[1][0], tcp_port, *came_from[1][2:])
        if not await secure.is_alive_copy(address, instance, self):
            return
        if (incarnation, instance) > (self.incarnation, self.instance):
            self.abort()

    def rise_above(self, incarnation):
        self.incarnation = incarnation + 1
        self.store.set_own("incarnation", self.incarnation)

    def abort(self):
        """The same identity runs elsewhere, later: whoever runs this peer must close it."""
        self.tell({"event": "aborted"})

    def trouble(self, error):
        traceback.print_exception(type(error), error, error.__traceback__, file=sys.stderr)

    # Channels

    async def join(self, name, passphrase=None, is_room=False):
        if len(self.rooms) >= ROOMS_MAX:
            raise ValueError(f"a peer is in at most {ROOMS_MAX} channels")
        channel = (
            keys.Channel.open(name, is_room) if passphrase is None
            else keys.Channel.passphrase(name, passphrase, is_room))
        if channel.channel_id not in self.rooms:
            room = self.rooms[channel.channel_id] = Room(self, name, channel)
            self.media.joined(room)
            room.start()
            self.sessions.joined()
        return self.rooms[channel.channel_id]

    async def leave(self, channel_id):
        room = self.rooms.pop(channel_id)
        self.tags = {}
        await room.leave()

    def room(self, name):
        for room in self.rooms.values():
            if room.name == name:
                return room
        raise ValueError(f"not in the channel {name}")

    # What channels share

    def next_counter(self):
        self.counter += 1
        return self.counter

    def new_message_id(self):
        return keys.base32(os.urandom(MESSAGE_ID_BYTES))

    def timestamp(self):
        return datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")

    def member(self, peer_id):
        """A room in which this peer is present, and the member."""
        for room in self.rooms.values():
            member = room.members.all.get(peer_id)
            if member is not None and member.is_there:
                return room, member
        return None

    def successor(self, room):
        there = sorted(room.members.there(), key=lambda member: member.peer_id)
        return next((member for member in there if member.peer_id > self.peer_id), there[0] if there else None)

    def is_successor(self, peer_id):
        found = (self.successor(room) for room in self.rooms.values())
        return any(member is not None and member.peer_id == peer_id for member in found)

    def appeared(self, room, member):
        self.sessions.appeared.set()

    def went(self, room, member):
        self.sessions.appeared.set()

    async def peer_message(self, peer_id, text):
        """Its message ID; it is on disk and will be said until the other has it."""
        message_id = self.new_message_id()
        json = writing.kept(self.peer_id, self.name, message_id, self.timestamp(), "text", {"body": text})
        count, size = self.store.waiting()
        if count >= OUTBOX_MESSAGES_MAX or size + len(json) > OUTBOX_BYTES_MAX:
            raise ValueError("too many messages wait for people who are away")
        since = time.time()
        self.store.keep_outgoing(message_id, peer_id, json, since)
        self.tasks.start(self.sessions.deliver(message_id, peer_id, json, since))
        return message_id

    async def dial(self, host, port):
        """Somebody at an address that a person gave."""
        return await self.sessions.dial((host, port))

    # Sockets

    def _datagram(self, datagram, link, address):
        try:
            instance, tag, _ = datagrams.header(datagram)
            if instance == self.instance or self.is_closed:
                return
            room = self._room_of(instance, tag)
            if room is not None:
                body = datagrams.open_datagram(datagram, room.channel)
                room.heard(body, datagram, instance, (link, address))
        except (datagrams.Unopened, Refused):
            self.malformed += 1

    def _room_of(self, instance, tag):
        key = instance, tag
        if key not in self.tags:
            if len(self.tags) > 16_384:
                self.tags = {}
            self.tags[key] = next((room for room in self.rooms.values() if room.channel.tag(instance) == tag), None)
            if self.tags[key] is None:
                # It may be joined later.
                del self.tags[key]
                return None
        return self.tags[key]

    async def _connection(self, reader, writer):
        here = asyncio.current_task()
        if len(self.half_open) >= HALF_OPEN_MAX:
            next(iter(self.half_open)).cancel()
        self.half_open[here] = True
        try:
            session = await secure.answer(reader, writer, self)
        except secure.BROKEN:
            return
        finally:
            del self.half_open[here]
        if session.purpose == secure.CHAT:
            self.sessions.take(session)
        else:
            self.tasks.start(self.media.serve(session))
