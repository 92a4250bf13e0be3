"""Reaching downloads: a pipe in order while it arrives, a range, the list, pausing, going on after a crash, limits."""
import contextlib
import json
import os
import shutil
import sqlite3
import subprocess
import tempfile
import time

from harness import MIB, PARLEY, Lan, eventually, expect


def shared(lan, size, **options):
    """Ana, who shares a file of random bytes, Ben, its media ID and bytes. Options are those of Ben's node."""
    ana, ben = lan.node("Ana"), lan.node("Ben", **options)
    for node in (ana, ben):
        node.join("garden")
    eventually(lambda: ben.online("garden") == {"Ana", "Ben"}, 5, "both are there")
    data = os.urandom(size)
    path = lan.folder / "long"
    path.write_bytes(data)
    (media,) = ana.share("garden", path)
    eventually(lambda: ben.cli("media", "garden"), 5, "the file is known")
    return ana, ben, media, data


def start(node, *arguments):
    return subprocess.Popen([PARLEY, *arguments, "--home", str(node.home)], stdin=subprocess.DEVNULL,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def test_a_pipe_gets_the_bytes_in_order_and_its_end_ends_the_download():
    with Lan(2) as lan:
        _, ben, media, data = shared(lan, 40 * MIB + 5)
        whole = ben.run("download", media, "-o", "-", json_lines=False)
        expect(whole.returncode == 0 and whole.stdout == data, f"all of it: {whole.returncode} {whole.stderr}")
        expect(whole.stderr == b"", "nothing is said when all is well")
        expect(ben.cli("media", "garden")[0]["held_here"] is False, "nothing was kept on the disk")
        reader = start(ben, "download", media, "-o", "-")
        expect(reader.stdout.read(100_000) == data[:100_000], "it begins at the beginning")
        (row,) = ben.cli("downloads")
        expect(row["state"] == "running" and row["target"] is None and row["size"] == len(data), f"it is listed: {row}")
        reader.stdout.close()
        expect(reader.wait(20) == 73, "a pipe that is closed ends it")
        expect(reader.stderr.read() == b"", "without a word")
        reader.stderr.close()
        eventually(lambda: ben.cli("downloads") == [], 5, "the node has ended it, too")


def test_a_range_is_exactly_that():
    with Lan(2) as lan:
        ana, ben, media, data = shared(lan, 3 * MIB + 5)
        for node in (ben, ana):
            for text, wanted in (("0-0", data[:1]), ("1048570-1048590", data[1048570:1048591]), ("3145728-", data[-5:]),
                                 ("-7", data[-7:]), ("5-99999999", data[5:])):
                done = node.run("download", media, f"--range={text}", "-o", "-", json_lines=False)
                expect(done.returncode == 0 and done.stdout == wanted, f"{text}: {done.returncode} {done.stderr}")
        part = lan.folder / "part"
        (row,) = ben.cli("download", media, "--range", "100-199", "-o", part)
        expect(row["path"] == str(part) and part.read_bytes() == data[100:200], "a range in a file")
        ben.refused(73, "download", media, "--range", "0-1", "-o", str(part))
        expect(part.read_bytes() == data[100:200], "what is there is left as it is")
        ben.cli("download", media, "--range", "0-1", "-o", part, "--force")
        expect(part.read_bytes() == data[:2], "unless it may be replaced")
        ben.refused(65, "download", media, "--range", "3145733-", "-o", "-")
        ben.refused(64, "download", media, "--range", "2-1", "-o", "-")
        curl = subprocess.run(["curl", "-sS", "--unix-socket", ben.api_socket(), "-r", "10-19",
                               f"http://parley/v1/media/{media}/bytes"], capture_output=True, timeout=30)
        expect(curl.stdout == data[10:20], f"a player's request: {curl.stderr}")


def parts_on_disk(node):
    """Downloads that the store would know after a crash: the running node has it to itself, so a copy is read."""
    with tempfile.TemporaryDirectory() as folder:
        for name in ("store.sqlite", "store.sqlite-wal"):
            shutil.copy(node.home / name, folder)
        try:
            with contextlib.closing(sqlite3.connect(f"{folder}/store.sqlite")) as database:
                return database.execute("SELECT count(*) FROM downloads").fetchone()[0]
        except sqlite3.Error:
            return 0


def paused_part(ben, media, target):
    """A download that was paused after its first bytes; its number."""
    command = start(ben, "download", media, "-o", str(target), "--json")
    number = json.loads(command.stdout.readline())["download_id"]
    for line in command.stdout:
        event = json.loads(line)
        if event["event"] == "progress" and event["received"] > 0:
            break
    ben.cli("downloads", "pause", str(number))
    eventually(lambda: any(json.loads(line)["event"] == "paused" for line in command.stdout), 10, "it is told")
    return number, command


def test_a_paused_download_goes_on_after_a_crash():
    with Lan(2) as lan:
        _, ben, media, data = shared(lan, 24 * MIB + 5, options=["--download-limit", "4M"])
        folder = lan.folder / "target"
        folder.mkdir()
        number, command = paused_part(ben, media, folder / "copy")
        (row,) = ben.cli("downloads")
        expect(row["state"] == "paused" and 0 < row["received"] < len(data), f"some of it is there: {row}")
        eventually(lambda: parts_on_disk(ben) == 1, 5, "the store knows")
        ben.kill9()
        command.wait(20)
        ben.options = [word for word in ben.options if word not in ("--download-limit", "4M")]
        ben.start()
        eventually(lambda: ben.online("garden") == {"Ana", "Ben"}, 10, "both are there again")
        (row,) = ben.cli("downloads")
        expect(row["state"] == "paused" and row["received"] > 0, f"it is listed after the crash: {row}")
        expect(row["target"] == str(folder / "copy"), "under the name it is to have")
        ben.cli("downloads", "resume", str(row["download_id"]))
        eventually(lambda: ben.cli("downloads")[0]["state"] == "finished", 30, "it goes on by itself")
        expect((folder / "copy").read_bytes() == data, "it is right")
        expect(os.listdir(folder) == ["copy"], "nothing else is left")
        ben.refused(66, "downloads", "resume", str(row["download_id"]))


def test_a_cancelled_download_leaves_nothing_and_limits_hold():
    with Lan(2) as lan:
        _, ben, media, data = shared(lan, 8 * MIB, options=["--download-limit", "4M"])
        folder = lan.folder / "target"
        folder.mkdir()
        number, command = paused_part(ben, media, folder / "copy")
        expect(len(os.listdir(folder)) == 1, "a part lies there")
        ben.cli("downloads", "cancel", str(number))
        expect(command.wait(20) == 75, "who waited for it is told")
        eventually(lambda: os.listdir(folder) == [], 5, "nothing is left")
        expect(ben.cli("downloads") == [], "nothing is listed")
        started = time.monotonic()
        ben.download(media, folder / "copy")
        took = time.monotonic() - started
        expect((folder / "copy").read_bytes() == data, "it is right")
        # 8 MiB at 4 MB/s, less the fifth of a second that may come at once.
        expect(took > 1.5, f"no faster than the limit: {took:.2f} s")
        return f"8 MiB at 4 MB/s took {took:.2f} s"
