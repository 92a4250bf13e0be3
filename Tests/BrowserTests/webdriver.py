"""A browser, driven over WebDriver (W3C), with Python's standard library: what the tests in this folder need of it."""
import base64
import http.client
import json
import pathlib
import shutil
import socket
import subprocess
import tempfile

from conditions import Failure, Skip, eventually

ELEMENT = "element-6066-11e4-a52e-4f735466cecf"
# Nothing that Chromium does by itself may leave the machine.
QUIET = ["--disable-background-networking", "--disable-component-update", "--disable-sync", "--no-first-run",
         "--disable-default-apps", "--no-default-browser-check", "--disable-domain-reliability",
         "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1 , EXCLUDE localhost , EXCLUDE *.example"]
KEYS = {"Enter": "\ue007", "Escape": "\ue00c", "Tab": "\ue004", "Shift": "\ue008", "Alt": "\ue00a",
        "Control": "\ue009", "ArrowUp": "\ue013", "ArrowDown": "\ue015", "Home": "\ue011", "End": "\ue010",
        "PageUp": "\ue00e", "Space": " "}


class DriverError(Failure):
    """What the driver answers when a command fails."""

    def __init__(self, what, answer):
        super().__init__(f"{what}: {answer.get('error')}: {str(answer.get('message'))[:400]}")
        self.code = answer.get("error")


