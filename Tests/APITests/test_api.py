"""The local API under load, and against its own description."""
import http.client
import json
import os
import pathlib
import re
import socket
import socketserver
import statistics
import subprocess
import threading
import time

from conditions import Skip, at_once, eventually, expect
from stage import UnixConnection

STREAMS, MESSAGES, WRITERS = 50, int(os.environ.get("PARLEY_API_MESSAGES") or 20_000), 16
UPLOAD_BYTES = int(os.environ.get("PARLEY_API_UPLOAD_MB") or 4_295) * 1_000_000
PADDING = "x" * 1_000


def memory(person):
    """Bytes: what the process has for itself now (no file's pages)."""
    status = pathlib.Path(f"/proc/{person.process.pid}/status").read_text()
    return int(re.search(r"RssAnon:\s+(\d+)", status)[1]) * 1_024


class MemoryWatch:
    """The most that a process had while the `with` lasted."""

    def __init__(self, person):
        self.person, self.most, self.end = person, 0, threading.Event()

    def __enter__(self):
        self.before = memory(self.person)
        self.thread = threading.Thread(target=self.look, daemon=True)
        self.thread.start()
        return self

    def look(self):
        while not self.end.wait(0.01):
            self.most = max(self.most, memory(self.person))

    def __exit__(self, *_):
        self.end.set()
        self.thread.join()

    @property
    def added(self):
        return max(0, self.most - self.before)


class Reader:
    """Reads an event stream in a thread of its own: when each message came."""

    def __init__(self, person):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(str(person.home / "api.sock"))
        self.socket.sendall(b"GET /v1/events HTTP/1.0\r\nHost: parley\r\n\r\n")
        self.file = self.socket.makefile("rb")
        self.came = {}
        self.ids = []

    # HTTP/1.0, so that no lengths of chunks stand between the lines.
    def until_listening(self):
        for line in self.file:
            if line.strip() == b":listening":
                return

    def read(self, last):
        for line in self.file:
            if line.startswith(b"data: ") and b'"message_id"' in line and b'"body"' in line:
                number = int(json.loads(line[6:])["body"].split()[0])
                self.came[number] = time.monotonic()
                self.ids.append(number)
                if len(self.ids) == last:
                    return

    def close(self):
        self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()


def write(person, count, sent):
    def some(first):
        connection = UnixConnection(person.home / "api.sock")
        for number in range(first, count, WRITERS):
            sent[number] = time.monotonic()
            connection.request("POST", "/v1/channels/streams/messages", json.dumps({"body": f"{number} {PADDING}"}))
            answer = connection.getresponse()
            body = answer.read()
            expect(answer.status == 201, f"message {number}: {answer.status} {body[:200]}")
        connection.close()

    at_once(*[lambda first=first: some(first) for first in range(WRITERS)])


def test_fifty_event_streams_one_of_which_is_not_read(stage):
    person = stage.person("Ana")
    person.call("POST", "/v1/channels", {"name": "streams", "open": True})
    readers = [Reader(person) for _ in range(STREAMS)]
    for reader in readers:
        reader.until_listening()
    stuck, others = readers[0], readers[1:]
    threads = [threading.Thread(target=reader.read, args=(MESSAGES,), daemon=True) for reader in others]
    for thread in threads:
        thread.start()
    sent = {}
    with MemoryWatch(person) as watch:
        write(person, MESSAGES, sent)
        for thread in threads:
            thread.join(timeout=60)
    for reader in others:
        expect(len(reader.ids) == MESSAGES and len(set(reader.ids)) == MESSAGES,
               f"a stream has {len(reader.ids)} messages, {len(set(reader.ids))} different ones, of {MESSAGES}")
    delays = sorted(reader.came[number] - sent[number] for reader in others for number in range(MESSAGES))
    # What one stream is not read holds a mebibyte at most; the rest is what messages take on their way.
    expect(watch.added < 96_000_000, f"the node took {watch.added / 1e6:.0f} MB more")
    expect(delays[-1] < 15, f"a message came after {delays[-1]:.1f} s")
    # And it misses nothing when it is read after all.
    stuck.socket.settimeout(60)
    stuck.read(MESSAGES)
    expect(sorted(stuck.ids) == list(range(MESSAGES)), "the stream that was not read misses messages")
    for reader in readers:
        reader.close()
    eventually(lambda: "parley_event_streams 0" in metrics(person), 20, "the streams are closed")
    return (f"{MESSAGES} messages of 1 kB to {STREAMS} streams: {watch.added / 1e6:.1f} MB more at most; from sending "
            f"to a reader's hands: median {statistics.median(delays) * 1e3:.0f} ms, 99 % within "
            f"{delays[len(delays) * 99 // 100] * 1e3:.0f} ms, all within {delays[-1] * 1e3:.0f} ms")


