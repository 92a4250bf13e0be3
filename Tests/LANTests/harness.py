"""Real nodes in network namespaces: what the tests in this folder are written with.

    with Lan(3) as lan:
        ana = lan.node("Ana"); ben = lan.node("Ben")
        ana.join("garden"); ben.join("garden")
        ana.cli("send", "garden", "hello")
        eventually(lambda: "hello" in ben.texts("garden"), within=1, what="Ben has the text")

Nothing here waits for time to pass: only for a condition, with a deadline. Standard library only; needs root.
"""
import ctypes
import http.client
import json
import os
import pathlib
import re
import resource
import shutil
import signal
import socket
import sqlite3
import subprocess
import tempfile
import threading
import urllib.parse

# The tests take these from here.
from conditions import (  # noqa: F401
    CommandError, Failure, Skip, at_once, eventually, expect, seconds_until)

ROOT = pathlib.Path(__file__).resolve().parents[2]
PARLEY = os.environ.get("PARLEY") or str(ROOT / ".build" / "release" / "parley")
LAN_SCRIPT = str(ROOT / "Scripts" / "lan")
# PARLEY_LONG=1 runs what takes minutes at the sizes of the specification.
LONG = os.environ.get("PARLEY_LONG") == "1"
MIB = 1 << 20
GROUP = ("239.255.80.76", 45800)
OUTPUT_ENDED = {}
TEXT_IN_ENTRY = re.compile(rb'"body":"([^"]*)"')


def need_root():
    if os.geteuid() != 0:
        raise Skip("needs root to make network namespaces")
    if resource.getrlimit(resource.RLIMIT_NOFILE)[0] < 8192:
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(16384, hard), hard))


class Lan:
    """Hosts 1…count on one bridge; host i is 10.77.0.i. Everything is ended and removed on leaving the `with`."""

    def __init__(self, count):
        need_root()
        self.count = count
        self.nodes, self.processes = [], []
        self.folder = None

    def __enter__(self):
        # Scripts/lan takes process IDs as names, so that stale LANs are told from live ones; one at a time here.
        self.id = str(os.getpid())
        made = subprocess.run([LAN_SCRIPT, "up", str(self.count), self.id], capture_output=True, text=True)
        if made.returncode != 0:
            if "not permitted" in made.stderr:
                raise Skip("this machine does not permit network namespaces: " + made.stderr.strip())
            raise Failure("cannot make the LAN: " + made.stderr.strip())
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="parley-lan-"))
        return self

    def __exit__(self, kind, error, trace):
        for node in self.nodes:
            if kind is not None and kind is not Skip:
                node.show_log()
            node.kill9()
        for process in self.processes:
            if process.poll() is None:
                process.kill()
                process.wait()
        subprocess.run([LAN_SCRIPT, "down", self.id], check=False)
        shutil.rmtree(self.folder, ignore_errors=True)

    def namespace(self, host):
        return f"parley-{self.id}-{host}"

    def inside(self, host, job):
        """Runs a job with the host's network: sockets that it makes belong there for good."""
        libc = ctypes.CDLL(None, use_errno=True)

        def run():
            # setns(2) with CLONE_NEWNET concerns the calling thread only.
            descriptor = os.open(f"/run/netns/{self.namespace(host)}", os.O_RDONLY | os.O_CLOEXEC)
            try:
                if libc.setns(descriptor, 0x40000000) != 0:
                    raise OSError(ctypes.get_errno(), "setns")
            finally:
                os.close(descriptor)
            return job()

        return at_once(run)[0]

    def node(self, name, host=None, **options):
        """A node, started and ready, on the next free host unless told."""
        node = Node(self, host or len(self.nodes) + 1, name, **options)
        self.nodes.append(node)
        node.start()
        return node

    def on(self, host, *command):
        """Runs a command of the system with the host's network."""
        done = subprocess.run(["ip", "netns", "exec", self.namespace(host), *command], capture_output=True, text=True)
        if done.returncode != 0:
            raise Failure(f"{' '.join(command)}: {done.stderr.strip()}")
        return done.stdout

    def loss(self, percent, *hosts):
        self._script("loss", percent, *hosts)

    def split(self, *hosts):
        """Parts these hosts from the others, for their datagrams and connections alike, until `heal`."""
        self._script("split", *hosts)

    def heal(self):
        self._script("heal")

    def _script(self, *words):
        subprocess.run([LAN_SCRIPT, *map(str, words)], check=True, env={**os.environ, "PARLEY_LAN": self.id})

    def traffic(self, host):
        """Bytes that this host has sent and heard so far, as its network interface counts them."""
        answer = subprocess.run(["ip", "-n", self.namespace(host), "-s", "-j", "link", "show", "eth0"],
                                capture_output=True, check=True)
        counts = json.loads(answer.stdout)[0]["stats64"]
        return counts["tx"]["bytes"], counts["rx"]["bytes"]

    def capture(self):
        return Capture(self)


