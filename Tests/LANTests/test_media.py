"""Files that change hands: from whoever has them when the first source is gone, and through deaths of either side."""
import filecmp
import json
import os
import random
import statistics
import subprocess
import threading
import time

from harness import LONG, MIB, PARLEY, Failure, Lan, at_once, eventually, expect

PASSPHRASE = "seven wet dogs"


def company(lan, names):
    nodes = [lan.node(name) for name in names]
    at_once(*(lambda node=node: node.join("garden", PASSPHRASE) for node in nodes))
    for node in nodes:
        eventually(lambda: node.online("garden") == set(names), 20, f"{node.name} sees everybody")
    return nodes


def limit(lan, host, megabits):
    """What the host sends; so that a transfer takes a while however fast this machine is."""
    lan.on(host, "tc", "qdisc", "replace", "dev", "eth0", "root", "tbf", "rate", f"{megabits}mbit", "burst", "128kb",
           "latency", "20ms")


def make_file(path, byte_count):
    path.write_bytes(os.urandom(byte_count))
    return path


def expect_same(path, source, what):
    expect(filecmp.cmp(path, source, shallow=False), f"{what} has the bytes that were shared")


def test_the_first_downloader_takes_the_place_of_the_source():
    count, size = 10, (32 if LONG else 16) * MIB
    with Lan(count + 2) as lan:
        names = ["Ana", "Ben", *(f"Guest {number}" for number in range(1, count + 1))]
        ana, ben, *guests = company(lan, names)
        source = make_file(lan.folder / "film.bin", size)
        media = ana.share("garden", source)[0]
        for node in (ben, *guests):
            eventually(lambda: media in {row.get("media_id") for row in node.cli("media", "garden")}, 10,
                       f"{node.name} has heard of the file")
        ben.download(media, lan.folder / "bens.bin")
        ana.stop()
        limit(lan, ben.host, 100)
        before = lan.traffic(ben.host)[0]
        paths = at_once(*(lambda guest=guest: guest.download(media, lan.folder / f"copy{guest.host}.bin", timeout=120)
                          for guest in guests))
        copies = (lan.traffic(ben.host)[0] - before) / size
        for guest, path in zip(guests, paths):
            expect_same(path, source, f"{guest.name}'s copy")
        # From Ben alone it would be ten, and headers.
        expect(copies < 0.5 * count, f"Ben sends {copies:.1f} copies for {count} guests: they give to each other, too")
        return f"{size // MIB} MiB to {count}, of which Ben sent {copies:.2f} copies"


class Fetch:
    """A `parley download` that runs: how far it is, and when that was said."""

    def __init__(self, node, media, path):
        self.progress, self.changed = [], threading.Condition()
        self.process = subprocess.Popen(
            [PARLEY, "download", media, "-o", str(path), "--home", str(node.home), "--json"],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)
        self.is_over = False
        self.thread = threading.Thread(target=self._read, daemon=True)
        self.thread.start()

    def _read(self):
        for line in self.process.stdout:
            event = json.loads(line)
            if event["event"] == "progress":
                with self.changed:
                    self.progress.append((time.monotonic(), event["received"]))
                    self.changed.notify_all()
        self.error = self.process.stderr.read().decode(errors="backslashreplace")
        self.process.wait()
        self.process.stdout.close()
        self.process.stderr.close()
        with self.changed:
            self.is_over = True
            self.changed.notify_all()

    def await_more_than(self, byte_count, within):
        """When more than that was there; None when it ended before."""
        with self.changed:
            self.changed.wait_for(
                lambda: self.is_over or any(done > byte_count for _, done in self.progress), within)
            return next((at for at, done in self.progress if done > byte_count), None)

    def end(self, within):
        """Whether it has the file."""
        self.thread.join(within)
        expect(self.is_over, f"the download ends within {within} s")
        return self.process.returncode == 0

    @property
    def received(self):
        with self.changed:
            return max((done for _, done in self.progress), default=0)


class Transfers:
    """Files from one node to another, each with one death of either side on its way."""

    def __init__(self, lan, ana, ben, seed):
        self.lan, self.ana, self.ben = lan, ana, ben
        self.chance = random.Random(seed)
        self.size = 12 * MIB
        self.resumed, self.again = [], []

    def play(self, number):
        source = make_file(self.lan.folder / f"file{number}", self.size)
        target = self.lan.folder / f"copy{number}"
        media = self.ana.share("garden", source)[0]
        eventually(lambda: media in {row.get("media_id") for row in self.ben.cli("media", "garden")}, 10,
                   "Ben has heard of the file")
        fetch = Fetch(self.ben, media, target)
        # Now and then before anything has come, now and then when it is over.
        if self.chance.random() < 0.8:
            fetch.await_more_than(self.chance.uniform(0, 0.9) * self.size, 30)
        threading.Event().wait(self.chance.uniform(0, 0.03))
        victim = self.chance.choice((self.ana, self.ben))
        victim.kill9()
        received = fetch.received
        victim.start(within=30)
        eventually(lambda: self.ben.online("garden") == {"Ana", "Ben"} == self.ana.online("garden"), 20,
                   "both see each other again")
        self.finish(fetch, media, target, received, victim is self.ben)
        expect_same(target, source, f"Ben's copy, after the death of {victim.name}")
        source.unlink()
        target.unlink()

    def finish(self, fetch, media, target, received, was_ben):
        """Fetches the rest, and looks where that begins."""
        ready = time.monotonic()
        for _ in range(20):
            if fetch.end(60) if not was_ben else fetch.end(10):
                return
            was_ben = False
            fetch = Fetch(self.ben, media, target)
            if not received:
                continue
            moved = fetch.await_more_than(received - 1, 30)
            first = next((done for _, done in fetch.progress if done > 0), None)
            if moved is None or first is None:
                continue
            # One piece may have been on its way to the disk.
            expect(first >= received - MIB, f"of {received} bytes that were verified {received - first} come again")
            self.again.append(max(0, received - first))
            self.resumed.append(moved - ready)
        raise Failure(f"the file does not come: {fetch.error}")


def test_rounds_of_kill_9_during_transfers():
    rounds = int(os.environ.get("PARLEY_ROUNDS") or (200 if LONG else 6))
    seed = int(os.environ.get("PARLEY_SEED") or random.SystemRandom().randrange(1 << 32))
    with Lan(2) as lan:
        ana, ben = company(lan, ("Ana", "Ben"))
        limit(lan, ana.host, 200)
        transfers = Transfers(lan, ana, ben, seed)
        for number in range(rounds):
            try:
                transfers.play(number)
            except Failure as failure:
                raise Failure(f"seed {seed}, round {number + 1}: {failure}") from failure
        text = f"seed {seed}: {rounds} rounds, every file right"
        if transfers.resumed:
            text += (f"; {len(transfers.resumed)} went on, after {statistics.median(transfers.resumed):.2f} s "
                     f"(at most {max(transfers.resumed):.2f}), {max(transfers.again)} verified bytes again at most")
        return text
