"""Who is in a channel (Behaviour.md, Members): claimed, present, suspect, gone."""
import random
import secrets

from parley_wire import delivered, messages, objects, writing
from parley_wire.reading import Refused

from .pausing import now, pause

CLAIMED, PRESENT, SUSPECT, GONE = "claimed", "present", "suspect", "gone"
JOINING_MILLISECONDS = (0, 60, 120, 270, 570)
BEACON_SECONDS_FIRST, BEACON_SECONDS, BEACON_GROWTH, BEACON_SECONDS_MAX = 0.6, 2, 1.5, 30
SECONDS_PER_MEMBER = 0.5
CLAIM_PROBES = (0.15, 0.3, 0.4)
SUSPECT_PROBES = (0, 0.15, 0.3, 0.2)
SILENCE_PROBES = (0.2, 0.5, 0.5, 1)
DIAL_AFTER, DIAL_AFTER_SILENCE = 0.2, 1
CALL_SECONDS, CALL_PART = 3, 200
SILENCE_SECONDS, INTERVAL_SECONDS_MAX = 3, 600
HEARD_SECONDS = 0.2
PRESENT_SECONDS = 0.5
INCARNATION_AHEAD_MAX = 1 << 20
ANSWERS_PER_SECOND, ANSWERS_AT_ONCE = 10, 20
RUMOURS_PER_SECOND, RUMOURS_AT_ONCE = 8, 32
CLAIMANTS_MAX = 8
CROWD = 8
OTHER_RUNS_KEPT = 4
WINDOW = 64


class Window:
    """The counters of one instance in one channel that were seen: the highest and the 64 last."""

    def __init__(self):
        self.highest, self.seen = 0, 0

    def is_fresh(self, counter):
        if counter > self.highest:
            return True
        behind = self.highest - counter
        return behind < WINDOW and not self.seen >> behind & 1

    def take(self, counter):
        if not self.is_fresh(counter):
            return False
        if counter > self.highest:
            self.seen = (self.seen << min(WINDOW, counter - self.highest)) & ((1 << WINDOW) - 1)
            self.highest = counter
        self.seen |= 1 << self.highest - counter
        return True


class Allowance:
    """So many a second, and so many at once after a pause."""

    def __init__(self, per_second, at_once):
        self.per_second, self.at_once, self.left, self.asked_at = per_second, at_once, at_once, now()

    def take(self, at=None):
        """Whether there is one left now, or at a given time."""
        at = now() if at is None else at
        self.left = min(self.at_once, self.left + (at - self.asked_at) * self.per_second)
        self.asked_at = at
        if self.left < 1:
            return False
        self.left -= 1
        return True


class Member:
    def __init__(self, peer_id):
        self.peer_id, self.state, self.name = peer_id, CLAIMED, None
        self.instance = self.incarnation = None
        self.presence_counter = self.goodbye_counter = 0
        self.tcp_port, self.interval, self.lamport, self.head = 0, 0, 0, 0
        self.digest, self.status_hash = None, None
        # (link, address): where presences come from, and where an opened direct message last came from.
        self.heard_from = self.confirmed = None
        self.last_heard, self.left_at, self.said_goodbye = 0.0, 0.0, False
        self.probes, self.probing, self.was_listed = [], None, False
        self.acknowledged, self.told_older = 0, 0.0
        self.answers = Allowance(ANSWERS_PER_SECOND, ANSWERS_AT_ONCE)

    @property
    def is_there(self):
        return self.state in (PRESENT, SUSPECT)

    @property
    def place(self):
        return self.confirmed or self.heard_from


