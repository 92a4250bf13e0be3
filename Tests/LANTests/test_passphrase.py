"""A home sealed with a passphrase: what stands on its disk, what other users reach, what kill -9 leaves."""
import json
import os
import pathlib
import random
import socket
import subprocess
import tempfile
import time

from harness import LONG, PARLEY, Lan, eventually, expect
from test_home import other_user

SENTENCE = "Sieben nasse Hunde, 七只湿狗, сім псів"
WORDS = ["Sieben nasse", "七只湿狗", "сім псів"]


def secret(folder, name, text):
    path = folder / name
    path.write_text(text + "\n")
    path.chmod(0o600)
    return str(path)


def holding(home, words):
    """Files of the home in which a word stands as it is."""
    return [(str(path), word) for path in home.rglob("*") if path.is_file() and not path.is_symlink()
            for word in words if word.encode() in path.read_bytes()]


def command(home, *arguments, timeout=60):
    return subprocess.run([PARLEY, *arguments, "--home", str(home)], stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, timeout=timeout)


def test_a_sealed_home_says_nothing_and_works():
    with Lan(2) as lan:
        ana, ben = lan.node("Anastasia"), lan.node("Ben")
        for node in (ana, ben):
            node.join("garden", "seven wet dogs")
        eventually(lambda: ana.online("garden") == {"Anastasia", "Ben"}, 5, "both are there")
        ana.cli("send", "garden", SENTENCE, "--wait", "5")
        ben.cli("tell", "Anastasia", SENTENCE + " privately")
        eventually(lambda: SENTENCE in ben.texts("garden"), 5, "Ben has it")
        words = [*WORDS, "Anastasia", "garden"]
        file = secret(lan.folder, "passphrase", "correct horse battery")
        message = ana.refused(75, "passphrase", "set", "--passphrase-file", file)
        expect(str(ana.process.pid) in message, f"a node runs on it: {message}")
        ana.stop()
        expect(holding(ana.home, words), "the test sees what is plain")
        ana.cli("passphrase", "set", "--passphrase-file", file)
        expect(not holding(ana.home, words), f"sealed: {holding(ana.home, words)}")
        ana.launch()
        expect(ana.process.wait(20) == 64, "without a passphrase and without a terminal it does not start")
        wrong = secret(lan.folder, "wrong", "correct horse")
        ana.options += ["--passphrase-file", wrong]
        before = {path.name: path.read_bytes() for path in ana.home.iterdir() if path.is_file() and path.name != "lock"}
        ana.launch()
        expect(ana.process.wait(20) == 77, "nor with a wrong one")
        after = {path.name: path.read_bytes() for path in ana.home.iterdir() if path.is_file() and path.name != "lock"}
        expect(before == after, "which changes nothing")
        ana.options[-1] = file
        ana.start(within=30)
        eventually(lambda: ana.online("garden") == {"Anastasia", "Ben"}, 8, "in the channel of last time")
        expect(ana.texts("garden") == [SENTENCE], "with its history")
        ben.cli("send", "garden", SENTENCE + " again", "--wait", "5")
        eventually(lambda: len(ana.texts("garden")) == 2, 5, "Ana has it")
        expect(len(ana.cli("search", "garden", "nasse hun")) == 2, "search finds both")
        expect(not holding(ana.home, words), f"also while it runs: {holding(ana.home, words)}")
        environment = pathlib.Path(f"/proc/{ana.process.pid}/environ").read_bytes()
        arguments = pathlib.Path(f"/proc/{ana.process.pid}/cmdline").read_bytes()
        expect(b"battery" not in environment + arguments, "the passphrase is in neither arguments nor environment")
        ana.kill9()
        expect(not holding(ana.home, words), "nor after a crash, in the log")
        ana.start(within=30)
        eventually(lambda: len(ana.texts("garden")) == 2, 8, "and all is there")


