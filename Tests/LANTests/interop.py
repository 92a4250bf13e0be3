#!/usr/bin/env python3
"""Swift's node and Python's peer in every role, as a matrix with pass counts; through 20 % datagram loss but where a
column says otherwise. The last line is "N passed, N failed, N skipped".
PARLEY: the command; PARLEY_PYTHON: a Python with what Peers/Python needs; `--write`: keeps the matrix in README.md."""
import collections
import concurrent.futures
import itertools
import os
import signal
import struct
import subprocess
import sys
import time
import traceback
import zlib

import harness
from harness import ROOT, Failure, Lan, Skip, at_once, eventually, expect
from peers import KINDS, PYTHON, PythonPeer, see_each_other

LOSS_PERCENT = 20
# Nothing waits for this long unless something is broken; a slow machine may need some of it.
WITHIN = 90
TOTAL_SECONDS_MAX = int(os.environ.get("PARLEY_TEST_SECONDS") or 900)
AT_ONCE = 4
# Three of each kind, and one more.
HOSTS = 7
MEGABYTE = 1_000_000
BEGIN, END = "<!-- interop: written by Tests/LANTests/interop.py --write -->", "<!-- interop ends -->"
PAIRS = list(itertools.product(KINDS, repeat=2))
TRIPLES = list(itertools.product(KINDS, repeat=3))
LONG_TEXT = "длинный текст " * 400
PASSPHRASE = "seven wet dogs"
# More than the 64 up to which heads are told whole.
MANY_LOGS = 150


class Company:
    """Three peers of each kind on one LAN; a cell takes those that it needs into a channel of its own."""

    def __init__(self, lan):
        self.lan = lan
        made = at_once(*(
            lambda kind=kind, host=host: KINDS[kind](lan, host, f"{kind} {1 + (host - 1) % 3}")
            for host, kind in enumerate([kind for kind in KINDS for _ in range(3)], start=1)))
        self.by_kind = {kind: [peer for peer in made if peer.kind == kind] for kind in KINDS}
        self.all = made
        self.archivist = self._archivist()

    def _archivist(self):
        """A peer in whose store many authors' logs lie before it starts."""
        home = self.lan.folder / f"python{HOSTS}"
        fill = subprocess.run(
            [PYTHON, str(ROOT / "Tests" / "LANTests" / "many_logs.py"), str(home), str(MANY_LOGS),
             *(f"many-{first[0]}-{second[0]}" for first, second in PAIRS)], capture_output=True, text=True)
        expect(fill.returncode == 0, f"the store is filled: {fill.stderr}")
        return PythonPeer(self.lan, HOSTS, "Archivist")

    def cast(self, kinds):
        """A peer for each role, none twice."""
        left = {kind: list(peers) for kind, peers in self.by_kind.items()}
        return [left[kind].pop(0) for kind in kinds]

    def file(self, name, size):
        path = self.lan.folder / name
        path.write_bytes(os.urandom(size))
        return path

    def picture(self, name):
        """A PNG of 8 by 6 dots."""
        def chunk(kind, data):
            return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

        rows = b"".join(b"\0" + os.urandom(24) for _ in range(6))
        path = self.lan.folder / f"{name}.png"
        path.write_bytes(
            b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 8, 6, 8, 2, 0, 0, 0))
            + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))
        return path

    def film(self, name):
        """A second of 8 by 6 dots; another one for each name."""
        path = self.lan.folder / f"{name}.mkv"
        made = subprocess.run(
            ["ffmpeg", "-loglevel", "error", "-f", "lavfi", "-i", "color=size=8x6:rate=5:duration=1", "-c:v", "ffv1",
             "-metadata", f"title={name}", str(path)], capture_output=True, stdin=subprocess.DEVNULL)
        expect(made.returncode == 0, f"ffmpeg makes a film: {made.stderr[-300:]}")
        return path


def same(path, source):
    expect(path.read_bytes() == source.read_bytes(), f"{path.name} has the bytes that were shared")


# A column: its name, what its roles are, and the cell. A cell gets the company, a channel and a peer for each role.


