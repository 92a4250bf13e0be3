"""Who does not read costs little and delays nobody: a peer that is stopped, and event streams that nobody reads."""
import itertools
import json
import os
import signal
import time

from harness import Lan, UnixConnection, at_once, eventually, expect
from test_since import Reader

COUNT = int(os.environ.get("PARLEY_STALLED_MESSAGES", "20000"))
WRITERS = 8
# 16 MB, of the specification, in MiB as the harness measures.
STALLED_MIB_MAX = 16_000_000 / (1 << 20)
# With a stalled peer and stalled streams the others' messages take at most so many times as long as before or after.
RATIO_MAX = 1.5
CALM_COUNT = COUNT // 4


class UnreadStream:
    """An event stream of the local API that is asked for and not read until `read`."""

    def __init__(self, node):
        self.connection = UnixConnection(node.api_socket(), timeout=60)
        self.connection.request("GET", "/v1/events?channel=garden")
        # The head, and what comes with it in one read.
        self.answer = self.connection.getresponse()

    def read(self, count):
        """The numbers of so many messages."""
        numbers = []
        while len(numbers) < count:
            line = self.answer.readline()
            expect(line, f"the stream goes on after {len(numbers)} messages")
            if line.startswith(b"data: ") and b'"timestamp"' in line:
                numbers.append(number_of(json.loads(line[6:])["body"]))
        self.connection.close()
        return numbers


def text(number):
    return f"{number} " + "x" * 1000


def number_of(body):
    return int(body.split(" ")[0])


def write(node, numbers):
    """Seconds that it took; by several callers at once, as entries fill under load."""
    started = time.monotonic()
    at_once(*(lambda part=part: node.send_many("garden", map(text, part))
              for part in (list(numbers)[index::WRITERS] for index in range(WRITERS))))
    return time.monotonic() - started


def test_a_stopped_peer_and_unread_streams_cost_little_and_delay_nobody():
    with Lan(3) as lan:
        ana, ben, cleo = (lan.node(name) for name in ("Ana", "Ben", "Cleo"))
        for node in (ana, ben, cleo):
            node.join("garden")
        eventually(lambda: ana.online("garden") == {"Ana", "Ben", "Cleo"} == ben.online("garden"), 10, "all are there")
        reader = Reader(ben)
        reader.start()

        numbers = itertools.count()

        def seconds(count):
            """Until Ben's reader has so many more."""
            wanted = len(reader.seen) + count
            started = time.monotonic()
            write(ana, list(itertools.islice(numbers, count)))
            eventually(lambda: len(reader.seen) >= wanted, 120, "Ben has them all", every=0.05)
            return time.monotonic() - started

        def calm_seconds():
            """Of as many as are said while others stall; and Cleo has them, too."""
            took = seconds(CALM_COUNT) * COUNT / CALM_COUNT
            eventually(lambda: len(later.seen) == len(reader.seen), 120, "Cleo has what Ben has")
            return took

        later = Reader(cleo)
        later.start()
        calm = calm_seconds()
        streams = [UnreadStream(ana), UnreadStream(ben)]
        first = len(reader.seen)
        cleo.signal(signal.SIGSTOP)
        before = [node.resident_mib() for node in (ana, ben)]
        for node in (ana, ben):
            node.reset_peak()
        stalled = seconds(COUNT)
        grown = [node.peak_mib() - was for node, was in zip((ana, ben), before)]
        # Each has two that stall: Cleo and a stream; both together stay below the limit of one.
        expect(max(grown) < STALLED_MIB_MAX, f"Ana grew by {grown[0]:.1f} MiB, Ben by {grown[1]:.1f}; "
               f"the limit is {STALLED_MIB_MAX:.1f}")
        cleo.signal(signal.SIGCONT)
        # Every message is there, once, when the streams are read at last.
        for stream in streams:
            expect(sorted(stream.read(COUNT)) == list(range(first, first + COUNT)),
                   "an unread stream misses and repeats nothing")
        eventually(lambda: len(later.seen) == len(reader.seen), 120, "Cleo has all that was said meanwhile")
        # Whatever else this machine does, and as the store grows: the slower of before and after counts.
        calm = max(calm, calm_seconds())
        expect(stalled < calm * RATIO_MAX, f"{stalled:.1f} s with those who stall, {calm:.1f} s without")
        for one in (reader, later):
            one.process.send_signal(signal.SIGINT)
            one.thread.join(10)
            one.check({text(number) for number in range(len(reader.seen))})
        return (f"{COUNT} messages of 1 KB in {stalled:.1f} s with those who stall, at a rate of {calm:.1f} s without "
                f"(ratio {stalled / calm:.2f}); Ana grew by {grown[0]:.1f} MiB, Ben by {grown[1]:.1f}")
