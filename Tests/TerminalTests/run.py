#!/usr/bin/env python3
"""Runs the tests of the chat at a terminal, in tmux, or those whose name contains one of the arguments; the last line
is "N passed, N failed, N skipped". They build on one another. PARLEY: the command to test (.build/release/parley).

All of it runs in a network namespace with nothing but loopback, where that is permitted."""
import os
import pathlib
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback

HERE = pathlib.Path(__file__).parent
ROOT = HERE.resolve().parents[1]
sys.path[:0] = [str(HERE), str(HERE.parent / "LANTests"), str(HERE.parent / "BrowserTests")]
import test_chat  # noqa: E402
from conditions import Failure, Skip, eventually  # noqa: E402
from run_isolated import isolated  # noqa: E402
from stage import Person as Node  # noqa: E402
from tmux import Tmux  # noqa: E402

PARLEY = os.environ.get("PARLEY") or str(ROOT / ".build" / "release" / "parley")
TEST_SECONDS_MAX = int(os.environ.get("PARLEY_TEST_SECONDS") or 180)


class Person(Node):
    """A node with its home, and the window in which its user chats."""
    window = None

    def __init__(self, stage, name, options=()):
        super().__init__(stage, name)
        self.options = options
        self.folder = stage.folder / f"folder{len(stage.people)}"
        self.folder.mkdir()

    def open_chat(self, *options, environment=None):
        words = [PARLEY, "chat", *options, "--home", str(self.home)]
        # The folder is where downloads go; afterwards a plain shell, to see what state the terminal is in.
        script = f"cd {shlex.quote(str(self.folder))} && {shlex.join(words)}; echo ended $?; exec cat"
        self.window = self.stage.tmux.window(["sh", "-c", script], environment=environment)

    @property
    def is_chatting(self):
        return "ended" not in self.window.line

    def send(self, text):
        status, answer = self.call("POST", "/v1/channels/team/messages", {"body": text})
        if status != 201:
            raise Failure(f"{self.name} cannot send: {answer}")

    def hears(self, text, channel="team"):
        path = f"/v1/channels/{channel}/messages" if channel else f"/v1/peers/{self.stage.ana.peer_id}/messages"
        eventually(lambda: any(item.get("body") == text for item in self.call("GET", path)[1]), 20,
                   f"{self.name} has {text!r}")

    def token(self, key, peer, name):
        done = subprocess.run([PARLEY, "token", "issue", "--key-file", str(key), "--sub", peer, "--name", name],
                              capture_output=True, text=True, timeout=60)
        if done.returncode != 0:
            raise Failure(done.stderr)
        return done.stdout.strip()


class Stage:
    def __init__(self, tmux):
        self.tmux = tmux
        self.people = []

    def __enter__(self):
        if not os.access(PARLEY, os.X_OK):
            raise Failure(f"there is no {PARLEY}: build it first")
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="parley-chat-"))
        self.ana = self.person("Ana", ["--download-limit", "3M"])
        self.ben = self.person("Ben")
        return self

    def person(self, name, options=()):
        person = Person(self, name, options)
        person.start()
        return person

    def other_window(self):
        """Bells are flagged in windows that nobody looks at."""
        self.clear_bell()

    def clear_bell(self):
        name = self.ana.window.name
        self.tmux.run("kill-session", "-C", "-t", name)

    def __exit__(self, kind, *_):
        for person in self.people:
            if kind is not None and person.log.exists():
                for line in person.log.read_text(errors="backslashreplace").splitlines()[-8:]:
                    print(f"      {person.name}: {line}")
            person.stop()
        shutil.rmtree(self.folder, ignore_errors=True)


def too_long(signum, frame):
    raise Failure(f"not done within {TEST_SECONDS_MAX} s")


def run(name, test, stage):
    started = time.monotonic()
    signal.alarm(TEST_SECONDS_MAX)
    try:
        test(stage)
    except Skip as reason:
        return "skip", f"{name}: {reason}"
    except Failure as error:
        where = next((f"{pathlib.Path(frame.filename).name}:{frame.lineno}"
                      for frame in reversed(traceback.extract_tb(error.__traceback__))
                      if pathlib.Path(frame.filename).name.startswith("test_")), "")
        return "FAIL", f"{name} at {where}: {error}"
    except Exception:
        return "FAIL", f"{name}: {traceback.format_exc()}"
    finally:
        signal.alarm(0)
    return "ok", f"{name} ({time.monotonic() - started:.1f} s)"


def main():
    signal.signal(signal.SIGALRM, too_long)
    words = sys.argv[1:]
    counts = {"ok": 0, "FAIL": 0, "skip": 0}
    tests = [(key, value) for key, value in vars(test_chat).items() if key.startswith("test_") and callable(value)]
    chosen = [test for test in tests if not words or any(word in test[0] for word in words)]
    try:
        with Tmux() as tmux, Stage(tmux) as stage:
            for key, value in chosen:
                word, line = run("terminal: " + key[5:].replace("_", " "), value, stage)
                counts[word] += 1
                print(f"{word:5} {line}", flush=True)
                if word == "FAIL" and key == "test_begins":
                    break
    except Skip as reason:
        print(f"skip  the chat in a terminal: {reason}")
        counts["skip"] += 1
    print(f"{counts['ok']} passed, {counts['FAIL']} failed, {counts['skip']} skipped")
    return 1 if counts["FAIL"] or not sum(counts.values()) else 0


if __name__ == "__main__":
    isolated(__file__)
    sys.exit(main())