def presence(company, channel, first, second):
    """See each other in a passphrase channel, each other's hands go up and down, and the goodbye is heard."""
    for peer in (first, second):
        peer.join(channel, PASSPHRASE)
    see_each_other(channel, first, second, within=WITHIN)
    for who, other in ((first, second), (second, first)):
        who.hand(channel, True)
        eventually(lambda: who.name in other.hands(channel), WITHIN, f"{other.name} sees the hand", every=0.1)
        who.hand(channel, False)
        eventually(lambda: who.name not in other.hands(channel), WITHIN, f"{other.name} sees it lowered", every=0.1)
    first.leave(channel)
    eventually(lambda: first.name not in second.online(channel), WITHIN, "the goodbye is heard", every=0.1)


def messages(company, channel, first, second):
    """Short ones, one in fragments, acknowledged; each once, in the same order."""
    for peer in (first, second):
        peer.join(channel)
    see_each_other(channel, first, second, within=WITHIN)
    for number in range(15):
        for peer in (first, second):
            peer.send(channel, f"{peer.name}: {number}")
    for peer in (first, second):
        expect(peer.send_acknowledged(channel, f"{peer.name} {LONG_TEXT}", WITHIN), f"{peer.name} is told who has it")
    for peer in (first, second):
        eventually(lambda: len(peer.texts(channel)) >= 32, WITHIN, f"{peer.name} has all", every=0.1)
    expect(first.texts(channel) == second.texts(channel), "the same order")
    expect(len(set(first.texts(channel))) == 32, "each once")


def to_one(company, channel, first, second):
    """A message to one peer, dialled for when there is no session; once, and stored before it counts."""
    for peer in (first, second):
        peer.join(channel)
    see_each_other(channel, first, second, within=WITHIN)
    for number in range(3):
        first.tell(second, f"{channel} {number}")
    expected = [f"{channel} {number}" for number in range(3)]
    eventually(lambda: sorted(text for text in second.told() if text.startswith(f"{channel} ")) == expected, WITHIN,
               f"{second.name} was told", every=0.1)


def kinds(company, channel, first, second):
    """A photo, a video and a kind that only the sender knows: each arrives as what it is, with its size in dots."""
    for peer in (first, second):
        peer.join(channel)
    see_each_other(channel, first, second, within=WITHIN)
    for kind, source in (("photo", company.picture(channel)), ("video", company.film(channel))):
        media_id = first.share(channel, source, kind, dots=(8, 6))
        eventually(lambda: media_id in second.media(channel), WITHIN, f"the {kind} was heard of", every=0.1)
        copy = source.with_name(f"{source.name}.copy")
        second.download(media_id, copy)
        row = next(row for row in second.history(channel) if row.get("media_id") == media_id)
        expect((row["type"], row["width"], row["height"]) == (kind, 8, 6), f"a {kind} of 8 by 6 dots: {row}")
        expect(copy.stat().st_size == row["size"], "the size that was announced")
    if first.kind == "Python":
        first.call("raw", channel, "poll", '{"question": "tea?"}')
        eventually(lambda: "poll" in second.types(channel), WITHIN, "the unknown kind is shown", every=0.1)


def places(company, channel, first, second):
    """A place and a custom message; a text that its author edits, and one taken back, where the other judges acts."""
    for peer in (first, second):
        peer.join(channel)
    see_each_other(channel, first, second, within=WITHIN)
    first.place(channel, 52.5163, -13.25, "Café \"Ü\"")
    first.custom(channel, "seat", row="3")
    for text in ("one", "two"):
        first.send(channel, text)
    eventually(lambda: second.texts(channel) == ["one", "two"], WITHIN, "all was heard", every=0.1)
    rows = {row["type"]: row for row in second.history(channel)}
    place, custom = rows["location"], rows["custom"]
    expect((place["latitude"], place["longitude"], place["address"]) == (52.5163, -13.25, "Café \"Ü\""), f"{place}")
    expect((custom["event"], custom["custom_ext"]) == ("seat", {"row": "3"}), f"what it says: {custom}")
    ids = [row["message_id"] for row in second.history(channel) if row["type"] == "text"]
    first.edit(channel, ids[0], "uno")
    first.recall(channel, ids[1])
    for peer in (first, second):
        # The Python peer keeps acts and judges none.
        if peer.kind == "Swift":
            eventually(lambda: [row.get("body") for row in peer.history(channel) if row["type"] == "text"]
                       == ["uno", None], WITHIN, f"{peer.name} has what stands", every=0.1)


