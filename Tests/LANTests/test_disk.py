"""A disk that is full, that may not be written, that somebody else uses, that was damaged: clear words, nothing
acknowledged lost, and no restart once it is well again."""
import contextlib
import os
import sqlite3
import subprocess

from harness import Lan, eventually, expect

TEXT = "x" * 20_000


@contextlib.contextmanager
def small_disk(lan, name, size):
    """A file system of this size in memory."""
    folder = lan.folder / name
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size},mode=700", "none", folder], check=True)
    try:
        yield folder
    finally:
        for node in lan.nodes:
            node.kill9()
        subprocess.run(["umount", folder], check=True)


def remount(folder, how, *nodes):
    subprocess.run(["mount", "-o", f"remount,{how}", folder], check=True)
    # Each has a view of its own of what is mounted (ip-netns(8)), made when it was started.
    for node in nodes:
        subprocess.run(["nsenter", "-t", str(node.process.pid), "-m", "mount", "-o", f"remount,{how}", folder],
                       check=True)


def troubles(node):
    return " ".join(node.cli("status")[0]["troubles"])


def store_of(node):
    return node.home / "store.sqlite"


def garden(lan, name, **options):
    node = lan.node(name, **options)
    node.join("garden", "seven wet dogs")
    return node


def test_a_full_disk_loses_nothing_and_goes_on():
    with Lan(2) as lan, small_disk(lan, "small", "4m") as disk:
        ana, ben = garden(lan, "Ana", home=disk / "home"), garden(lan, "Ben")
        eventually(lambda: ana.online("garden") == {"Ana", "Ben"}, 10, "they meet")
        ana.cli("send", "garden", "before")
        with contextlib.suppress(OSError), open(disk / "ballast", "wb", buffering=0) as ballast:
            while ballast.write(bytes(65_536)) == 65_536:
                pass
        promised = ["before"]
        for number in range(300):
            text = f"{number} {TEXT}"
            done = ana.run("send", "garden", text)
            if done.returncode != 0:
                break
            promised.append(text)
        message = done.stderr.decode()
        expect(done.returncode == 75, f"refused, to be tried again: {done.returncode} {message[:300]}")
        expect("full" in message and "make" in message, f"what is wrong and what to do is said: {message[:300]}")
        expect("full" in troubles(ana), f"also in status: {troubles(ana)}")
        expect(ana.texts("garden")[:len(promised)] == promised, "what is there can be read")
        expect(ana.online("garden") == {"Ana", "Ben"}, "and Ben is seen")
        refusals = ana.log_text().count("is full")
        ana.refused(75, "send", "garden", "another")
        expect(ana.log_text().count("is full") == refusals, "it is told once, not at every attempt")
        os.unlink(disk / "ballast")
        eventually(lambda: troubles(ana) == "", 10, "with room it goes on by itself")
        ana.cli("send", "garden", "after", "--wait", "10")
        ana.kill9()
        ana.start()
        kept = ana.texts("garden")
        expect(set(promised + ["after"]) <= set(kept), "everything that was promised is there")
        expect(len(kept) == len(set(kept)), "once")
        eventually(lambda: ana.texts("garden") == ben.texts("garden"), 10, "as Ben has it")


def test_a_full_disk_at_the_start():
    with Lan(1) as lan, small_disk(lan, "small", "4m") as disk:
        ana = garden(lan, "Ana", home=disk / "home")
        ana.cli("send", "garden", "before")
        ana.stop()
        with contextlib.suppress(OSError), open(disk / "ballast", "wb", buffering=0) as ballast:
            while ballast.write(bytes(4_096)) == 4_096:
                pass
        ana.start()
        expect(ana.texts("garden") == ["before"], "its history can be read")
        os.unlink(disk / "ballast")
        eventually(lambda: ana.run("send", "garden", "after").returncode == 0, 10, "with room it goes on by itself")


def read_only(lan, disk, end):
    ana, ben = garden(lan, "Ana", home=disk / "home"), garden(lan, "Ben")
    eventually(lambda: ana.online("garden") == {"Ana", "Ben"}, 10, "they meet")
    for number in range(20):
        ana.cli("send", "garden", f"kept {number}")
    before = ana.texts("garden")
    end(ana)
    remount(disk, "ro")
    ana.start()
    expect(ana.texts("garden") == before, "it reads its history")
    eventually(lambda: ana.online("garden") == {"Ana", "Ben"}, 10, "hears others")
    eventually(lambda: ben.online("garden") == {"Ana", "Ben"}, 10, "and is heard")
    message = ana.refused(75, "send", "garden", "not kept")
    expect("cannot be written" in message, f"why nothing is kept is said: {message}")
    expect("cannot be written" in troubles(ana), f"also in status: {troubles(ana)}")
    expect("cannot be written" in ana.log_text(), "and at the start")
    ben.cli("send", "garden", "from Ben")
    remount(disk, "rw", ana)
    eventually(lambda: troubles(ana) == "", 10, "once it may write it goes on by itself")
    ana.cli("send", "garden", "after", "--wait", "10")
    eventually(lambda: {"from Ben", "after", *before} <= set(ana.texts("garden")), 10, "and catches up")
    ana.kill9()
    ana.start()
    expect({"from Ben", "after", *before} <= set(ana.texts("garden")), "for good")