class Capture:
    """Records what crosses the bridge: `with lan.capture() as capture: …`, then `capture.path`."""

    def __init__(self, lan):
        self.lan, self.path = lan, lan.folder / "capture.pcap"

    def __enter__(self):
        self.process = subprocess.Popen(
            [LAN_SCRIPT, "capture", str(self.path)], stderr=subprocess.PIPE, text=True,
            env={**os.environ, "PARLEY_LAN": self.lan.id})
        self.lan.processes.append(self.process)
        line = self.process.stderr.readline()
        expect("listening on" in line, f"tcpdump does not start: {line}")
        return self

    def __exit__(self, kind, error, trace):
        self.process.send_signal(signal.SIGINT)
        _, self.summary = self.process.communicate(timeout=30)
        if kind is None:
            expect("\n0 packets dropped by kernel" in self.summary, "the capture is incomplete: " + self.summary)


def messages_path(channel):
    return f"/v1/channels/{urllib.parse.quote(channel, safe='')}/messages"


def post(connection, path, text):
    """Says it; returns when `send` or `tell` has returned on the node."""
    connection.request("POST", path, json.dumps({"body": text}), {"Content-Type": "application/json"})
    answer = connection.getresponse()
    body = answer.read()
    expect(answer.status in (201, 202), f"cannot send: {answer.status} {body[:300]}")


class UnixConnection(http.client.HTTPConnection):
    """HTTP over a Unix socket."""

    def __init__(self, path, timeout):
        super().__init__("localhost", timeout=timeout)
        self.path = str(path)

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