def combined(company, channel, first, second):
    """Three messages put together by one and taken apart by the other, in the order given."""
    for peer in (first, second):
        peer.join(channel)
    see_each_other(channel, first, second, within=WITHIN)
    for text in ("one", "two \"quoted\" 会議", "three"):
        first.send(channel, text)
    ids = [row["message_id"] for row in first.history(channel) if row["type"] == "text"]
    first.combine(channel, "Friday", [ids[2], ids[0], ids[1]])
    eventually(lambda: "combine" in second.types(channel), WITHIN, "the combined message was heard of", every=0.1)
    row = next(row for row in second.history(channel) if row["type"] == "combine")
    expect((row["title"], row["compatible_text"], row["levels"]) == ("Friday", "[Friday]", 1), f"what it says: {row}")
    texts = second.unpack(row, company.lan.folder / f"{channel}.ndjson")
    expect(texts == ["three", "one", "two \"quoted\" 会議"], f"the messages in it: {texts}")


def room(company, channel, first, second):
    """In a room: a text that stands and is replaced, and one that goes with whoever has set it."""
    for peer in (first, second):
        peer.join(channel, is_room=True)
    see_each_other(channel, first, second, within=WITHIN)

    def all_have(**wanted):
        for peer in (first, second):
            eventually(lambda: peer.attributes(channel) == wanted, WITHIN, f"{peer.name} has {wanted}", every=0.1)

    first.set_attribute(channel, "topic", "May")
    second.set_attribute(channel, "seat", second.name, is_for_ever=False)
    all_have(topic="May", seat=second.name)
    second.set_attribute(channel, "topic", "June")
    all_have(topic="June", seat=second.name)
    second.leave(channel)
    eventually(lambda: first.attributes(channel) == {"topic": "June"}, WITHIN, "the seat is free", every=0.1)


def commanded(company, channel, first, second):
    """A command goes out once and may be lost: it is said again until the other has heard it. Nobody keeps it."""
    for peer in (first, second):
        peer.join(channel)
    see_each_other(channel, first, second, within=WITHIN)
    for one, other in ((first, second), (second, first)):
        def is_heard():
            one.command(channel, "refresh", page="2")
            return ("refresh", {"page": "2"}) in other.commands(channel)

        eventually(is_heard, WITHIN, f"{other.name} hears {one.name}'s command", every=0.5)
    for peer in (first, second):
        expect("cmd" not in peer.types(channel), f"{peer.name} keeps no command")


def late(company, channel, early, newcomer):
    """Who joins late gets what was said before and is heard itself."""
    early.join(channel)
    for number in range(40):
        early.send(channel, f"before {number}")
    newcomer.join(channel)
    eventually(lambda: len(newcomer.texts(channel)) == 40, WITHIN, "the newcomer has all", every=0.1)
    newcomer.send(channel, "thanks")
    eventually(lambda: early.texts(channel) == newcomer.texts(channel), WITHIN, "the same on both", every=0.1)


def relay(company, channel, author, keeper, newcomer):
    """The author has gone when the newcomer comes: whoever stayed passes its words on, signed as they were."""
    for peer in (author, keeper):
        peer.join(channel)
    see_each_other(channel, author, keeper, within=WITHIN)
    for number in range(20):
        author.send(channel, f"kept {number}")
    expect(author.send_acknowledged(channel, "the last", WITHIN), "the keeper has all")
    author.leave(channel)
    newcomer.join(channel)
    eventually(lambda: len(newcomer.texts(channel)) == 21, WITHIN, "the newcomer has all", every=0.1)
    expect(newcomer.texts(channel) == keeper.texts(channel), "in the same order")


def many_logs(company, channel, keeper, newcomer):
    """So many logs that summaries are compared: from somebody who goes to one, and from that one to the next."""
    channel = f"many-{keeper.kind[0]}-{newcomer.kind[0]}"
    company.archivist.join(channel)
    previous = company.archivist
    for peer in (keeper, newcomer):
        peer.join(channel)
        eventually(lambda: len(set(peer.texts(channel))) == MANY_LOGS, WITHIN, f"{peer.name} has all", every=0.3)
        expect(peer.texts(channel) == previous.texts(channel), "in the same order")
        if previous is company.archivist:
            previous.leave(channel)
        previous = peer


