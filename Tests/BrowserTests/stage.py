"""Two nodes on this machine's loopback interface and a page open at each, for the tests in this folder."""
import http.client
import json
import os
import pathlib
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import threading
import urllib.parse
import zlib

from conditions import CommandError, Failure, eventually, expect

ROOT = pathlib.Path(__file__).resolve().parents[2]
PARLEY = os.environ.get("PARLEY") or str(ROOT / ".build" / "release" / "parley")
# Where pictures of the pages go, for people to look at.
SHOTS = pathlib.Path(os.environ.get("PARLEY_SCREENSHOTS") or ROOT / ".build" / "screenshots")


class UnixConnection(http.client.HTTPConnection):
    """HTTP over a Unix socket."""

    def __init__(self, path, timeout=60):
        super().__init__("localhost", timeout=timeout)
        self.path = str(path)

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


class Person:
    """A node with its home, and the browser that has its page open."""

    def __init__(self, stage, name, **window):
        self.stage, self.name, self.window = stage, name, window
        self.home = stage.folder / f"home{len(stage.people)}"
        self.downloads = stage.folder / f"downloads{len(stage.people)}"
        self.log = stage.folder / f"{self.home.name}.log"
        self.process = None
        self.browser = None
        # Further options of parley up, and what its environment has besides.
        self.options = []
        self.environment = {}
        stage.people.append(self)

    def start(self):
        """Returns once the node is ready."""
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                [PARLEY, "up", "--home", str(self.home), "--name", self.name, "--interface", "lo", "--json",
                 "--downloads", str(self.downloads), *self.options], env={**os.environ, **self.environment},
                stdout=subprocess.PIPE, stderr=log, stdin=subprocess.DEVNULL)
        watchdog = threading.Timer(30, self.process.kill)
        watchdog.start()
        line = self.process.stdout.readline()
        watchdog.cancel()
        if not line:
            raise Failure(f"{self.name}'s node did not start: {self.log.read_text()[-500:]}")
        self.peer_id = json.loads(line)["peer_id"]
        threading.Thread(target=self.process.stdout.read, daemon=True).start()

    def stop(self):
        if self.process and self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(timeout=20)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()

    def cli(self, *arguments):
        done = subprocess.run([PARLEY, *arguments, "--home", str(self.home), "--json"], capture_output=True,
                              text=True, timeout=120)
        if done.returncode != 0:
            raise CommandError(arguments, done.returncode, done.stdout, done.stderr)
        return [json.loads(line) for line in done.stdout.splitlines() if line.strip()]

    def call(self, method, path, body=None):
        """By the Unix socket: status and answer."""
        connection = UnixConnection(self.home / "api.sock")
        connection.request(method, path, None if body is None else json.dumps(body))
        answer = connection.getresponse()
        text = answer.read()
        connection.close()
        return answer.status, json.loads(text)

    @property
    def address(self):
        return self.call("GET", "/v1/page")[1]["address"]

    @property
    def port(self):
        return urllib.parse.urlsplit(self.address).port

    def open_page(self):
        self.browser = self.browser or self.stage.driver.browser(**self.window)
        self.browser.open(self.address)
        self.browser.wait(".sidebar")

    def join(self, channel, passphrase=None):
        """At the page."""
        page = self.browser
        page.one("button", "Join a channel").click()
        page.one("#join-name").type(channel)
        if passphrase is not None:
            page.one("label", "With a passphrase").click()
            page.one("#join-passphrase").type(passphrase)
        page.one("dialog button[type=submit]").click()
        page.gone("dialog")
        page.wait("h1", channel)

    def say(self, text):
        page = self.browser
        page.one("#message").type(text)
        page.one("button[type=submit]", "Send").click()

    def sees(self, text, within=20):
        self.browser.wait(".row .text", text, within)

    def shot(self, name):
        self.browser.screenshot(SHOTS / f"{name}.png")


class Stage:
    def __init__(self, driver):
        self.driver = driver
        self.people = []

    def __enter__(self):
        if not os.access(PARLEY, os.X_OK):
            raise Failure(f"there is no {PARLEY}: build it first")
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="parley-page-"))
        return self

    def __exit__(self, kind, *_):
        for person in self.people:
            if kind is not None and person.log.exists():
                for line in person.log.read_text(errors="backslashreplace").splitlines()[-8:]:
                    print(f"      {person.name}: {line}")
            person.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def person(self, name, **window):
        person = Person(self, name, **window)
        person.start()
        person.open_page()
        return person


def picture(path, side=900):
    """A PNG of this many dots a side: a sunset."""
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = b"".join(b"\0" + bytes((255 - 200 * y // side, 128 - 100 * y // side, 60 + 120 * y // side)) * side
                    for y in range(side))
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0))
                     + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))
    return path


def request(port, path="/", method="GET", headers=None, body=None):
    """Plain HTTP to a page's port, with just these headers: status, headers and body."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
    for name, value in (headers or {}).items():
        connection.putheader(name, value)
    if body is not None:
        connection.putheader("Content-Length", str(len(body)))
    connection.endheaders(body)
    answer = connection.getresponse()
    text = answer.read()
    connection.close()
    return answer.status, answer.headers, text


__all__ = ["Person", "Stage", "eventually", "expect", "picture", "request", "PARLEY", "SHOTS", "ROOT"]