class Driver:
    """chromedriver, and the browsers it has started; all of it ends with the `with`."""

    def __init__(self):
        self.program = shutil.which("chromedriver")
        if not self.program or not (shutil.which("chromium") or shutil.which("chromium-browser")):
            raise Skip("needs chromium and chromium-driver")
        self.browsers = []

    def __enter__(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="parley-browser-"))
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.process = subprocess.Popen(
            [self.program, f"--port={self.port}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": str(self.folder), "LANG": "C.UTF-8",
                 "TMPDIR": str(self.folder)})
        eventually(lambda: self._answers(), 30, "chromedriver answers")
        return self

    def _answers(self):
        try:
            return self.call("GET", "/status")["ready"]
        except OSError:
            return False

    def __exit__(self, *_):
        for browser in self.browsers:
            browser.close()
        self.process.terminate()
        try:
            self.process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def call(self, method, path, body=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        try:
            connection.request(method, path, None if body is None else json.dumps(body))
            answer = connection.getresponse()
            value = json.loads(answer.read())["value"]
        finally:
            connection.close()
        if answer.status != 200:
            raise DriverError(f"{method} {path}", value)
        return value

    def browser(self, width=1200, height=800, language="en", dark=False, trace=False):
        """`trace`: keeps what Chromium's performance trace has of each page."""
        options = ["--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu",
                   f"--window-size={width},{height}", f"--lang={language}", f"--accept-lang={language}", *QUIET]
        browser = Browser(self, options, trace)
        self.browsers.append(browser)
        browser.emulate(width, height, dark)
        return browser


class Browser:
    """One window with cookies of its own."""

    def __init__(self, driver, options, trace=False):
        self.driver = driver
        chrome = {"args": options}
        logs = {"browser": "ALL"}
        if trace:
            logs["performance"] = "ALL"
            chrome["perfLoggingPrefs"] = {
                "enableNetwork": False, "enablePage": False, "bufferUsageReportingInterval": 60_000,
                "traceCategories": "loading,blink.user_timing,toplevel,devtools.timeline"}
        started = driver.call("POST", "/session", {"capabilities": {"alwaysMatch": {
            "browserName": "chrome", "goog:chromeOptions": chrome, "goog:loggingPrefs": logs,
            "timeouts": {"script": 60_000}}}})
        self.path = f"/session/{started['sessionId']}"
        self.is_open = True

    def close(self):
        if self.is_open:
            self.is_open = False
            self.call("DELETE", "")

    def call(self, method, path, body=None):
        return self.driver.call(method, self.path + path, body)

    def devtools(self, command, **parameters):
        return self.call("POST", "/goog/cdp/execute", {"cmd": command, "params": parameters})

    def emulate(self, width, height, dark=False, reduced=False):
        self.devtools("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1,
                      mobile=False)
        self.devtools("Emulation.setEmulatedMedia", features=[
            {"name": "prefers-color-scheme", "value": "dark" if dark else "light"},
            {"name": "prefers-reduced-motion", "value": "reduce" if reduced else "no-preference"}])

    def open(self, address):
        self.call("POST", "/url", {"url": address})

    @property
    def address(self):
        return self.call("GET", "/url")

    @property
    def title(self):
        return self.call("GET", "/title")

    def run(self, script, *arguments):
        """The value of a function body in the page; promises are waited for."""
        return self.call("POST", "/execute/sync", {"script": script, "args": list(arguments)})

    def all(self, selector):
        found = self.call("POST", "/elements", {"using": "css selector", "value": selector})
        return [Element(self, item[ELEMENT]) for item in found]

    def has(self, selector, text=None):
        """Whether something visible matches, with this text in it."""
        return self.run(
            """return [...document.querySelectorAll(arguments[0])].some((item) => item.checkVisibility()
               && (arguments[1] === null || item.textContent.includes(arguments[1])))""", selector, text)

    def wait(self, selector, text=None, within=20):
        eventually(lambda: self.has(selector, text), within,
                   f"{selector}" + (f" with {text!r}" if text else "") + " is shown", every=0.05)

    def gone(self, selector, text=None, within=20):
        eventually(lambda: not self.has(selector, text), within, f"{selector} {text or ''} is gone", every=0.05)

    def one(self, selector, text=None, within=20):
        """The first visible element that matches and has this text."""
        self.wait(selector, text, within)
        found = self.run(
            """return [...document.querySelectorAll(arguments[0])].find((item) => item.checkVisibility()
               && (arguments[1] === null || item.textContent.includes(arguments[1])))""", selector, text)
        return Element(self, found[ELEMENT], lambda: self.one(selector, text))

    def keys(self, *names):
        """Presses all of these together, in order, and lets go."""
        keys = [KEYS.get(name, name) for name in names]
        actions = [{"type": "keyDown", "value": key} for key in keys]
        actions += [{"type": "keyUp", "value": key} for key in reversed(keys)]
        self.call("POST", "/actions", {"actions": [{"type": "key", "id": "keyboard", "actions": actions}]})

    def write(self, text):
        """Types into whatever has the keyboard."""
        for character in text:
            self.keys(character)

    def log(self):
        """What the page has complained of since the last call."""
        return [entry for entry in self.call("POST", "/se/log", {"type": "browser"})
                if entry["level"] in ("SEVERE", "WARNING")]

    def trace(self):
        """The events of the performance trace since the last call."""
        entries = self.call("POST", "/se/log", {"type": "performance"})
        messages = [json.loads(entry["message"])["message"] for entry in entries]
        return [message["params"] for message in messages if message["method"] == "Tracing.dataCollected"]

    def screenshot(self, path):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(base64.b64decode(self.call("GET", "/screenshot")))



class Element:
    def __init__(self, browser, identifier, again=None):
        self.again = again
        self.browser, self.path = browser, f"/element/{identifier}"
        self.reference = {ELEMENT: identifier}

    @property
    def text(self):
        return self.browser.call("GET", self.path + "/text")

    def attribute(self, name):
        return self.browser.call("GET", f"{self.path}/attribute/{name}")

    def click(self):
        try:
            self.browser.call("POST", self.path + "/click", {})
        except DriverError as error:
            # The page showed the same anew between looking and pressing.
            if error.code != "stale element reference" or not self.again:
                raise
            self.again().click()

    def type(self, text):
        self.browser.call("POST", self.path + "/value", {"text": text})

    def clear(self):
        self.browser.call("POST", self.path + "/clear", {})
