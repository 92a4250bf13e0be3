#!/usr/bin/env python3
"""Runs the tests in this folder, or those whose name contains one of the arguments; the last line is
"N passed, N failed, N skipped". PARLEY: the command to test (.build/release/parley); PARLEY_LONG=1: at full size."""
import importlib
import os
import pathlib
import signal
import sys
import time
import traceback

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import harness  # noqa: E402

MODULES = ["test_main_job", "test_secrecy", "test_directed",
           "test_loss", "test_durability", "test_limits", "test_names", "test_hostile",
           "test_members_gone_bad", "test_hostile_holders",
           "test_media", "test_memory", "test_home", "test_disk", "test_interfaces", "test_chat", "test_since",
           "test_network_changes", "test_backpressure", "test_landing", "test_folders",
           "test_downloads", "test_keys", "test_roles", "test_copies", "test_passphrase"]
# Seconds after which a test that waits for something without a deadline is ended.
TEST_SECONDS_MAX = int(os.environ.get("PARLEY_TEST_SECONDS") or (1500 if harness.LONG else 300))


def all_tests():
    for name in MODULES:
        module = importlib.import_module(name)
        for key, value in list(vars(module).items()):
            if key.startswith("test_") and callable(value) and value.__module__ == name:
                yield name, key, value


def too_long(signum, frame):
    raise harness.Failure(f"not done within {TEST_SECONDS_MAX} s")


def stop(signum, frame):
    # As an exception, so that each Lan is removed on the way out.
    raise KeyboardInterrupt


def run(name, test):
    """The word for its end, and a line about it."""
    started = time.monotonic()
    signal.alarm(TEST_SECONDS_MAX)
    try:
        figure = test()
    except harness.Skip as reason:
        return "skip", f"{name}: {reason}"
    except (harness.Failure, harness.CommandError) as error:
        place = traceback.extract_tb(error.__traceback__)
        where = next((f"{pathlib.Path(frame.filename).name}:{frame.lineno}" for frame in reversed(place)
                      if pathlib.Path(frame.filename).name.startswith("test_")), "")
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
    if not os.access(harness.PARLEY, os.X_OK):
        print(f"there is no {harness.PARLEY}: build it first (Scripts/test lan does)", file=sys.stderr)
        return 66
    for module, name, test in all_tests():
        if words and not any(word in f"{module}.{name}" for word in words):
            continue
        word, line = run(f"{module.removeprefix('test_')}: {name.removeprefix('test_').replace('_', ' ')}", test)
        counts[word] += 1
        print(f"{word:5} {line}", flush=True)
    print(f"{counts['ok']} passed, {counts['FAIL']} failed, {counts['skip']} skipped")
    return 1 if counts["FAIL"] or not sum(counts.values()) else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