def media(company, channel, sharer, first, second):
    """A file of several pieces, to one; then, the sharer gone, from that one to another."""
    for peer in (sharer, first, second):
        peer.join(channel)
    see_each_other(channel, sharer, first, second, within=WITHIN)
    source = company.file(f"{channel}.bin", 3 * MEGABYTE + 17)
    media_id = sharer.share(channel, source, "file")
    for number, peer in enumerate((first, second)):
        eventually(lambda: media_id in peer.media(channel), WITHIN, f"{peer.name} has heard of it", every=0.1)
        copy = company.lan.folder / f"{channel}.{number}"
        peer.download(media_id, copy)
        same(copy, source)
        if number == 0:
            sharer.leave(channel)


def folder(company, channel, sharer, receiver):
    """A folder with files of no, one and several pieces; every file's bytes arrive under its path."""
    for peer in (sharer, receiver):
        peer.join(channel)
    see_each_other(channel, sharer, receiver, within=WITHIN)
    source = company.lan.folder / f"{channel}-folder"
    for path, size in (("empty", 0), ("a/small.txt", 20), ("a/b/ещё.bin", 2 * MEGABYTE), ("z", 16_384)):
        (source / path).parent.mkdir(parents=True, exist_ok=True)
        (source / path).write_bytes(os.urandom(size))
    media_id = sharer.share(channel, source)
    eventually(lambda: media_id in receiver.media(channel), WITHIN, "it was heard of", every=0.1)
    copy = company.lan.folder / f"{channel}-copy"
    receiver.download(media_id, copy)
    for path in source.rglob("*"):
        if path.is_file():
            same(copy / path.relative_to(source), path)


COLUMNS = {
    "presence, hands": (PAIRS, presence),
    "messages": (PAIRS, messages),
    "to one peer": (PAIRS, to_one),
    "photo, video, unknown": (PAIRS, kinds),
    "places, custom, deeds": (PAIRS, places),
    "combined": (PAIRS, combined),
    "a room's attributes": (PAIRS, room),
    "commands": (PAIRS, commanded),
    "late": (PAIRS, late),
    "relay": (TRIPLES, relay),
    "many logs": (PAIRS, many_logs),
    "file, served on": (TRIPLES, media),
    "folder": (PAIRS, folder),
}


class Results:
    def __init__(self):
        self.counts = collections.defaultdict(lambda: [0, 0])
        self.failed, self.columns = 0, []

    def run(self, column, kinds, cell):
        if column not in self.columns:
            self.columns.append(column)
        begun, name = time.monotonic(), f"{column}: {' – '.join(kinds)}"
        count = self.counts[column, kinds[:2]]
        count[1] += 1
        try:
            cell()
        except Exception as error:
            self.failed += 1
            text = str(error) if isinstance(error, (Failure, harness.CommandError)) else traceback.format_exc()
            print(f"FAIL  {name}: {text}", flush=True)
            return
        count[0] += 1
        print(f"ok    {name} ({time.monotonic() - begun:.1f} s)", flush=True)

    def passed(self):
        return sum(count[0] for count in self.counts.values())

    def table(self):
        """By the first two roles; a third is filled by both kinds in turn."""
        rows = ["| who – with whom | " + " | ".join(self.columns) + " |", "|---" * (1 + len(self.columns)) + "|"]
        for kinds in PAIRS:
            cells = (self.counts.get((column, kinds), [0, 0]) for column in self.columns)
            rows.append(f"| {' – '.join(kinds)} | " + " | ".join(f"{good} of {all_}" for good, all_ in cells) + " |")
        return "\n".join(rows)


def play_company(results):
    with Lan(HOSTS) as lan:
        company = Company(lan)
        lan.loss(LOSS_PERCENT)
        jobs = []
        for at, (column, (casts, cell)) in enumerate(COLUMNS.items()):
            results.columns.append(column)
            for kinds in casts:
                channel = f"{at}-{'-'.join(kind[0] for kind in kinds)}"
                jobs.append((column, kinds, lambda kinds=kinds, channel=channel, cell=cell: cell(
                    company, channel, *company.cast(kinds))))
        with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
            for job in [pool.submit(results.run, *job) for job in jobs]:
                job.result()
        lan.loss(0)
        play_apart(results, lan, company)
        for peer in (*company.all, company.archivist):
            results.run("ends well", (peer.kind, peer.kind), peer.end)
        results.columns.remove("ends well")