class Members:
    """The members of one room but for ourselves."""

    def __init__(self, room):
        self.room, self.peer = room, room.peer
        self.all, self.windows = {}, {}
        self.nonce, self.said_present = secrets.randbits(64), 0.0
        self.rumours = Allowance(RUMOURS_PER_SECOND, RUMOURS_AT_ONCE)

    def there(self):
        return [member for member in self.all.values() if member.is_there]

    def of_instance(self, instance):
        """Who says to run it: each signs what it likes, so there may be several."""
        return [member for member in self.all.values() if member.instance == instance][:CLAIMANTS_MAX]

    def window(self, peer_id, instance, kind):
        """Presence and live share one, direct messages have another."""
        runs = self.windows.setdefault(peer_id, {})
        if instance not in runs:
            member = self.all.get(peer_id)
            others = [run for run in runs if member is None or run != member.instance]
            for run in others[: max(0, len(others) - OTHER_RUNS_KEPT + 1)]:
                del runs[run]
            runs[instance] = {"signed": Window(), "direct": Window()}
        return runs[instance][kind]

    def is_fresh(self, peer_id, instance, kind, counter):
        """Without making a window: what is not verified yet must not push others out."""
        runs = self.windows.get(peer_id, {})
        return counter > 0 and (instance not in runs or runs[instance][kind].is_fresh(counter))

    # What comes in

    def presence(self, signed, came_from, session=None):
        """`came_from`: link and address of the datagram; `session`: the one it came in instead."""
        value = objects.presence(signed[objects.SIGNATURE_BYTES :])
        author, instance, counter = bytes.fromhex(value["author"]), int(value["instance"], 16), value["counter"]
        if session is None and not self.is_fresh(author, instance, "signed", counter):
            return None
        if not objects.is_genuine("presence", signed[:64], signed[64:], self.room.channel_id):
            return None
        if author == self.peer.peer_id:
            if instance != self.peer.instance and came_from:
                self.peer.tasks.start(self.peer.meet_copy(instance, value["incarnation"], value["tcp_port"], came_from))
            return None
        if session is not None and (author, instance) != (session.peer_id, session.instance):
            return None
        if not self.window(author, instance, "signed").take(counter):
            return None
        member = self._running(author, instance, value, came_from)
        if member is None or counter <= max(member.presence_counter, member.goodbye_counter):
            return None
        self._take(member, value, came_from)
        if session is not None:
            self.is_here(member)
        elif not member.is_there:
            self._greet(member, value, came_from)
        elif member.confirmed and came_from[1] != member.confirmed[1]:
            self.room.direct(member, [self._probe(member)], place=came_from)
        self.room.history.presence_heard(member, value["wants_acknowledgement"])
        return member

    def _running(self, author, instance, value, came_from):
        """The member, in this run; None for a run that is over."""
        member = self.all.get(author)
        if member is None:
            member = self.all[author] = Member(author)
        elif member.incarnation is not None and value["incarnation"] < member.incarnation:
            if member.instance != instance and came_from and now() - member.told_older >= 1:
                # An older copy of its profile: it hears that it must be later than what we know.
                member.told_older = now()
                self.room.answer([writing.suspect(author, member.incarnation)], came_from)
            return None
        if member.instance != instance:
            if member.instance is not None:
                self._over(member)
            member.instance, member.presence_counter, member.goodbye_counter = instance, 0, 0
            member.acknowledged, member.confirmed, member.status_hash = 0, None, None
            if self.peer.sessions.standing(author, instance, self.room):
                self.is_here(member)
        member.incarnation = value["incarnation"]
        return member

    def _take(self, member, value, came_from):
        member.presence_counter = value["counter"]
        member.tcp_port, member.lamport, member.head = value["tcp_port"], value["lamport"], value["head"]
        member.interval = min(INTERVAL_SECONDS_MAX, value["interval"] / 1000)
        member.digest = bytes.fromhex(value["digest"])
        member.heard_from = came_from or member.heard_from
        member.last_heard = now()
        status = value["status"].encode("utf-8", "surrogateescape")
        if status:
            self._status(member, status)
            member.status_hash = value["status_hash"]
        if member.state == SUSPECT:
            self.is_here(member)
        if member.status_hash != value["status_hash"] and member.is_there and member.answers.take():
            self.room.direct(member, [self._probe(member)], with_presence=True)

    def _status(self, member, json):
        try:
            value = messages.message(json, member.peer_id)
        except Refused:
            return
        if value["type"] == "status" and value["online"]:
            member.name = value["display_name"]
            if member.is_there and not member.was_listed:
                self._listed(member)

    def _greet(self, member, value, came_from):
        """Who only claims to be here is answered and asked, where the claim came from."""
        member.state = CLAIMED
        wait = 0
        if len(self.there()) >= CROWD:
            wait = random.uniform(0, min(0.4, 0.004 * len(self.all)))

        async def greet():
            await pause(wait)
            answer = [self._probe(member), writing.echo(int(value["nonce"], 16))]
            self.room.direct(member, answer, with_presence=True, place=came_from)
            for seconds in CLAIM_PROBES:
                await pause(seconds)
                if member.state != CLAIMED:
                    return
                self.room.direct(member, [self._probe(member)], place=came_from)
            await pause(CLAIM_PROBES[-1])
            if member.state == CLAIMED:
                member.state = GONE

        self._probing(member, greet())

    def _probe(self, member):
        nonce = secrets.randbits(64)
        member.probes = member.probes[-8:] + [nonce]
        return writing.probe(nonce)

    def _probing(self, member, job):
        if member.probing:
            member.probing.cancel()
        member.probing = self.room.tasks.start(job)

    def direct(self, member, parts, came_from):
        """Parts of an opened direct message, or of one in a session (`came_from` None)."""
        member.last_heard = now()
        if came_from:
            member.confirmed = came_from
        is_answered = False
        for part in parts:
            if part["type"] == "probe":
                if is_answered or not member.answers.take():
                    continue
                is_answered = True
                self.room.direct(member, [writing.echo(int(part["nonce"], 16))], with_presence=True)
            elif part["type"] == "echo":
                nonce = int(part["nonce"], 16)
                if nonce in member.probes or member.state == CLAIMED and nonce == self.nonce:
                    self.is_here(member)
            elif part["type"] == "acknowledge" and int(part["log"], 16) == self.peer.instance:
                self.room.history.acknowledged(member, part["number"])
            elif part["type"] == "holding":
                self.peer.media.holds(member, [bytes.fromhex(media) for media in part["media"]])

    def goodbye(self, signed, session=None):
        """A live object."""
        value = objects.live(signed[64:])
        author, instance, counter = bytes.fromhex(value["author"]), int(value["instance"], 16), value["counter"]
        if author == self.peer.peer_id or not self.is_fresh(author, instance, "signed", counter):
            return
        if not objects.is_genuine("live", signed[:64], signed[64:], self.room.channel_id):
            return
        if session is not None and (author, instance) != (session.peer_id, session.instance):
            return
        member = self.all.get(author)
        if not self.window(author, instance, "signed").take(counter) or member is None or member.instance != instance:
            return
        try:
            status = messages.message(value["json"].encode("utf-8", "surrogateescape"), author)
        except Refused:
            return
        if status["type"] == "typing" and member.is_there:
            self.peer.tell({
                "event": "typing", "channel": self.room.name, "peer_id": author, "typing": status["typing"]})
        if status["type"] != "status":
            # Who is only claimed may be a recording; what goes to some members comes in no live object.
            if member.is_there and delivered.is_live(status) and "receivers" not in status:
                self.peer.tell({"event": "live", "channel": self.room.name, "author": author, **status})
            return
        if status["online"]:
            member.name = status["display_name"]
        elif counter > member.presence_counter:
            member.goodbye_counter = counter
            self.is_gone(member, said_goodbye=True)

    def suspected(self, peer_id, incarnation):
        """Somebody says that this member has gone."""
        if peer_id == self.peer.peer_id:
            self._suspected_ourselves(incarnation)
            return
        member = self.all.get(peer_id)
        if member is None or member.state != PRESENT or member.incarnation != incarnation:
            return
        if now() - member.last_heard > HEARD_SECONDS and self.rumours.take():
            self.suspect(member, wait=random.uniform(0.1, 0.5) if len(self.there()) > CROWD else 0)

    def _suspected_ourselves(self, incarnation):
        """Says that we are here; and, to those who know a later run of this profile, that this one is later still."""
        if self.peer.incarnation < incarnation <= self.peer.incarnation + INCARNATION_AHEAD_MAX:
            self.peer.rise_above(incarnation)
        elif incarnation != self.peer.incarnation or now() - self.said_present < PRESENT_SECONDS:
            return
        self.said_present = now()
        self.room.send([self.room.presence(is_full=True)])

    # What follows

    def is_here(self, member):
        before, member.state, member.said_goodbye = member.state, PRESENT, False
        member.probes, member.last_heard = [], now()
        if member.probing:
            member.probing.cancel()
            member.probing = None
        if before not in (PRESENT, SUSPECT):
            if member.name:
                self._listed(member)
            self.room.sooner.set()
            self.room.history.appeared(member)
            self.peer.appeared(self.room, member)

    def _listed(self, member):
        member.was_listed = True
        self.peer.tell({
            "event": "online", "channel": self.room.name, "peer_id": member.peer_id, "display_name": member.name})

    def is_gone(self, member, said_goodbye):
        was_there, member.state = member.is_there, GONE
        member.said_goodbye, member.left_at = said_goodbye, now()
        if member.probing and said_goodbye:
            member.probing.cancel()
            member.probing = None
        if was_there:
            self._over(member)

    def _over(self, member):
        """Its run has ended, as far as we know."""
        if member.was_listed:
            self.peer.tell({
                "event": "offline", "channel": self.room.name, "peer_id": member.peer_id,
                "display_name": member.name})
        member.was_listed, member.state, member.confirmed = False, GONE, None
        self.room.history.went(member)
        self.peer.went(self.room, member)

    def suspect(self, member, of_silence=False, wait=0, tells_all=False):
        if member.state != PRESENT:
            return
        member.state, member.probes = SUSPECT, []

        async def question():
            await pause(wait)
            waits = SUSPECT_PROBES + (SILENCE_PROBES if of_silence else ())
            for number, seconds in enumerate(waits):
                await pause(seconds)
                if tells_all and number > 0:
                    self.room.send([writing.suspect(member.peer_id, member.incarnation)])
                self.room.direct(member, [self._probe(member)])
            await pause(DIAL_AFTER_SILENCE if of_silence else DIAL_AFTER)
            member.probing = None
            if await self.peer.sessions.anew(self.room, member):
                self.is_here(member)
            elif member.state == SUSPECT:
                self.is_gone(member, said_goodbye=False)

        self._probing(member, question())

    # What is said by itself

    async def beacons(self):
        """On joining, and again when the network has changed (`room.anew`)."""
        room, before = self.room, 0
        for at in JOINING_MILLISECONDS:
            await pause((at - before) / 1000)
            before = at
            room.send([room.presence(is_full=True)])
        await pause(BEACON_SECONDS_FIRST)
        interval = BEACON_SECONDS
        while True:
            interval = max(interval, SECONDS_PER_MEMBER * len(self.there()))
            room.interval = interval
            room.send([room.presence(is_full=False)])
            room.send_session_presences()
            room.sooner.clear()
            started = now()
            if await pause(interval * random.uniform(0.9, 1), until=room.sooner):
                interval = BEACON_SECONDS
                await pause(started + interval * random.uniform(0.9, 1) - now())
            else:
                interval = min(BEACON_SECONDS_MAX, interval * BEACON_GROWTH)

    async def watch(self):
        """Silence, and calling for those who went without a goodbye."""
        called = now()
        while True:
            await pause(0.25)
            for member in self.there():
                if now() - member.last_heard > 2 * member.interval + SILENCE_SECONDS:
                    self.suspect(member, of_silence=True)
            missing = [m for m in self.all.values() if m.state == GONE and m.left_at and not m.said_goodbye]
            least = min([m.peer_id for m in self.there()] + [self.peer.peer_id])
            if missing and least == self.peer.peer_id:
                longest_wait = min(now() - member.left_at for member in missing) / CALL_PART
                if now() - called >= max(CALL_SECONDS, longest_wait):
                    called = now()
                    self.room.send([self.room.presence(is_full=False)])