class Node:
    """A `parley up` on a host, and the commands of the same home."""

    def __init__(self, lan, host, name, home=None, interface="eth0", options=()):
        self.lan, self.host, self.name = lan, host, name
        # No interface: every one that can be used.
        self.options = [*(["--interface", interface] if interface else []), *options]
        self.home = pathlib.Path(home) if home else lan.folder / f"home{len(lan.nodes) + 1}"
        self.process = None
        self.lines = []
        self.arrived = threading.Condition()
        self.log = lan.folder / f"{self.home.name}.log"

    @property
    def address(self):
        return f"10.77.0.{self.host}"

    def command(self):
        return ["ip", "netns", "exec", self.lan.namespace(self.host), PARLEY, "up", "--home", str(self.home),
                "--name", self.name, *self.options, "--json"]

    def launch(self):
        """Starts the process; `start` waits until it is ready as well."""
        self.lines = []
        with open(self.log, "ab") as log:
            # `ip netns exec` becomes the node, so the process ID is the node's.
            self.process = subprocess.Popen(
                self.command(), stdout=subprocess.PIPE, stderr=log, stdin=subprocess.DEVNULL)
        threading.Thread(target=self._read, args=(self.process, self.lines), daemon=True).start()

    def start(self, within=10):
        self.launch()
        ready = self.wait_line(lambda line: line.get("event") == "ready", within, "is ready")
        self.peer_id, self.api = ready["peer_id"], ready["api"]

    def _read(self, process, lines):
        # Lines of their own for each process: the end of one that was killed is not the end of the next.
        for line in process.stdout:
            with self.arrived:
                lines.append(json.loads(line))
                self.arrived.notify_all()
        process.stdout.close()
        with self.arrived:
            lines.append(OUTPUT_ENDED)
            self.arrived.notify_all()

    def wait_line(self, wanted, within, what):
        with self.arrived:
            found = self.arrived.wait_for(
                lambda: [line for line in self.lines if wanted(line) or line is OUTPUT_ENDED], within)
        if not found or not wanted(found[0]):
            raise Failure(f"{self.name}: not within {within} s: {what}\n{self.log_text()}")
        return found[0]

    def log_text(self):
        return self.log.read_text(errors="backslashreplace")[-2000:] if self.log.exists() else ""

    def show_log(self):
        if text := self.log_text().strip():
            print(f"      {self.name} said on standard error:")
            for line in text.splitlines()[-12:]:
                print("        " + line)

    # Commands

    def run(self, *arguments, input=None, timeout=60, json_lines=True, folder=None):
        """The command as a finished process, whatever its status; `folder` is where it runs."""
        arguments = [*arguments, "--home", str(self.home), *(["--json"] if json_lines else [])]
        if isinstance(input, str):
            input = input.encode()
        return subprocess.run(
            [PARLEY, *arguments], input=input, stdin=subprocess.DEVNULL if input is None else None,
            capture_output=True, timeout=timeout, cwd=folder)

    def cli(self, *arguments, input=None, timeout=60, folder=None):
        """The objects that the command prints; CommandError unless it succeeds."""
        done = self.run(*arguments, input=input, timeout=timeout, folder=folder)
        if done.returncode != 0:
            raise CommandError(arguments, done.returncode, done.stdout.decode(errors="backslashreplace"),
                               done.stderr.decode(errors="backslashreplace"))
        return [json.loads(line) for line in done.stdout.splitlines() if line.strip()]

    def refused(self, status, *arguments, input=None, timeout=60):
        """The message of a command that must fail with this exit status."""
        done = self.run(*arguments, input=input, timeout=timeout)
        message = done.stderr.decode(errors="backslashreplace")
        expect(done.returncode == status,
               f"parley {arguments[0]} ended with {done.returncode}, not {status}: {message} {done.stdout[:300]}")
        expect(message.strip(), f"parley {arguments[0]} failed without a message")
        return message

    def join(self, channel, passphrase=None):
        if passphrase is None:
            return self.cli("join", channel, "--open")
        path = self.home.parent / f"{self.home.name}.passphrase"
        path.write_text(passphrase)
        path.chmod(0o600)
        return self.cli("join", channel, "--passphrase-file", str(path))

    def members(self, channel):
        """By PeerID."""
        rows = self.cli("members", channel)
        found = {row["peer_id"]: row for row in rows}
        expect(len(found) == len(rows), f"{self.name} shows a member twice")
        return found

    def online(self, channel):
        return {row["display_name"] for row in self.members(channel).values() if row["status"] == "online"}

    def offline(self, channel):
        return {row["display_name"] for row in self.members(channel).values() if row["status"] == "offline"}

    def history(self, channel, limit=1000):
        return self.cli("history", channel, "--limit", str(limit))

    def texts(self, channel, limit=1000):
        return [row["body"] for row in self.history(channel, limit) if row.get("type") == "text"]

    def share(self, channel, *paths, kind=None):
        rows = self.cli("share", channel, *map(str, paths), *(["--as", kind] if kind else []), timeout=300)
        return [row["media_id"] for row in rows if "media_id" in row]

    def download(self, media, path=None, force=False, timeout=300, folder=None):
        """The path of the file; without `path`, under the sender's name made safe, in `folder`."""
        rows = self.cli("download", media, *(["-o", str(path)] if path else []), *(["--force"] if force else []),
                        timeout=timeout, folder=folder)
        return pathlib.Path(folder or ".") / [row["path"] for row in rows if row.get("path")][-1]

    def api_socket(self):
        """Of the local API, as `curl --unix-socket` takes it."""
        return next(path for path in self.home.rglob("*") if path.is_socket())

    def send_many(self, channel, texts):
        """Over one connection to the local API: ten thousand commands would measure the starting of processes."""
        connection = UnixConnection(self.home / "api.sock", timeout=60)
        for text in texts:
            post(connection, messages_path(channel), text)
        connection.close()

    def latest(self, channel, limit=1):
        """The last texts in the channel's order, by the local API and without a command's process: for polling."""
        connection = UnixConnection(self.home / "api.sock", timeout=60)
        connection.request("GET", f"{messages_path(channel)}?limit={limit}")
        answer = connection.getresponse()
        body = answer.read()
        connection.close()
        expect(answer.status == 200, f"{self.name} gives no history: {answer.status} {body[:300]}")
        return [row["body"] for row in json.loads(body) if row.get("type") == "text"]

    def latest_or_none(self, channel, limit):
        """As `latest`; None while the node, which has just started, is not in the channel yet."""
        try:
            return self.latest(channel, limit)
        except Failure as failure:
            if "not_in_channel" not in str(failure):
                raise
            return None

    def stored(self):
        """The texts in the channel's order with each one's place (log and number), of all that a node which has ended
        has on its disk: longer than any answer of the API."""
        rows = self.rows("SELECT instance, number, bytes FROM entries WHERE hidden = 0"
                         " ORDER BY lamport, author, instance, number")
        # A message's JSON stands in its entry as it was written.
        return [(f"{instance.hex()}:{number}", text.decode())
                for instance, number, entry in rows for text in TEXT_IN_ENTRY.findall(entry)]

    def told(self):
        """The texts that others told a node which has ended, as they came."""
        rows = self.rows("SELECT json FROM peer_messages WHERE own = 0 ORDER BY cursor")
        return [json.loads(text)["body"] for (text,) in rows]

    def rows(self, query):
        """Of the store of a node that has ended."""
        database = sqlite3.connect(self.home / "store.sqlite")
        rows = database.execute(query).fetchall()
        database.close()
        return rows

    def watch(self, channel=None):
        return Watch(self, channel)

    # The process

    def kill9(self):
        """Ends it without goodbye."""
        if self.process and self.process.poll() is None:
            self.process.kill()
            self.process.wait()

    def stop(self, within=10):
        """SIGTERM: leaves properly."""
        self.process.terminate()
        try:
            status = self.process.wait(within)
        except subprocess.TimeoutExpired:
            raise Failure(f"{self.name} does not end within {within} s of SIGTERM") from None
        expect(status == 0, f"{self.name} ended with status {status} after SIGTERM")

    def signal(self, number):
        self.process.send_signal(number)

    def expect_alive(self):
        expect(self.process.poll() is None, f"{self.name} is gone (status {self.process.poll()})\n{self.log_text()}")

    def _status_kilobytes(self, field):
        for line in pathlib.Path(f"/proc/{self.process.pid}/status").read_text().splitlines():
            if line.startswith(field + ":"):
                return int(line.split()[1])
        raise Failure(f"no {field} of {self.name}: it is gone")

    def resident_mib(self):
        return self._status_kilobytes("VmRSS") / 1024

    def reset_peak(self):
        """From here on `peak_mib` is new (proc(5), clear_refs)."""
        pathlib.Path(f"/proc/{self.process.pid}/clear_refs").write_text("5")

    def peak_mib(self):
        return self._status_kilobytes("VmHWM") / 1024

    def cpu_seconds(self):
        # The scheduler's nanoseconds: the ticks of /proc/PID/stat are as long as an idle node works in half a minute.
        tasks = pathlib.Path(f"/proc/{self.process.pid}/task").iterdir()
        return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / 1e9

    def kept_waiting_seconds(self):
        """How long the thread that has worked most was ready to run and had no processor (schedstat's second figure):
        what other work on this machine has cost it."""
        tasks = pathlib.Path(f"/proc/{self.process.pid}/task").iterdir()
        return max([int(word) for word in (task / "schedstat").read_text().split()[:2]] for task in tasks)[1] / 1e9

    def _ports(self, table, state):
        ports = set()
        for name in (table, table + "6"):
            # Seen through the process, these are its namespace's sockets, and it is alone there.
            for line in pathlib.Path(f"/proc/{self.process.pid}/net/{name}").read_text().splitlines()[1:]:
                fields = line.split()
                if fields[3] == state:
                    ports.add(int(fields[1].rpartition(":")[2], 16))
        return ports

    def tcp_port(self):
        return self.cli("status")[0]["tcp_port"]

    def udp_ports(self):
        """Of its unicast sockets."""
        return self._ports("udp", "07") - {GROUP[1]}


