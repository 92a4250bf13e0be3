"""Entries of a channel: said, stored, acknowledged, repaired and reconciled (Behaviour.md)."""
import asyncio
import random
import statistics
import time

from parley_wire import messages, objects, sessions, writing
from parley_wire.reading import Refused

from .logs import Logs
from .pausing import now, pause

CLOCK_AHEAD_MAX = 1_048_576
CLOCK_MEDIAN_MAX = (1 << 61) - 1
ACKNOWLEDGE_SECONDS = 0.01
ANNOUNCE_SECONDS, ANNOUNCE_SECONDS_MAX = 0.25, 8
HOLE_SECONDS = 3
WAITING_BYTES_MAX = 2 << 20
REPAIR_SECONDS = (0.02, 0.08)
RANGES_PER_LOG_MAX = 8
ANSWER_SECONDS = 2
AGAIN_SECONDS, AGAIN_SECONDS_MAX = 0.25, 60
ANSWER_BYTES_MAX = 786_432
# Of one part, so that it fits in a frame: the entries with their lengths.
PART_BYTES_MAX = sessions.SEALED_BYTES_MAX - sessions.SEALED_BYTES_MIN - 42
COMPARE_SECONDS_NEWCOMER, COMPARE_SECONDS, COMPARE_SECONDS_ARRIVING, COMPARE_SECONDS_MAX = 0.03, 2, 4, 30
COMPARE_AFTER_LOSS, COMPARED_AFTER_LOSS = (0.03, 0.3), 3
ANSWERED_SECONDS = 1
SUMMARY_LOGS = 64
ACKNOWLEDGING_MEMBERS, ACKNOWLEDGING_BELOW = 64, 32