def test_a_home_that_may_not_be_written():
    with Lan(2) as lan, small_disk(lan, "small", "16m") as disk:
        read_only(lan, disk, lambda node: node.stop())


def test_a_home_that_may_not_be_written_after_a_crash():
    with Lan(2) as lan, small_disk(lan, "small", "16m") as disk:
        read_only(lan, disk, lambda node: node.kill9())


def test_a_store_that_another_process_uses():
    with Lan(1) as lan:
        ana = garden(lan, "Ana")
        ana.cli("send", "garden", "kept")
        ana.stop()
        other = sqlite3.connect(store_of(ana), isolation_level=None)
        other.execute("BEGIN EXCLUSIVE")
        done = subprocess.run(ana.command(), capture_output=True, text=True, timeout=30)
        expect(done.returncode != 0 and "in use by another process" in done.stderr, f"it says so and ends: {done}")
        other.execute("COMMIT")
        other.close()
        ana.start()
        expect(ana.texts("garden") == ["kept"], "and nothing is lost")


def damage(path, how):
    size = path.stat().st_size
    if how == "truncated":
        os.truncate(path, size // 2)
    with open(path, "r+b") as file:
        # The type of the first page's tree, and of those in the middle.
        for offset in {"flipped": [100, size // 8192 * 4096]}.get(how, []):
            file.seek(offset)
            byte = file.read(1)[0]
            file.seek(offset)
            file.write(bytes([byte ^ 0x45]))


def test_a_damaged_store_is_salvaged_and_repaired():
    with Lan(2) as lan:
        ana, ben = garden(lan, "Ana"), garden(lan, "Ben")
        eventually(lambda: ana.online("garden") == {"Ana", "Ben"}, 10, "they meet")
        for number in range(100):
            (ana, ben)[number % 2].cli("send", "garden", f"{number} {'y' * 500}", "--wait", "5")
        said = ben.texts("garden")
        kept = {}
        for how in ("flipped", "truncated"):
            ana.stop()
            damage(store_of(ana), how)
            ana.start()
            kept[how] = len(ana.texts("garden"))
            expect("was damaged" in ana.log_text(), f"it is told: {ana.log_text()}")
            eventually(lambda: ana.texts("garden") == said, 15, f"{how}: all is there again, in the same order")
        expect(kept["flipped"] == 100, f"what the disk still held needed nobody: {kept}")
        aside = [path.name for path in ana.home.iterdir() if ".damaged-" in path.name]
        expect(len(aside) >= 2, f"the damaged ones are kept: {aside}")
        return f"{kept['truncated']} of 100 messages were in the half that was left"


def test_a_store_that_is_damaged_while_it_is_used():
    with Lan(2) as lan:
        ana, ben = garden(lan, "Ana"), garden(lan, "Ben")
        eventually(lambda: ana.online("garden") == {"Ana", "Ben"}, 10, "they meet")
        for number in range(40):
            ana.cli("send", "garden", f"{number} {'y' * 500}")
        ana.stop()
        ana.start()
        eventually(lambda: ana.online("garden") == {"Ana", "Ben"}, 10, "they meet again")
        os.truncate(store_of(ana), 8_192)
        promised = []
        for number in range(20):
            done = ana.run("send", "garden", f"after {number}")
            if done.returncode == 0:
                promised.append(f"after {number}")
        ana.expect_alive()
        expect(promised, "it goes on")
        eventually(lambda: set(promised) <= set(ben.texts("garden")), 10, "Ben has what was promised")
        ana.kill9()
        ana.start()
        eventually(lambda: ana.texts("garden") == ben.texts("garden"), 20, "and Ana has all of it again")


def test_history_is_kept_as_long_as_asked():
    with Lan(2) as lan:
        ana, ben = garden(lan, "Ana", options=["--history-entries", "100"]), garden(lan, "Ben")
        eventually(lambda: ana.online("garden") == {"Ana", "Ben"}, 10, "they meet")
        texts = [f"text {number}" for number in range(250)]
        ana.send_many("garden", texts)
        eventually(lambda: ben.texts("garden") == texts, 10, "Ben keeps all")
        eventually(lambda: ana.texts("garden") == texts[-100:], 30, "Ana the last hundred")
        ana.stop()
        ana.start()
        eventually(lambda: ana.online("garden") == {"Ana", "Ben"}, 10, "they meet again")
        ana.cli("send", "garden", "more", "--wait", "10")
        expect(len(ana.texts("garden")) <= 101, "what is gone does not come back")
        ana.refused(64, "up", "--history-days", "0")
