"""Waiting for conditions, and what a test can end with."""
import threading
import time


class Failure(AssertionError):
    """What a test expected did not happen."""


class Skip(Exception):
    """This machine cannot run the test; says why."""


class CommandError(Exception):
    def __init__(self, arguments, status, output, errors):
        super().__init__(f"parley {' '.join(arguments)}: exit status {status}: {errors.strip() or output.strip()}")
        self.status, self.output, self.errors = status, output, errors


def expect(condition, text):
    if not condition:
        raise Failure(text)


def eventually(condition, within, what, every=0.02):
    """Polls until the condition holds; returns what it gave. Its last value or error is in the failure."""
    pause = threading.Event()
    deadline = time.monotonic() + within
    while True:
        try:
            last = condition()
            if last:
                return last
        except CommandError as error:
            last = error
        if time.monotonic() > deadline:
            raise Failure(f"not within {within} s: {what} (last: {str(last)[:500]})")
        pause.wait(every)


def seconds_until(condition, limit, what, since=None, every=0.02):
    """How long it took until the condition held, at most `limit` since `since` (a monotonic time; now)."""
    start = time.monotonic() if since is None else since
    eventually(condition, max(0, limit - (time.monotonic() - start)), what, every)
    took = time.monotonic() - start
    expect(took <= limit, f"{what} took {took:.2f} s; the limit is {limit} s")
    return took


def at_once(*jobs):
    """Runs the jobs in threads; returns their results in order, or raises the first error."""
    results, errors = [None] * len(jobs), []

    def run(index, job):
        try:
            results[index] = job()
        except BaseException as error:  # handed on to the caller below
            errors.append(error)

    threads = [threading.Thread(target=run, args=pair, daemon=True) for pair in enumerate(jobs)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    return results
