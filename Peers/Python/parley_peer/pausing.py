"""Time as this peer needs it: monotonic seconds, and waiting that something can cut short."""
import asyncio
import time

now = time.monotonic


async def pause(seconds, until=None):
    """Waits; an event that is set, or becomes set, ends it early. Whether it was set."""
    until = until or asyncio.Event()
    try:
        await asyncio.wait_for(until.wait(), max(0, seconds))
        return True
    except asyncio.TimeoutError:
        return False


class Tasks:
    """Tasks that end with whoever started them; an error of one is told, not swallowed."""

    def __init__(self, trouble):
        self.running, self.trouble = set(), trouble

    def start(self, job):
        task = asyncio.get_running_loop().create_task(job)
        self.running.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task):
        self.running.discard(task)
        if not task.cancelled() and task.exception() is not None:
            self.trouble(task.exception())

    async def end(self):
        """One that was woken at this very moment may not notice that it is to end (before Python 3.12): told again."""
        here = [task for task in self.running if task is not asyncio.current_task()]
        while here:
            for task in here:
                task.cancel()
            await asyncio.wait(here, timeout=1)
            here = [task for task in here if not task.done()]
