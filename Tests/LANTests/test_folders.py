"""Folders under one media ID: in whole and in part, whatever lies in them, and by the thousand."""
import hashlib
import json
import os
import subprocess
import time

from harness import LONG, MIB, PARLEY, Lan, eventually, expect
from test_landing import pair, parts, share_with


def fill(root, files):
    for name, data in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


def tree(root):
    return {str(path.relative_to(root)): hashlib.sha256(path.read_bytes()).hexdigest()
            for path in root.rglob("*") if path.is_file()}


def test_a_file_of_a_folder_that_changes_takes_only_itself_out():
    with Lan(3) as lan:
        ana, ben = pair(lan)
        trip = lan.folder / "trip"
        fill(trip, {"notes.txt": b"first", "one.jpg": os.urandom(3 * MIB), "two.jpg": os.urandom(2 * MIB)})
        (media,) = ana.share("garden", trip)
        share_with(ana, ben, media)
        (trip / "notes.txt").write_bytes(b"second, and longer")

        def fetched(node, name):
            path = lan.folder / name
            node.cli("download", media, "--only", "one.jpg", "--only", "two.jpg", "-o", str(path))
            return tree(path)

        expected = {name: digest for name, digest in tree(trip).items() if name != "notes.txt"}
        # Who wants all of it fetches the rest, and is told why that is not all.
        said = ben.run("download", media, "-o", str(lan.folder / "all"), json_lines=False)
        expect(said.returncode != 0 and b"changed" in said.stderr, f"Ben is told why: {said}")
        expect("notes.txt changed" in ana.log_text(), "Ana is told which file changed")
        expect(fetched(ben, "some") == expected, "the rest is served on")
        # After a restart, too, before anybody has asked.
        ben.stop()
        ana.stop()
        ana.start()
        cem = lan.node("Cem", host=3)
        cem.join("garden")
        share_with(ana, cem, media)
        eventually(lambda: ana.log_text().count("notes.txt changed") == 2, 30, "Ana is told again")
        expect(fetched(cem, "some of it again") == expected, "and serves the rest")


def test_a_folder_with_all_kinds_of_things_in_it():
    with Lan(2) as lan:
        ana, ben = pair(lan)
        trip = lan.folder / "trip"
        fill(trip, {
            "plan.txt": b"plan", "photos/one.jpg": os.urandom(3 * MIB + 5), "photos/two.jpg": os.urandom(20_000),
            "photos/raw/one.raw": os.urandom(MIB), "empty": b"", ".hidden": b"x", "\u202egpj.exe": b"y", "a\nb": b"z",
        })
        (trip / "run.sh").write_bytes(b"#!/bin/sh\n")
        (trip / "run.sh").chmod(0o755)
        (trip / "link").symlink_to("/etc/passwd")
        os.mkfifo(trip / "fifo")
        with open(bytes(trip) + b"/\xff\xfe", "wb") as file:
            file.write(b"no text")
        done = ana.run("share", "garden", str(trip), json_lines=False)
        words = done.stderr.decode()
        expect(done.returncode == 0 and done.stdout.decode().count("\n") == 1, f"one media ID: {done}")
        for word in ("symbolic link", "FIFO", "not UTF-8"):
            expect(word in words, f"{word} is left out with a word: {words}")
        media = done.stdout.decode().strip()
        share_with(ana, ben, media)
        rows = {row["path"]: row for row in ben.cli("files", media)}
        expect(len(rows) == 9 and rows["photos/one.jpg"]["size"] == 3 * MIB + 5, f"it is listed: {rows}")
        expect(rows["run.sh"]["executable"] and not rows["plan.txt"]["executable"], "with what is a program")
        target = lan.folder / "target"
        target.mkdir()
        path = ben.download(media, folder=target)
        expect(path == target / "trip" and parts(target) == [], f"it is there under its name: {path}")
        here, there = tree(path), tree(trip)
        for name in ("plan.txt", "photos/one.jpg", "photos/two.jpg", "photos/raw/one.raw", "empty", "run.sh"):
            expect(here[name] == there[name], f"{name} is whole")
        expect(len(here) == 9 and not any("\u202e" in name or "\n" in name for name in here), f"names are safe: {here}")
        expect(not os.access(path / "run.sh", os.X_OK), "nothing became a program")
        rows = ben.cli("download", media, "--only", "photos", "--only", "*.sh", "--executable", folder=target)
        part = target / [row["path"] for row in rows if row.get("path")][-1]
        expect(set(tree(part)) == {"photos/one.jpg", "photos/two.jpg", "photos/raw/one.raw", "run.sh"}, f"{tree(part)}")
        expect(os.access(part / "run.sh", os.X_OK), "and so it does when asked for")
        ben.refused(73, "download", media, "--only", "nothing/*")


def test_thousands_of_small_files():
    """The last as fast as the first, and few descriptors on either side."""
    count = 7_000 if LONG else 700
    with Lan(2) as lan:
        ana, ben = pair(lan)
        many = lan.folder / "many"
        block = os.urandom(140_000)
        for number in range(count):
            path = many / f"{number // 100:03}" / f"{number:05}"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(number.to_bytes(4, "big") + block[4:])
        [media] = ana.share("garden", many)
        share_with(ana, ben, media)
        target = lan.folder / "target"
        target.mkdir()
        times, most = [(time.monotonic(), 0)], 0
        process = subprocess.Popen([PARLEY, "download", media, "--home", str(ben.home), "--json"], cwd=target,
                                   stdout=subprocess.PIPE)
        for line in process.stdout:
            event = json.loads(line)
            if event["event"] == "progress":
                times.append((time.monotonic(), event["received"]))
                most = max(most, *(len(os.listdir(f"/proc/{node.process.pid}/fd")) for node in (ana, ben)))
        expect(process.wait(60) == 0, "it completes")
        expect(tree(target / "many") == tree(many), "every file is right")
        expect(most < 300, f"{most} descriptors are open at most")
        if LONG:
            part = 500 * 140_000
            first = next(at for at, done in times if done >= part) - times[0][0]
            last = times[-1][0] - next(at for at, done in times if done >= times[-1][1] - part)
            print(f"  the first 500 files took {first:.2f} s, the last {last:.2f} s, "
                  f"all {times[-1][0] - times[0][0]:.2f} s")
            expect(last < first / 0.9, "the last files are as fast as the first")