class Watch:
    """`parley watch` followed in a thread: `with node.watch("garden") as watch: …`."""

    def __init__(self, node, channel):
        self.node, self.channel = node, channel
        self.events = []
        self.arrived = threading.Condition()

    def __enter__(self):
        self.process = subprocess.Popen(
            [PARLEY, "watch", *([self.channel] if self.channel else []), "--home", str(self.node.home), "--json"],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
        self.node.lan.processes.append(self.process)
        threading.Thread(target=self._read, daemon=True).start()
        return self

    def _read(self):
        for line in self.process.stdout:
            event = json.loads(line)
            with self.arrived:
                # An event's members stand beside its type, or in `data`.
                self.events.append({**event, **(event["data"] if isinstance(event.get("data"), dict) else {})})
                self.arrived.notify_all()

    def wait(self, wanted, within, what):
        """The first event, past or to come, that is wanted."""
        with self.arrived:
            found = self.arrived.wait_for(lambda: [event for event in self.events if wanted(event)], within)
        if not found:
            raise Failure(f"{self.node.name} watches: not within {within} s: {what}; seen: {self.events[-5:]}")
        return found[0]

    def __exit__(self, kind, error, trace):
        self.process.send_signal(signal.SIGINT)
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise Failure("parley watch does not end on SIGINT") from None
