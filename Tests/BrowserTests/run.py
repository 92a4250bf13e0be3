#!/usr/bin/env python3
"""Runs the tests of the page in Chromium, or those whose name contains one of the arguments; the last line is
"N passed, N failed, N skipped". They build on one another: two people are in a channel after the first.
PARLEY: the command to test (.build/release/parley); PARLEY_SCREENSHOTS: where pictures go (.build/screenshots);
PARLEY_BROWSER_FILE_MB (200), PARLEY_BROWSER_MESSAGES (100000): sizes of what is shared and of the long channel.

All of it runs in a network namespace with nothing but loopback, where that is permitted."""
import os
import pathlib
import signal
import sys
import time
import traceback

HERE = pathlib.Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "LANTests")]
import test_looks  # noqa: E402
import test_more  # noqa: E402
import test_page  # noqa: E402
import test_speed  # noqa: E402
from conditions import Failure, Skip  # noqa: E402
from run_isolated import isolated  # noqa: E402
from stage import Stage  # noqa: E402
from webdriver import Driver  # noqa: E402

MODULES = [test_page, test_more, test_looks, test_speed]
TEST_SECONDS_MAX = int(os.environ.get("PARLEY_TEST_SECONDS") or 300)


def too_long(signum, frame):
    raise Failure(f"not done within {TEST_SECONDS_MAX} s")


def stop(signum, frame):
    raise KeyboardInterrupt


def run(name, test, stage):
    started = time.monotonic()
    signal.alarm(TEST_SECONDS_MAX)
    try:
        figure = test(stage)
    except Skip as reason:
        return "skip", f"{name}: {reason}"
    except Failure as error:
        place = traceback.extract_tb(error.__traceback__)
        where = next((f"{pathlib.Path(frame.filename).name}:{frame.lineno}" for frame in reversed(place)
                      if pathlib.Path(frame.filename).name.startswith("test_")), "")
        for person in stage.people:
            try:
                if person.browser and person.browser.is_open:
                    person.shot("failed-" + "".join(filter(str.isalnum, f"{name}-{person.name}"))[:60])
                    # What was left open does not stand in the way of the next.
                    person.browser.run("for (const dialog of document.querySelectorAll('dialog')) dialog.close()")
            except (Failure, OSError):
                pass
        return "FAIL", f"{name} at {where}: {error}"
    except Exception:
        return "FAIL", f"{name}: {traceback.format_exc()}"
    finally:
        signal.alarm(0)
    return "ok", f"{name} ({time.monotonic() - started:.1f} s)" + (f": {figure}" if figure else "")


def main():
    signal.signal(signal.SIGALRM, too_long)
    signal.signal(signal.SIGTERM, stop)
    words = sys.argv[1:]
    counts = {"ok": 0, "FAIL": 0, "skip": 0}
    tests = [(module.__name__, key, value) for module in MODULES for key, value in vars(module).items()
             if key.startswith("test_") and callable(value)]
    chosen = [test for test in tests if not words or any(word in f"{test[0]}.{test[1]}" for word in words)]
    try:
        with Driver() as driver, Stage(driver) as stage:
            for module, key, test in chosen:
                word, line = run(f"{module[5:]}: {key[5:].replace('_', ' ')}", test, stage)
                counts[word] += 1
                print(f"{word:5} {line}", flush=True)
                if word == "FAIL" and key == "test_join_and_talk":
                    break
    except Skip as reason:
        print(f"skip  the page in a browser: {reason}")
        counts["skip"] += 1
    print(f"{counts['ok']} passed, {counts['FAIL']} failed, {counts['skip']} skipped")
    return 1 if counts["FAIL"] or not sum(counts.values()) else 0


if __name__ == "__main__":
    if trouble := test_looks.fetch() if not os.environ.get("PARLEY_ISOLATED") else None:
        print(f"      axe-core cannot be fetched: {trouble}")
    isolated(__file__)
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
