#!/usr/bin/env python3
"""Runs the tests of the local API against real nodes, or those whose name contains one of the arguments; the last line
is "N passed, N failed, N skipped". PARLEY: the command to test (.build/release/parley); PARLEY_API_MESSAGES (20000),
PARLEY_API_UPLOAD_MB (4295), PARLEY_API_EXAMPLES (20 an address): how much.

All of it runs in a network namespace with nothing but loopback, where that is permitted."""
import os
import pathlib
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
os.environ.setdefault("PARLEY", str(ROOT / ".build" / "release" / "parley"))
import test_api  # noqa: E402
from conditions import Failure, Skip  # noqa: E402
from run_isolated import isolated  # noqa: E402
from stage import Person  # noqa: E402

PACKAGE = "schemathesis==4.32.5"
TEST_SECONDS_MAX = int(os.environ.get("PARLEY_TEST_SECONDS") or 300)


class Stage:
    def __init__(self):
        self.people = []

    def __enter__(self):
        if not os.access(os.environ["PARLEY"], os.X_OK):
            raise Failure(f"there is no {os.environ['PARLEY']}: build it first")
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="parley-api-"))
        return self

    def person(self, name):
        person = Person(self, name)
        person.start()
        return person

    def __exit__(self, *_):
        for person in self.people:
            person.stop()
        shutil.rmtree(self.folder, ignore_errors=True)


def fetch():
    """Puts schemathesis into an environment of its own, unless it is there; says why not."""
    known = shutil.which("schemathesis")
    home = ROOT / ".build" / "schemathesis"
    if not known and not (home / "bin" / "schemathesis").exists():
        for command in [[sys.executable, "-m", "venv", str(home)],
                        [str(home / "bin" / "python"), "-m", "pip", "--quiet", "install", PACKAGE]]:
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode != 0:
                shutil.rmtree(home, ignore_errors=True)
                return (done.stderr.strip().splitlines() or ["no reason given"])[-1]
    os.environ["PARLEY_SCHEMATHESIS"] = known or str(home / "bin" / "schemathesis")
    return None


def too_long(signum, frame):
    raise Failure(f"not done within {TEST_SECONDS_MAX} s")


def run(name, test, stage):
    started = time.monotonic()
    signal.alarm(TEST_SECONDS_MAX)
    try:
        figure = test(stage)
    except Skip as reason:
        return "skip", f"{name}: {reason}"
    except Failure as error:
        return "FAIL", f"{name}: {error}"
    except Exception:
        return "FAIL", f"{name}: {traceback.format_exc()}"
    finally:
        signal.alarm(0)
    return "ok", f"{name} ({time.monotonic() - started:.1f} s)" + (f": {figure}" if figure else "")


def main():
    signal.signal(signal.SIGALRM, too_long)
    words = sys.argv[1:]
    counts = {"ok": 0, "FAIL": 0, "skip": 0}
    tests = [(key, value) for key, value in vars(test_api).items() if key.startswith("test_") and callable(value)]
    with Stage() as stage:
        for key, test in tests:
            # The first makes the node that the others ask.
            if words and not stage.people and not any(word in key for word in words):
                continue
            if words and not any(word in key for word in words):
                continue
            word, line = run("api: " + key[5:].replace("_", " "), test, stage)
            counts[word] += 1
            print(f"{word:5} {line}", flush=True)
    print(f"{counts['ok']} passed, {counts['FAIL']} failed, {counts['skip']} skipped")
    return 1 if counts["FAIL"] or not sum(counts.values()) else 0


if __name__ == "__main__":
    if not os.environ.get("PARLEY_ISOLATED") and (trouble := fetch()):
        print(f"      schemathesis cannot be fetched: {trouble}")
    isolated(__file__)
    sys.exit(main())
