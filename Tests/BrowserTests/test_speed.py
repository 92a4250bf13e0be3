"""A long channel: how soon it is shown, and how it scrolls, as Chromium's performance trace has it."""
import json
import os

from conditions import at_once
from stage import Person, UnixConnection, eventually, expect

COUNT = int(os.environ.get("PARLEY_BROWSER_MESSAGES") or 100_000)
# Messages scrolled over, and connections that write at once so that many share a commit.
SCROLLED, WRITERS = min(4_000, COUNT * 3 // 4), 32
# Milliseconds. What the product promises, and what a test on a slow, busy machine takes for broken.
PAINT_GOAL, PAINT_MAX = 500, 3_000
TASK_GOAL, TASK_MAX = 100, 600


def fill(person, channel):
    def write(first):
        connection = UnixConnection(person.home / "api.sock")
        for number in range(first, COUNT, WRITERS):
            connection.request("POST", f"/v1/channels/{channel}/messages",
                               json.dumps({"body": f"message {number} about something of a line or even two"}))
            answer = connection.getresponse()
            body = answer.read()
            expect(answer.status == 201, f"message {number}: {answer.status} {body[:200]}")
        connection.close()

    at_once(*[lambda first=first: write(first) for first in range(WRITERS)])


def main_thread(events):
    """Process and thread in which the page ran."""
    ends = [event for event in events if event["name"] == "firstContentfulPaint"]
    expect(ends, "the trace has no first paint")
    return ends[-1]["pid"], ends[-1]["tid"]


def paints(events):
    """Milliseconds from the beginning of the last navigation to its first paint and to the conversation."""
    pid, _ = main_thread(events)
    of = [event for event in events if event["pid"] == pid]
    start = max(event["ts"] for event in of if event["name"] == "navigationStart")
    def after(name):
        return min(event["ts"] for event in of if event["name"] == name and event["ts"] > start) - start
    return after("firstContentfulPaint") / 1_000, after("conversation") / 1_000


def tasks(events, thread):
    """Milliseconds of the tasks of the page's thread, longest first."""
    return sorted((event["dur"] / 1_000 for event in events
                   if (event["pid"], event["tid"]) == thread and event.get("ph") == "X"
                   and event["name"].endswith("RunTask")), reverse=True)


def test_a_long_channel(stage):
    person = Person(stage, "Ida", trace=True)
    person.start()
    status, _ = person.call("POST", "/v1/channels", {"name": "archive", "open": True})
    expect(status == 201, "cannot join")
    fill(person, "archive")
    order = [message["body"] for message in person.call("GET", "/v1/channels/archive/messages?limit=10000")[1]]
    person.open_page()
    page = person.browser
    page.wait(".row .text", order[-1], within=60)
    # Once more: the first visit brings the browser's own start with it.
    page.trace()
    page.open(page.address)
    page.wait(".row .text", order[-1], within=60)
    events = page.trace()
    paint, shown = paints(events)
    thread = main_thread(events)
    result = page.run("""
      const [goal, limit] = arguments
      const scroller = document.querySelector('.timeline')
      const firstText = () => document.querySelector('.timeline .text')?.textContent
      const start = performance.now()
      let most = 0
      let frames = 0
      return new Promise((resolve) => {
        const step = () => {
          scroller.scrollTop -= 700
          frames += 1
          most = Math.max(most, document.querySelectorAll('.timeline *').length)
          const isThere = [...document.querySelectorAll('.timeline .text')].some((item) => item.textContent === goal)
          const took = performance.now() - start
          if (isThere || took > limit) resolve({ isThere, most, frames, took, first: firstText() })
          else requestAnimationFrame(step)
        }
        step()
      })""", order[-SCROLLED], 40_000)
    longest = tasks(page.trace(), thread)
    expect(result["isThere"], f"scrolling came to {result['first']} only")
    expect(result["most"] < 3_000, f"{result['most']} elements were in the document")
    shown = page.run("return [...document.querySelectorAll('.timeline .text')].map((item) => item.textContent)")
    at = order.index(shown[0])
    expect(shown == order[at:at + len(shown)], "messages are missing, twice or out of order")
    person.shot("30-archive")
    eventually(lambda: page.has(".to-end"), 5, "the way back is shown")
    page.one(".to-end").click()
    page.wait(".row .text", order[-1])
    page.close()
    person.stop()
    expect(longest, "the trace has no tasks")
    expect(paint < PAINT_MAX and shown < PAINT_MAX, f"first paint after {paint:.0f} ms, all after {shown:.0f} ms")
    expect(longest[0] < TASK_MAX, f"scrolling took a task of {longest[0]:.0f} ms")
    is_met = max(paint, shown) < PAINT_GOAL and longest[0] < TASK_GOAL
    return (f"{COUNT} messages; first paint {paint:.0f} ms, conversation {shown:.0f} ms (goal {PAINT_GOAL}); scrolled "
            f"over {SCROLLED} in {result['took'] / 1000:.1f} s and {result['frames']} frames, at most {result['most']} "
            f"elements; longest tasks {', '.join(f'{task:.0f}' for task in longest[:5])} ms (goal {TASK_GOAL}): "
            + ("met" if is_met else "NOT met"))