def play_apart(results, lan, company):
    """The LAN is parted in two, both sides write, and are one again: history goes both ways."""
    channels = {}
    for kinds in PAIRS:
        first, second = company.by_kind[kinds[0]][0], company.by_kind[kinds[1]][1]
        channels[kinds] = f"apart-{kinds[0][0]}-{kinds[1][0]}", first, second
        for peer in (first, second):
            peer.join(channels[kinds][0])
    for channel, first, second in channels.values():
        see_each_other(channel, first, second, within=WITHIN)
    # The first of each kind on one side, the second on the other.
    lan.split(1, 4)
    for channel, first, second in channels.values():
        for number in range(10):
            first.send(channel, f"here {number}")
            second.send(channel, f"there {number}")
    for channel, first, second in channels.values():
        for peer in (first, second):
            expect(len(peer.texts(channel)) == 10, f"{peer.name} is parted from the others")
    lan.heal()

    def one_again(channel, first, second):
        for peer in (first, second):
            eventually(lambda: len(peer.texts(channel)) == 20, WITHIN, f"{peer.name} has both sides", every=0.2)
        expect(first.texts(channel) == second.texts(channel), "in the same order")

    for kinds, cast in channels.items():
        results.run("history both ways", kinds, lambda cast=cast: one_again(*cast))


def play_dialled(results):
    """No datagram arrives at all: one dials the other at an address that a person gave, and all goes in the session."""
    with Lan(8) as lan:
        lan.loss(100)
        others = [KINDS[kinds[1]](lan, 2 * at + 2, "Answers") for at, kinds in enumerate(PAIRS)]

        def cell(at, kinds):
            other, channel = others[at], "by-address"
            other.join(channel)
            place = f"10.77.0.{other.host}", str(other.port)
            if kinds[0] == "Swift":
                dialler = KINDS["Swift"](lan, 2 * at + 1, "Dials", options=("--peer", ":".join(place)))
                dialler.join(channel)
            else:
                # The first answers with ChaChaPoly only: both ciphers are talked in.
                dialler = PythonPeer(lan, 2 * at + 1, "Dials", suites="chachapoly")
                dialler.join(channel)
                expect(dialler.call("dial", *place)["session"], "the session stands")
            see_each_other(channel, dialler, other, within=WITHIN)
            for peer in (dialler, other):
                expect(peer.send_acknowledged(channel, f"from {peer.name}", WITHIN), f"{peer.name} is acknowledged")
            expect(dialler.texts(channel) == other.texts(channel) == ["from Dials", "from Answers"], "the same on both")
            dialler.end()

        for at, kinds in enumerate(PAIRS):
            results.run("dials, no datagrams", kinds, lambda: cell(at, kinds))
        for other in others:
            other.end()


def written(table):
    """Puts the table into README.md; whether anything changed."""
    path = ROOT / "README.md"
    text = path.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    expect(after, f"README.md has no place for the table: {BEGIN}")
    new = f"{before}{BEGIN}\n{table}\n{END}{after}"
    if new != text:
        path.write_text(new, encoding="utf-8")
    return new != text


def too_long(signum, frame):
    raise Failure(f"not done within {TOTAL_SECONDS_MAX} s")


def main():
    signal.signal(signal.SIGALRM, too_long)
    signal.alarm(TOTAL_SECONDS_MAX)
    results, begun = Results(), time.monotonic()
    try:
        play_company(results)
        play_dialled(results)
    except Skip as reason:
        print(f"skip  interoperability: {reason}\n0 passed, 0 failed, 1 skipped")
        return 0
    except Exception:
        traceback.print_exc()
        results.failed += 1
    print(results.table())
    print(f"interoperability took {time.monotonic() - begun:.0f} s")
    if "--write" in sys.argv and not results.failed:
        print("README.md: " + ("written" if written(results.table()) else "as it was"))
    print(f"{results.passed()} passed, {results.failed} failed, 0 skipped")
    return 1 if results.failed or not results.passed() else 0


if __name__ == "__main__":
    sys.exit(main())