class History:
    def __init__(self, room):
        self.room, self.peer = room, room.peer
        self.logs = Logs(room.peer.store, room.channel_id)
        self.told, self.floors = {}, {}
        self.lacking, self.differing, self.announcing = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self.news = asyncio.Event()
        self.answers, self.request = {}, 0
        self.last_arrival, self.waiting_bytes, self.malformed = 0.0, 0, 0
        self.compared, self.answered, self.acknowledging, self.asked_before = {}, {}, set(), (b"", 0)
        self.is_reconciled, self.batch = False, None
        own = [value["lamport"] for value in self.logs.values if value["author"] == self.peer.peer_id]
        self.clock = max(own, default=0)
        for lamport in sorted(value["lamport"] for value in self.logs.values):
            self._move_clock(lamport)

    def start(self):
        for job in (self._repair(), self._compare(), self._announce()):
            self.room.tasks.start(job)

    # Ours

    @property
    def own_key(self):
        return self.peer.peer_id, self.peer.instance

    def own_head(self):
        found = self.logs.all.get(self.own_key)
        return found.head if found else 0

    def digest(self):
        return self.logs.digest()

    def hand(self, peer_id, instance):
        return self.logs.hands.get((peer_id, instance), (0, False))[1]

    async def say(self, found, hidden):
        """The entry's number, when it is on disk."""
        if not self.is_reconciled:
            clocks = [member.lamport for member in self.room.members.there()]
            if clocks:
                self.clock = max(self.clock, min(CLOCK_MEDIAN_MAX, int(statistics.median_low(clocks))))
        self.clock += 1
        number = self.own_head() + 1
        timestamp = max(int(time.time() * 1000), self.peer.last_timestamp)
        self.peer.last_timestamp = timestamp
        encoded = writing.entry(
            self.peer.identity, self.room.channel_id, self.peer.instance, number, self.clock, timestamp, hidden, found)
        self.room.multicast_entry(encoded)
        self._keep([(*self.own_key, number, encoded)])
        self.announcing.set()
        return number

    def acknowledged(self, member, number):
        member.acknowledged = max(member.acknowledged, number)
        self.news.set()

    async def _announce(self):
        """Says what our head is while somebody present has not acknowledged it."""
        while True:
            self.announcing.clear()
            wait = ANNOUNCE_SECONDS
            while self._unacknowledged():
                if await pause(wait, until=self.announcing):
                    self.announcing.clear()
                    wait = ANNOUNCE_SECONDS
                    continue
                if self._unacknowledged():
                    self.room.send([self.room.presence(is_full=False, wants_acknowledgement=True)])
                wait = min(ANNOUNCE_SECONDS_MAX, 2 * wait)
            await self.announcing.wait()

    def _unacknowledged(self):
        head = self.own_head()
        return any(
            member.acknowledged < head and self._is_acknowledged_by(member.peer_id, self.peer.peer_id)
            for member in self.room.members.there())

    def _is_acknowledged_by(self, reader, author):
        others = len(self.room.members.there())
        if others < ACKNOWLEDGING_MEMBERS:
            return True
        distance = int.from_bytes(reader[-8:], "big") ^ int.from_bytes(author[-8:], "big")
        return distance % (1 << others.bit_length() - 1) < ACKNOWLEDGING_BELOW

    # Others'

    def entry_heard(self, data):
        """Whether it was new and genuine."""
        try:
            value = objects.entry(data)
        except Refused:
            self.malformed += 1
            raise
        author, log, number = bytes.fromhex(value["author"]), int(value["log"], 16), value["number"]
        if self.logs.has(author, log, number):
            self._acknowledge(author, log)
            return False
        known = self.logs.of(author, log)
        if number in known.waiting or not objects.is_genuine_entry(data, self.room.channel_id):
            return False
        self._move_clock(value["lamport"])
        self.last_arrival = now()
        if number == known.head + 1:
            self._keep_with_waiting(author, log, (author, log, number, data))
        elif self.waiting_bytes + len(data) <= WAITING_BYTES_MAX:
            known.waiting[number] = data
            self.waiting_bytes += len(data)
            self.learn(author, log, number, author)
            asyncio.get_running_loop().call_later(HOLE_SECONDS, self._let_through, author, log, number)
        else:
            self.learn(author, log, number, author)
            return False
        return True

    def _keep_with_waiting(self, author, log, *rows):
        """Keeps these, and what waited for them."""
        known, rows = self.logs.of(author, log), list(rows)
        at = max(known.head, max((row[2] for row in rows), default=0)) + 1
        while at in known.waiting:
            data = known.waiting.pop(at)
            self.waiting_bytes -= len(data)
            rows.append((author, log, at, data))
            at += 1
        if rows:
            self._keep(rows)

    def _let_through(self, author, log, number):
        """A hole that nobody fills does not hold back what is behind it."""
        data = self.logs.of(author, log).waiting.pop(number, None)
        if data is not None and not self.peer.is_closed:
            self.waiting_bytes -= len(data)
            self._keep([(author, log, number, data)])

    def _keep(self, rows):
        kept = self.logs.keep(rows)
        if self.batch is not None:
            self.batch += kept
        else:
            self._kept(kept)

    def _kept(self, values):
        """They are on disk."""
        for value in values:
            self._tell(value)
            self._acknowledge(value["author"], value["log"])
        self.news.set()

    def _tell(self, value):
        if value["hidden"]:
            if value["log"] in [m.instance for m in self.room.members.there()] + [self.peer.instance]:
                self.peer.tell({
                    "event": "hand", "channel": self.room.name, "peer_id": value["author"],
                    "raised": self.hand(value["author"], value["log"])})
            return
        for found in self.shown(value):
            self.peer.tell({"event": "message", "channel": self.room.name, **found})

    def shown(self, value):
        """The messages of an entry that people see."""
        for place, item in enumerate(value["messages"]):
            if not item["body"]:
                continue
            try:
                found = messages.message(item["body"].encode("utf-8", "surrogateescape"), value["author"])
            except Refused:
                self.malformed += 1
                continue
            if found["message_id"] is not None:
                yield {**found, "log": value["log"], "number": value["number"], "place": place,
                       "lamport": value["lamport"], "author": value["author"]}

    def messages(self):
        """Everything kept, in the channel's order."""
        return [found for value in self.logs.in_order() if not value["hidden"] for found in self.shown(value)]

    def written(self, message_ids):
        """These messages as their senders wrote them; None for each that is not here."""
        found = {}
        for value in self.logs.in_order():
            for shown in () if value["hidden"] else self.shown(value):
                body = value["messages"][shown["place"]]["body"]
                found[shown["message_id"]] = body.encode("utf-8", "surrogateescape")
        return [found.get(message_id) for message_id in message_ids]

    def _move_clock(self, lamport):
        if self.clock < lamport <= self.clock + CLOCK_AHEAD_MAX:
            self.clock = lamport

    def _acknowledge(self, author, log):
        member = self.room.members.all.get(author)
        if member is None or not member.is_there or member.instance != log or author in self.acknowledging:
            return
        if not self._is_acknowledged_by(self.peer.peer_id, author):
            return
        self.acknowledging.add(author)

        def acknowledge():
            self.acknowledging.discard(author)
            known = self.logs.all.get((author, log))
            if known and known.head and member.is_there and not self.peer.is_closed:
                self.room.direct(member, [writing.acknowledge(log, known.head)])

        asyncio.get_running_loop().call_later(ACKNOWLEDGE_SECONDS / 2, acknowledge)

    # What others hold

    def learn(self, author, log, number, holder):
        if author == self.peer.peer_id and log == self.peer.instance:
            return
        told = self.told.setdefault((author, log), {})
        told[holder] = max(number, told.get(holder, 0))
        if self.logs.of(author, log).missing(number):
            self.lacking.set()

    def presence_heard(self, member, wants_acknowledgement):
        if not member.is_there:
            return
        if member.head:
            self.learn(member.peer_id, member.instance, member.head, member.peer_id)
        if wants_acknowledgement:
            self._acknowledge(member.peer_id, member.instance)
        if member.digest == self.digest():
            self.is_reconciled = True
            member.acknowledged = max(member.acknowledged, self.own_head())
            self.news.set()
        else:
            self.differing.set()

    def appeared(self, member):
        self.announcing.set()
        self.lacking.set()
        if member.head:
            self.learn(member.peer_id, member.instance, member.head, member.peer_id)
        if member.digest != self.digest():
            self.differing.set()

    def went(self, member):
        """The end of its log may be with some of us only."""
        async def compare():
            await pause(random.uniform(*COMPARE_AFTER_LOSS))
            others = self.room.members.there()
            for other in random.sample(others, min(COMPARED_AFTER_LOSS, len(others))):
                await self._compare_with(other)

        if self.logs.all:
            self.room.tasks.start(compare())
        self.news.set()

    def missing(self):
        """What somebody present has told of and is not here: ranges by log."""
        there = {member.peer_id for member in self.room.members.there()}
        found = {}
        for key, known in self.logs.all.items():
            told = self.told.get(key, {})
            ranges = known.missing(max((number for holder, number in told.items() if holder in there), default=0))
            if ranges:
                found[key] = ranges[:RANGES_PER_LOG_MAX]
        return found

    async def _repair(self):
        asked, again = set(), AGAIN_SECONDS
        while True:
            self.lacking.clear()
            missing = self.missing()
            if not missing:
                asked, again = set(), AGAIN_SECONDS
                await self.lacking.wait()
                await pause(random.uniform(*REPAIR_SECONDS))
                continue
            holder = self._holder(missing, asked)
            if holder is None:
                self._take_floors(missing)
                self._forget(missing)
                await pause(again, until=self.lacking)
                asked, again = set(), min(AGAIN_SECONDS_MAX, 2 * again)
            elif await self._ask(holder, missing):
                asked, again = set(), AGAIN_SECONDS
            else:
                asked.add(holder.peer_id)

    def _holder(self, missing, asked):
        there = [member for member in self.room.members.there() if member.peer_id not in asked]
        random.shuffle(there)
        tellers = {holder for key in missing for holder in self.told.get(key, ())}
        authors = {author for author, _ in missing}
        there.sort(key=lambda member: (member.peer_id not in tellers, member.peer_id not in authors))
        return there[0] if there else None

    async def _ask(self, member, missing):
        """Whether anything new and genuine came."""
        session = await self.peer.sessions.chat(self.room, member)
        if session is None:
            return False
        keys = sorted(missing)
        start = next((at for at, key in enumerate(keys) if key > self.asked_before), 0)
        ranges = []
        for key in keys[start:] + keys[:start]:
            if len(ranges) < sessions.RANGES_MAX:
                ranges += [(*key, first, last) for first, last in missing[key]]
                self.asked_before = key
        self.request += 1
        request, parts = self.request, asyncio.Queue()
        self.answers[request] = session, parts
        try:
            session.put(writing.want(self.room.channel_id, request, ranges[: sessions.RANGES_MAX]))
            news = False
            while True:
                new, is_last = await asyncio.wait_for(parts.get(), ANSWER_SECONDS)
                news = news or new
                if is_last:
                    return news
        except (asyncio.TimeoutError, OSError):
            return news
        finally:
            del self.answers[request]

    def _forget(self, missing):
        """What is named of an absent author's log beyond what was ever seen, until it is named again."""
        there = {member.peer_id for member in self.room.members.there()}
        for author, log in missing:
            if there and author not in there:
                self.told.pop((author, log), None)

    def _take_floors(self, missing):
        """Everybody present was asked in vain: what is below the lowest floor has gone everywhere."""
        there = {member.peer_id for member in self.room.members.there()}
        for key in missing:
            known = self.logs.of(*key)
            floors = [
                floor for holder, floor in self.floors.get(key, {}).items() if holder in there and floor > known.head]
            above = [number for number in (*known.above, *known.waiting) if number > known.head]
            if floors and above:
                self.logs.take_floor(*key, min(min(floors), min(above) - 1))
                self._keep_with_waiting(*key)

    # Comparing

    async def _compare(self):
        again = COMPARE_SECONDS
        while True:
            await self.differing.wait()
            self.differing.clear()
            if not self.is_reconciled:
                await pause(COMPARE_SECONDS_NEWCOMER)
            else:
                begun = now()
                while now() - self.last_arrival < COMPARE_SECONDS and now() - begun < COMPARE_SECONDS_ARRIVING:
                    await pause(COMPARE_SECONDS - (now() - self.last_arrival))
            others = [member for member in self.room.members.there() if self._is_worth_comparing(member)]
            if not others:
                again = COMPARE_SECONDS
                continue
            random.shuffle(others)
            others.sort(key=lambda member: member.peer_id in self.compared)
            await self._compare_with(others[0])
            await pause(again)
            again = min(COMPARE_SECONDS_MAX, 2 * again)
            self.differing.set()

    def _is_worth_comparing(self, member):
        return member.digest not in (None, self.digest()) \
            and self.compared.get(member.peer_id) != (member.digest, self.digest())

    async def _compare_with(self, member):
        session = await self.peer.sessions.chat(self.room, member)
        if session is None:
            return
        if len(self.logs.all) <= SUMMARY_LOGS:
            self._send_heads(session, range(256), send_yours=True, all_buckets=True)
        else:
            session.put(writing.summary(self.room.channel_id, self.logs.buckets()))

    def _send_heads(self, session, buckets, send_yours, all_buckets=False):
        found = self.logs.heads(set(buckets), self.own_key)
        parts = [found[at : at + sessions.HEADS_MAX] for at in range(0, len(found), sessions.HEADS_MAX)] or [[]]
        for number, part in enumerate(parts):
            session.put(writing.heads(
                self.room.channel_id, part, number == len(parts) - 1, send_yours,
                None if all_buckets else buckets))

    async def asked(self, session, value):
        kind = value["type"]
        if kind == "heads":
            self._heads(session, value)
        elif kind == "summary":
            theirs = {item["bucket"]: bytes.fromhex(item["digest"]) for item in value["buckets"]}
            ours = self.logs.buckets()
            differing = [bucket for bucket in range(256) if theirs.get(bucket) != ours.get(bucket)]
            if self._may_answer(session):
                self._send_heads(session, differing, send_yours=True)
        elif kind == "want":
            await self._answer(session, value)
        elif kind == "entries":
            await self._entries(session, value)

    def _may_answer(self, session):
        if now() - self.answered.get(session.peer_id, -ANSWERED_SECONDS) < ANSWERED_SECONDS:
            return False
        self.answered[session.peer_id] = now()
        return True

    def _heads(self, session, value):
        for head in value["heads"]:
            author, log = bytes.fromhex(head["author"]), int(head["log"], 16)
            self.learn(author, log, head["number"], session.peer_id)
            if head["floor"]:
                self.floors.setdefault((author, log), {})[session.peer_id] = head["floor"]
        if not value["last"]:
            return
        if value["answer_wanted"] and self._may_answer(session):
            buckets = int.from_bytes(bytes.fromhex(value["buckets"]), "little")
            which = [bucket for bucket in range(256) if buckets >> bucket & 1]
            self._send_heads(session, which, send_yours=False, all_buckets=len(which) == 256)
        member = self.room.members.all.get(session.peer_id)
        if member is not None and not self.missing():
            self.is_reconciled = True
            self.compared[session.peer_id] = member.digest, self.digest()

    async def _answer(self, session, value):
        """Entries for *want*, in the order of its ranges."""
        found, size = [], 0
        for item in value["ranges"]:
            known = self.logs.all.get((bytes.fromhex(item["author"]), int(item["log"], 16)))
            for number in sorted(known.held) if known else ():
                if item["from"] <= number <= item["through"] and size + len(known.held[number]) <= ANSWER_BYTES_MAX:
                    found.append(known.held[number])
                    size += len(known.held[number])
        part, part_size = [], 0
        for data in found:
            if part_size + len(data) + 4 > PART_BYTES_MAX:
                await session.send(writing.entries(self.room.channel_id, value["request"], False, part))
                part, part_size = [], 0
            part.append(data)
            part_size += len(data) + 4
        await session.send(writing.entries(self.room.channel_id, value["request"], True, part))

    async def _entries(self, session, value):
        new, self.batch = False, []
        with self.peer.store.one_commit():
            for data in value["entries"]:
                try:
                    new = self.entry_heard(bytes.fromhex(data)) or new
                except Refused:
                    continue
        kept, self.batch = self.batch, None
        self._kept(kept)
        expecting, parts = self.answers.get(value["request"], (None, None))
        if expecting is session:
            parts.put_nowait((new, value["last"]))
