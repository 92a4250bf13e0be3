"""A long channel: how soon it is shown, and how it scrolls."""
import json
import os

from conditions import at_once
from stage import Person, UnixConnection, eventually, expect

COUNT = int(os.environ.get("PARLEY_BROWSER_MESSAGES") or 5_000)
# Messages scrolled over, and connections that write at once so that many share a commit.
SCROLLED, WRITERS = min(4_000, COUNT * 3 // 4), 32


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


def test_a_long_channel(stage):
    person = Person(stage, "Ida")
    person.start()
    status, _ = person.call("POST", "/v1/channels", {"name": "archive", "open": True})
    expect(status == 201, "cannot join")
    fill(person, "archive")
    order = [message["body"] for message in person.call("GET", "/v1/channels/archive/messages?limit=10000")[1]]
    person.open_page()
    page = person.browser
    page.wait(".row .text", order[-1], within=60)
    # Once more: the first visit brings the browser's own start with it.
    page.open(page.address)
    page.wait(".row .text", order[-1], within=60)
    paint = page.run("""
      const at = (name) => performance.getEntriesByName(name)[0].startTime
      return { first: at('first-contentful-paint'), shown: at('conversation') }""")
    page.run("""
      window.longTasks = []
      new PerformanceObserver((list) => {
        for (const entry of list.getEntries()) window.longTasks.push(Math.round(entry.duration))
      }).observe({ type: 'longtask' })""")
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
    tasks = page.run("return window.longTasks")
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
    return (f"{COUNT} messages; first paint {paint['first']:.0f} ms, conversation {paint['shown']:.0f} ms; scrolled "
            f"over {SCROLLED} in {result['took'] / 1000:.1f} s and {result['frames']} frames, at most {result['most']} "
            f"elements; tasks above 50 ms: {sorted(tasks, reverse=True)[:8]}")
