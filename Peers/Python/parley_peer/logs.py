"""What is held of each log of a channel, and what is said of that (Objects.md, Heads digest and Order)."""
from parley_wire import keys, messages, objects
from parley_wire.reading import Refused


class Log:
    """The entries of one run of one author. `head`: the highest number up to which nothing is missing."""

    def __init__(self, floor=0):
        self.held, self.waiting, self.above = {}, {}, set()
        self.floor = self.head = floor

    @property
    def highest(self):
        return max(self.above, default=self.head)

    def add(self, number, data):
        self.held[number] = data
        self.above.add(number)
        self._grow()

    def raise_floor(self, floor):
        self.floor = max(self.floor, floor)
        self._grow()

    def _grow(self):
        self.head = max(self.head, self.floor)
        while self.head + 1 in self.above:
            self.head += 1
        self.above = {number for number in self.above if number > self.head}

    def runs(self):
        """What is held above a gap, as pairs of first and last."""
        found = []
        for number in sorted(self.above):
            if found and found[-1][1] == number - 1:
                found[-1][1] = number
            else:
                found.append([number, number])
        return [tuple(run) for run in found]

    def missing(self, through=0):
        """Ranges up to a number that somebody has told of, or up to what is here."""
        through = max(self.above | self.waiting.keys() | {through})
        found, at = [], self.head + 1
        there = sorted({number for number in (*self.above, *self.waiting) if number <= through})
        for number in there + [through + 1]:
            if number > at:
                found.append((at, number - 1))
            at = number + 1
        return found


class Logs:
    """All logs of a channel, by author and instance."""

    def __init__(self, store, channel_id):
        self.store, self.channel_id = store, channel_id
        self.all = {key: Log(floor) for key, floor in store.floors(channel_id).items()}
        self.values, self.hands = [], {}
        self._digest = None
        for author, log, number, data in store.entries(channel_id):
            self._add(author, log, number, data)

    def of(self, author, log):
        return self.all.setdefault((author, log), Log())

    def has(self, author, log, number):
        found = self.all.get((author, log))
        return found is not None and (number <= found.head or number in found.above)

    def keep(self, rows):
        """On disk when this returns: author, log, number, bytes of each."""
        self.store.keep_entries(self.channel_id, rows)
        return [self._add(*row) for row in rows]

    def _add(self, author, log, number, data):
        self.of(author, log).add(number, data)
        value = objects.entry(data)
        value["author"], value["log"] = author, log
        self.values.append(value)
        self._digest = None
        if value["hidden"]:
            self._hand(value)
        return value

    def _hand(self, value):
        for item in value["messages"]:
            if item["kind"] != messages.KINDS["raise_hand"] or not item["body"]:
                continue
            try:
                found = messages.message(item["body"].encode("utf-8", "surrogateescape"), value["author"])
            except Refused:
                continue
            key = value["author"], value["log"]
            if found["type"] == "raise_hand" and value["number"] >= self.hands.get(key, (0, False))[0]:
                self.hands[key] = value["number"], found["raised"]

    def take_floor(self, author, log, floor):
        self.store.keep_floor(self.channel_id, author, log, floor)
        self.of(author, log).raise_floor(floor)
        self._digest = None

    def in_order(self):
        return sorted(
            self.values, key=lambda value: (value["lamport"], value["author"], value["log"], value["number"]))

    def _bucketed(self):
        return [
            (author, log, found.head, found.runs()) for (author, log), found in self.all.items() if found.held]

    def digest(self):
        if self._digest is None:
            self._digest = keys.heads_digest(self._bucketed())
        return self._digest

    def buckets(self):
        """The digest of each bucket that holds something."""
        buckets = {}
        for log in self._bucketed():
            buckets.setdefault(keys.bucket(log[1]), []).append(log)
        return {bucket: keys.bucket_digest(found) for bucket, found in buckets.items()}

    def heads(self, buckets, own):
        """Author, log, number, floor of what is held in these buckets; `own`: the log that is named in any case."""
        return [
            (author, log, found.highest, found.floor) for (author, log), found in sorted(self.all.items())
            if (found.held or (author, log) == own) and found.highest and keys.bucket(log) in buckets]