def test_kill_9_leaves_a_home_that_opens():
    """At any point of setting, changing and removing: with the old passphrase or with the new one."""
    tries = 150 if LONG else 24
    generator = random.Random(5)
    ended = {"set": 0, "change": 0, "remove": 0}
    seconds = {}
    with Lan(1) as lan:
        ana = lan.node("Ana")
        ana.join("garden", "seven wet dogs")
        ana.send_many("garden", [f"{SENTENCE} {number}" for number in range(300)])
        ana.stop()
        plain_options = ana.options
        old, new = secret(lan.folder, "old", "the old one"), secret(lan.folder, "new", "the new one")
        kinds = {
            "set": (None, old, ["set", "--passphrase-file", old]),
            "change": (old, new, ["change", "--passphrase-file", old, "--new-passphrase-file", new]),
            "remove": (old, None, ["remove", "--passphrase-file", old]),
        }

        def whole(*arguments):
            started = time.monotonic()
            done = command(ana.home, "passphrase", *arguments)
            expect(done.returncode == 0, f"{arguments[0]}: {done.stderr}")
            return time.monotonic() - started

        def bring(current, wanted):
            if current and current != wanted:
                whole("remove", "--passphrase-file", current)
                current = None
            if wanted and not current:
                whole("set", "--passphrase-file", wanted)

        for kind, (before, after, arguments) in kinds.items():
            bring({"set": None, "change": old, "remove": new}[kind], before)
            seconds[kind] = whole(*arguments)
        current = None
        for number in range(tries):
            kind = list(kinds)[number % 3]
            before, after, arguments = kinds[kind]
            bring(current, before)
            process = subprocess.Popen(
                [PARLEY, "passphrase", *arguments, "--home", str(ana.home)], stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            try:
                process.wait(generator.uniform(0, seconds[kind]))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
                ended[kind] += 1
            for current in (before, after):
                ana.options = plain_options + (["--passphrase-file", current] if current else [])
                ana.launch()
                if opens(ana):
                    break
            else:
                expect(False, f"try {number}, {kind}: neither the old nor the new passphrase opens it")
            expect(ana.lines[0]["peer_id"] == ana.peer_id, "as the same person")
            eventually(lambda: ana.latest_or_none("garden", 1000) is not None, 8, "in its channel")
            expect(len(ana.latest("garden", 1000)) == 300, "with all that was said")
            ana.stop()
            # A start ends what was begun: also a removal, with the passphrase that is then gone.
            if not (ana.home / "passphrase").exists():
                current = None
            expect(current is None or not holding(ana.home, WORDS), "sealed whole")
    expect(all(ended.values()), f"none was cut short: {ended}")
    return f"{tries} tries, cut short: {json.dumps(ended)}"


def opens(node):
    """Whether the node that was launched gets ready; else it has ended and says that the passphrase is not right."""
    with node.arrived:
        node.arrived.wait_for(lambda: node.lines, 30)
        first = node.lines[0] if node.lines else None
    if first and first.get("event") == "ready":
        return True
    expect(node.process.wait(20) in (64, 65, 77), f"refused, not broken: {node.log_text()}")
    return False


def test_other_users_reach_nothing():
    """Socket, token, profile and database, in a home to which the way is open."""
    with Lan(1) as lan:
        ana = lan.node("Ana")
        ana.join("garden", "seven wet dogs")
        ana.cli("send", "garden", "kept")
        lan.folder.chmod(0o755)
        below = sorted(ana.home.rglob("*"))
        names = {path.name for path in below}
        expect({"identity", "store.sqlite", "lock", "channels"} <= names, f"there is something to reach: {names}")
        sockets = [path for path in below if path.is_socket()]
        for path in [ana.home, *below]:
            for way in (lambda: os.stat(path) if path != ana.home else os.listdir(path), lambda: open(path, "rb"),
                        lambda: open(path, "ab"), lambda: os.rename(path, str(path) + ".x"),
                        lambda: os.unlink(path), lambda: os.chmod(path, 0o777)):
                result = other_user(way)
                expect(result in ("PermissionError", "IsADirectoryError"), f"{path} as another user: {result!r}")
        for path in sockets:
            expect(other_user(lambda: socket.socket(socket.AF_UNIX).connect(str(path))) == "PermissionError",
                   "nor connect to the API")
        expect(other_user(lambda: os.mkdir(ana.home / "new")) == "PermissionError", "nor put anything there")
        # A command of theirs on this home, and a home of theirs at this user's hands.
        done = subprocess.run(
            ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", PARLEY, "status", "--home", str(ana.home)],
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=20)
        expect(done.returncode in (69, 77, 126) and "garden" not in done.stdout, f"nor call it: {done}")
        theirs = pathlib.Path(tempfile.mkdtemp(prefix="parley-theirs-"))
        os.chown(theirs, 65534, 65534)
        done = command(theirs, "up", "--interface", "lo")
        expect(done.returncode == 65 and "65534" in done.stderr, f"a home of another user's is not used: {done}")
        expect(not any(theirs.iterdir()), "and nothing is put there")
        theirs.rmdir()
        ana.expect_alive()
        expect(ana.texts("garden") == ["kept"], "all is as it was")


def test_an_identity_moves_and_the_old_home_retires():
    with Lan(2) as lan:
        ana = lan.node("Ana")
        ana.join("garden", "seven wet dogs")
        peer = ana.peer_id
        ana.stop()
        file, key = lan.folder / "ana.parley", secret(lan.folder, "moving", "moving day")
        ana.cli("identity", "export", str(file), "--file-passphrase-file", key)
        expect(file.stat().st_mode & 0o777 == 0o600, "the file is private")
        expect(not any(word.encode() in file.read_bytes() for word in ("garden", "Ana")), "and sealed")
        ana.refused(73, "identity", "export", str(file), "--file-passphrase-file", key)
        ana.refused(73, "identity", "import", str(file), "--file-passphrase-file", key)
        home = lan.folder / "moved"
        wrong = secret(lan.folder, "wrong", "moving night")
        done = command(home, "identity", "import", str(file), "--file-passphrase-file", wrong)
        expect(done.returncode == 77 and not home.exists(), f"a wrong passphrase makes nothing: {done}")
        done = command(home, "identity", "import", str(file), "--file-passphrase-file", key)
        expect(done.returncode == 0, f"it is imported: {done}")
        ana.start()
        expect("exported" in ana.log_text(), "the old home says what it is")
        moved = lan.node("Ana", home=home)
        expect(moved.peer_id == peer, "the same identity")
        expect(ana.process.wait(20) != 0, "the old node ends")
        expect("elsewhere" in ana.log_text(), f"and says why: {ana.log_text()}")
        ana.launch()
        expect(ana.process.wait(20) == 73, "its home is retired")
        expect("retired" in ana.log_text(), "and says so")
        moved.expect_alive()
        eventually(lambda: moved.online("garden") == {"Ana"}, 5, "the one that moved is in the channel")
