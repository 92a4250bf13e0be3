"""A channel that this peer is in: what is heard and said in it."""
import asyncio
import os

from parley_wire import datagrams, keys, messages, objects, writing
from parley_wire.reading import Refused

from . import attributes
from .history import History
from .members import Members
from .pausing import Tasks, pause

FRAGMENT_GROUPS_MAX = 64
GOODBYES = 3


class Room:
    def __init__(self, peer, name, channel):
        self.peer, self.name, self.channel, self.channel_id = peer, name, channel, channel.channel_id
        self.tasks = Tasks(peer.trouble)
        self.sooner = asyncio.Event()
        self.interval = 2
        self.fragments = {}
        self.members = Members(self)
        self.history = History(self)

    def start(self):
        self.tasks.start(self.members.beacons())
        self.tasks.start(self.members.watch())
        self.history.start()

    async def leave(self):
        me = self.peer.peer_id
        for found in self.attributes():
            if found["until_leave"] and found["author"] == me:
                await self.set_attribute(found["key"], None, overwrite=False)
        goodbye = writing.live(
            self.peer.peer_id, self.peer.instance, self.peer.next_counter(),
            writing.status(self.peer.peer_id, self.peer.name, online=False))
        signed = writing.signed(self.peer.identity, "live", self.channel_id, self.peer.instance, goodbye)
        for _ in range(GOODBYES):
            self.send([writing.frame(writing.LIVE_FRAME, signed)])
        for member in self.members.there():
            if member.place:
                self._datagram([writing.frame(writing.LIVE_FRAME, signed)], *member.place)
            self.in_session(member, writing.session_live(self.channel_id, signed))
        await self.tasks.end()

    # Said

    def presence_object(self, is_full, wants_acknowledgement=False):
        status = writing.status(self.peer.peer_id, self.peer.name, online=True)
        encoded = writing.presence(
            self.peer.peer_id, self.peer.instance, self.peer.next_counter(), self.peer.incarnation,
            self.peer.tcp_port, int(self.interval * 1000), self.members.nonce, self.history.own_head(),
            self.history.digest(), self.history.clock, wants_acknowledgement, keys.first8(keys.blake2b(32, status)),
            status if is_full else b"")
        return writing.signed(self.peer.identity, "presence", self.channel_id, self.peer.instance, encoded)

    def presence(self, is_full, wants_acknowledgement=False):
        return writing.frame(writing.PRESENCE_FRAME, self.presence_object(is_full, wants_acknowledgement))

    def send(self, frames):
        """By multicast, on every link."""
        for link in self.peer.links:
            self._datagram(frames, link, None)

    def _datagram(self, frames, link, address, direct=None):
        nonce = os.urandom(24)
        link.send(writing.datagram(self.channel, self.peer.instance, nonce, frames, direct), address)

    def answer(self, frames, place):
        """To where a datagram came from."""
        self._datagram(frames, *place)

    def direct(self, member, parts, with_presence=False, place=None):
        """For one member; `place`: a link and an address, else where it is known to be."""
        frames = [self.presence(is_full=True)] if with_presence else []
        place = place or member.place
        if place is None:
            if frames:
                self.in_session(member, writing.session_presence(self.channel_id, self.presence_object(is_full=True)))
            self.in_session(member, writing.session_direct(self.channel_id, parts))
            return
        try:
            key = self.peer.identity.pairwise_key(member.peer_id, self.channel_id, sending=True)
        except Exception:
            return  # no key of the main subgroup: it is sent nothing
        plain = writing.varint(self.peer.next_counter()) + b"".join(parts)
        self._datagram(frames, *place, direct=(key, plain))

    def in_session(self, member, message):
        """To a member that only a session reaches."""
        if member.place is None:
            session = self.peer.sessions.standing(member.peer_id, member.instance, self)
            if session:
                session.put(message)

    def send_session_presences(self):
        for member in self.members.there():
            if member.place is None:
                signed = self.presence_object(is_full=True)
                self.in_session(member, writing.session_presence(self.channel_id, signed))

    def multicast_entry(self, encoded):
        for frame in writing.entry_frames(encoded):
            self.send([frame])
        for member in self.members.there():
            self.in_session(member, writing.entries(self.channel_id, 0, True, [encoded]))

    def live(self, kind, own):
        """To whoever is there, once; its message ID."""
        message_id = self.peer.new_message_id()
        json = writing.kept(self.peer.peer_id, self.peer.name, message_id, self.peer.timestamp(), kind, own)
        value = writing.live(self.peer.peer_id, self.peer.instance, self.peer.next_counter(), json)
        signed = writing.signed(self.peer.identity, "live", self.channel_id, self.peer.instance, value)
        for frame in writing.live_frames(signed):
            self.send([frame])
        for member in self.members.there():
            self.in_session(member, writing.session_live(self.channel_id, signed))
        return message_id

    # Heard

    def heard(self, body, datagram, instance, came_from):
        """The opened body of a datagram."""
        for frame in datagrams.frames(body):
            kind = frame["type"]
            try:
                if kind in ("presence", "live"):
                    self._signed(kind, bytes.fromhex(frame["signature"] + frame["object"]), instance, came_from)
                elif kind == "entry":
                    self.history.entry_heard(bytes.fromhex(frame["bytes"]))
                elif kind in ("fragment", "live_fragment"):
                    self._fragment(kind, instance, frame["fragment"], came_from)
                elif kind == "direct":
                    self._direct(bytes.fromhex(frame["bytes"]), datagram, instance, came_from)
                elif kind == "suspect":
                    self.members.suspected(bytes.fromhex(frame["peer"]), frame["incarnation"])
                elif kind == "who_has":
                    self._who_has([bytes.fromhex(media) for media in frame["media"]], instance)
            except Refused:
                continue

    def _signed(self, kind, signed, instance, came_from):
        read = objects.presence if kind == "presence" else objects.live
        if int(read(signed[64:])["instance"], 16) != instance:
            return
        if kind == "presence":
            self.members.presence(signed, came_from)
        else:
            self.members.goodbye(signed)

    def _fragment(self, kind, instance, fragment, came_from):
        key = kind, came_from[1], instance, fragment["group"]
        found = self.fragments.setdefault(key, [])
        if found and fragment["count"] != found[0]["count"]:
            return
        if any(fragment["index"] == other["index"] for other in found):
            return
        found.append(fragment)
        if len(found) == found[0]["count"]:
            del self.fragments[key]
            whole = datagrams.joined(found)
            if whole is not None and kind == "fragment":
                self.history.entry_heard(whole)
            elif whole is not None:
                self._signed("live", whole, instance, came_from)
        elif len(self.fragments) > FRAGMENT_GROUPS_MAX:
            del self.fragments[next(iter(self.fragments))]

    def _direct(self, sealed, datagram, instance, came_from):
        for member in self.members.of_instance(instance):
            plain = datagrams.open_direct(sealed, datagram, member.peer_id, self.peer.identity, self.channel)
            if plain is not None:
                break
        else:
            return
        value = datagrams.direct(plain)
        if value["counter"] and self.members.window(member.peer_id, instance, "direct").take(value["counter"]):
            self.members.direct(member, value["parts"], came_from)

    def _who_has(self, media_ids, instance):
        held = [media for media in media_ids if self.peer.media.serves(media, self)]
        for member in self.members.of_instance(instance) if held else ():
            self.direct(member, [writing.holding(held)])

    async def asked(self, session, value):
        """A chat message of this channel, in a session that has proved it."""
        kind, member = value["type"], self.members.all.get(session.peer_id)
        if kind == "presence":
            self.members.presence(bytes.fromhex(value["signature"] + value["object"]), None, session)
        elif kind == "live":
            self.members.goodbye(bytes.fromhex(value["signature"] + value["object"]), session)
        elif kind == "direct":
            if member is not None:
                self.members.direct(member, value["parts"], None)
        else:
            await self.history.asked(session, value)

    # What people do

    def listed(self):
        """PeerID, name, whether online, whether the hand is up; ourselves first."""
        me = self.peer.peer_id
        yield me, self.peer.name, True, self.history.hand(me, self.peer.instance)
        for member in self.members.all.values():
            if member.name and (member.was_listed or member.left_at):
                is_up = member.is_there and self.history.hand(member.peer_id, member.instance)
                yield member.peer_id, member.name, member.is_there, is_up

    async def hand(self, is_up):
        json = writing.hand(self.peer.peer_id, self.peer.name, is_up)
        return await self.history.say([(messages.KINDS["raise_hand"], json)], hidden=True)

    async def say(self, kind_number, kind, own):
        """A message that is kept: its message ID, the number of its entry."""
        message_id = self.peer.new_message_id()
        json = writing.kept(self.peer.peer_id, self.peer.name, message_id, self.peer.timestamp(), kind, own)
        return message_id, await self.history.say([(kind_number, json)], hidden=kind in messages.DEEDS)

    def attributes(self):
        runs = {member.peer_id: member.instance for member in self.members.there()}
        return attributes.standing(self.history.logs.in_order(), {**runs, self.peer.peer_id: self.peer.instance})

    async def set_attribute(self, key, value, overwrite=True, until_leave=False):
        """None takes it away."""
        own = {
            "key": key, **({} if value is None else {"value": value}), **({"until_leave": True} if until_leave else {}),
            **({} if overwrite else {"overwrite": False})}
        json = writing.kept(
            self.peer.peer_id, self.peer.name, self.peer.new_message_id(), self.peer.timestamp(), "attribute", own)
        return await self.history.say([(messages.KINDS["attribute"], json)], hidden=True)

    def typing(self, is_typing):
        """Whoever calls it does so at most once in 3 s."""
        live = writing.live(
            self.peer.peer_id, self.peer.instance, self.peer.next_counter(),
            writing.typing(self.peer.peer_id, self.peer.name, is_typing))
        signed = writing.signed(self.peer.identity, "live", self.channel_id, self.peer.instance, live)
        self.send([writing.frame(writing.LIVE_FRAME, signed)])
        for member in self.members.there():
            self.in_session(member, writing.session_live(self.channel_id, signed))

    async def everybody_has(self, number, within):
        """How many of those present acknowledged our entry, and how many there are."""
        deadline = asyncio.get_running_loop().time() + within
        while True:
            there = self.members.there()
            having = [member for member in there if member.acknowledged >= number]
            left = deadline - asyncio.get_running_loop().time()
            if (there and len(having) == len(there)) or left <= 0:
                return len(having), len(there)
            self.history.news.clear()
            await pause(left, until=self.history.news)