def test_a_large_upload_stays_out_of_memory(stage):
    person = stage.people[0]
    free = os.statvfs(stage.folder)
    if free.f_bavail * free.f_frsize < UPLOAD_BYTES + 2_000_000_000:
        raise Skip(f"needs {UPLOAD_BYTES / 1e9:.1f} GB of free disk")
    block = os.urandom(1 << 20)

    def body():
        left = UPLOAD_BYTES
        while left > 0:
            yield block[:min(left, len(block))]
            left -= len(block)

    connection = UnixConnection(person.home / "api.sock", timeout=170)
    with MemoryWatch(person) as watch:
        connection.request("POST", "/v1/channels/streams/uploads?name=large.bin", body(),
                           {"Content-Length": str(UPLOAD_BYTES)})
        answer = connection.getresponse()
        shared = json.loads(answer.read())
    expect(answer.status == 201 and shared["size"] == UPLOAD_BYTES, f"{answer.status}: {shared}")
    expect(watch.added < 32_000_000, f"the node took {watch.added / 1e6:.0f} MB more")
    uploads = person.home / "uploads"
    expect(any(file.stat().st_size == UPLOAD_BYTES for file in uploads.rglob("*")), "the upload is not kept")
    status, _ = person.call("DELETE", f"/v1/media/{shared['media_id']}")
    expect(status == 200, "it cannot be unshared")
    expect(not list(uploads.iterdir()), f"unsharing leaves {[file.name for file in uploads.iterdir()]}")
    return f"{UPLOAD_BYTES / 1e9:.2f} GB uploaded, read and shared: {watch.added / 1e6:.1f} MB more at most"


def metrics(person):
    connection = UnixConnection(person.home / "api.sock")
    connection.request("GET", "/metrics")
    answer = connection.getresponse()
    expect(answer.getheader("Content-Type").startswith("text/plain; version=0.0.4"), "another type")
    text = answer.read().decode()
    connection.close()
    return text


SAMPLE = re.compile(r'^([a-z_]+)(\{([a-z]+="(?:[^"\\\n]|\\["\\n])*",?)+\})? (-?[0-9.e+-]+|\+Inf)$')


def test_metrics_are_what_prometheus_reads(stage):
    person = stage.people[0]
    found = {}
    for line in metrics(person).splitlines():
        if line.startswith("#"):
            expect(re.match(r"^# (HELP|TYPE) parley_[a-z_]+ .+", line), f"not a comment of the format: {line}")
            continue
        match = SAMPLE.match(line)
        expect(match, f"not a sample: {line}")
        found.setdefault(match[1], []).append((match[2] or "", float(match[4])))
    for name in ["parley_members", "parley_sessions", "parley_messages_total", "parley_datagram_bytes_total",
                 "parley_session_bytes_total", "parley_queue_size", "parley_repair_questions_total",
                 "parley_repair_entries_total", "parley_dropped_total", "parley_store_commit_seconds_bucket",
                 "parley_request_seconds_count", "parley_event_streams"]:
        expect(name in found, f"{name} is missing")
    expect(dict(found["parley_messages_total"])['{by="self"}'] >= MESSAGES, "messages are not counted")
    sends = dict(found["parley_request_seconds_count"])['{route="POST /v1/channels/*/messages"}']
    expect(sends >= MESSAGES, "requests are not counted")
    expect(any(value > 0 for _, value in found["parley_datagram_bytes_total"]), "bytes are not counted")


def test_doctor_says_what_is_wrong(stage):
    ana = stage.people[0]
    done = subprocess.run([os.environ["PARLEY"], "doctor", "--home", str(ana.home)], capture_output=True, text=True)
    expect("Interface   lo" in done.stdout and "came back" in done.stdout, f"the doctor says {done.stdout!r}")
    expect("came back 0" not in done.stdout, f"what comes back is not counted: {done.stdout}")
    expect(done.returncode == (0 if "All is well" in done.stdout else 1), f"the exit status is {done.returncode}")
    ben = stage.person("Ben")
    ben.cli("join", "streams", "--open")
    eventually(lambda: any(item["code"] == "multicast_works" for item in ana.call("GET", "/v1/doctor")[1]["findings"]),
               20, "the doctor hears Ben")
    if not os.environ.get("PARLEY_ISOLATED") or os.geteuid() != 0:
        return None
    # A firewall that lets nothing in: what is sent does not come back.
    rule = ["INPUT", "-p", "udp", "--dport", "45800", "-j", "DROP"]
    if subprocess.run(["iptables", "-A", *rule], capture_output=True).returncode != 0:
        return "without a firewall, which cannot be set here"
    cut = stage.person("Cut")
    cut.cli("join", "elsewhere", "--open")
    eventually(lambda: any(item["code"] == "own_datagrams_lost" and "45800" in item["advice"]
                           for item in cut.call("GET", "/v1/doctor")[1]["findings"]), 30, "the firewall is suspected")
    done = subprocess.run([os.environ["PARLEY"], "doctor", "--home", str(cut.home)], capture_output=True, text=True)
    expect(done.returncode == 1 and "Not all is well" in done.stdout, f"{done.returncode}: {done.stdout}")
    subprocess.run(["iptables", "-D", *rule], check=True)
    cut.stop()
    return None


class Relay(socketserver.ThreadingTCPServer):
    """TCP on loopback to a node's socket: schemathesis speaks no Unix sockets."""
    allow_reuse_address = daemon_threads = True

    def __init__(self, path):
        self.path = str(path)
        super().__init__(("127.0.0.1", 0), RelayHandler)


class RelayHandler(socketserver.BaseRequestHandler):
    def handle(self):
        node = socket.socket(socket.AF_UNIX)
        node.connect(self.server.path)
        threading.Thread(target=self.copy, args=(node, self.request), daemon=True).start()
        self.copy(self.request, node)

    @staticmethod
    def copy(source, target):
        try:
            while part := source.recv(65_536):
                target.sendall(part)
            target.shutdown(socket.SHUT_WR)
        except OSError:
            pass


def test_the_description_is_true(stage):
    """schemathesis makes calls from the description and checks what the node answers against it."""
    program = os.environ.get("PARLEY_SCHEMATHESIS")
    if not program:
        raise Skip("needs schemathesis (pip install schemathesis)")
    person = stage.person("Described")
    person.call("POST", "/v1/channels", {"name": "a", "open": True})
    person.call("POST", "/v1/owned-channels", {"name": "b"})
    person.call("POST", "/v1/channels/a/messages", {"body": "something to find"})
    with Relay(person.home / "api.sock") as relay:
        threading.Thread(target=relay.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{relay.server_address[1]}"
        connection = http.client.HTTPConnection("127.0.0.1", relay.server_address[1], timeout=20)
        connection.request("GET", "/v1/openapi.json")
        description = json.loads(connection.getresponse().read())
        connection.close()
        count = sum(len(item) for item in description["paths"].values())
        # Nobody waits for an hour here.
        (stage.folder / "openapi.json").write_text(
            json.dumps(description).replace('"maximum": 3600', '"maximum": 0.2'))
        # Not called: what ends the node, streams that do not end, and what reads any folder of this machine.
        done = subprocess.run(
            [program, "run", str(stage.folder / "openapi.json"), "--url", address, "--phases",
             "examples,coverage,fuzzing", "--exclude-path", "/v1/down", "--exclude-path", "/v1/events",
             "--exclude-operation-id", "share",
             "--checks", "status_code_conformance,content_type_conformance,response_schema_conformance,"
             "response_headers_conformance", "--max-examples", os.environ.get("PARLEY_API_EXAMPLES") or "10",
             "--seed", "1", "--workers", "4", "--request-timeout", "20", "--no-color"],
            capture_output=True, text=True, timeout=280, cwd=stage.folder)
        relay.shutdown()
    told = [line for line in done.stdout.splitlines() if line.strip()]
    expect(done.returncode == 0, "\n        ".join(["schemathesis found:", *told[-120:]]))
    expect(person.process.poll() is None, "the node has ended")
    return f"{count} operations: {told[-1].strip(' =')}"
