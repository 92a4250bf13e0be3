"""One surface for both kinds of peer, so that a test can be played by either: Swift's node and Python's."""
import json
import os
import pathlib
import subprocess
import threading

from harness import PARLEY, ROOT, Failure, Node, eventually

PYTHON = os.environ.get("PARLEY_PYTHON", "python3")


class SwiftPeer:
    kind = "Swift"

    def __init__(self, lan, host, name, options=()):
        self.lan, self.name, self.host = lan, name, host
        self.node = Node(lan, host, name, home=lan.folder / f"swift{host}", options=options)
        lan.nodes.append(self.node)
        self.node.start(within=30)
        self.peer_id = self.node.peer_id
        self.port = self.node.tcp_port()
        self.events = []
        # From the first message on, so that none is missed while this begins.
        self.watch = subprocess.Popen(
            [PARLEY, "watch", "--since", "0", "--home", str(self.node.home), "--json"],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
        lan.processes.append(self.watch)
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        for line in self.watch.stdout:
            self.events.append(json.loads(line))

    def join(self, channel, passphrase=None, is_room=False):
        if is_room:
            self.node.cli("join", channel, "--open", "--room")
        else:
            self.node.join(channel, passphrase)

    def attributes(self, channel):
        return {row["key"]: row["value"] for row in self.node.cli("attributes", channel)}

    def set_attribute(self, channel, key, value, is_for_ever=True):
        options = [] if is_for_ever else ["--no-overwrite", "--until-leave"]
        self.node.cli("attributes", channel, "set", key, value, *options)

    def leave(self, channel):
        self.node.cli("leave", channel)

    def online(self, channel):
        return self.node.online(channel)

    def hands(self, channel):
        return {row["display_name"] for row in self.node.members(channel).values() if row["raise_hand"]}

    def hand(self, channel, is_up):
        self.node.cli("hand", channel, "up" if is_up else "down")

    def send(self, channel, text):
        self.node.send_many(channel, [text])

    def send_acknowledged(self, channel, text, seconds):
        """Whether everybody present has it on disk."""
        sent = self.node.cli("send", channel, text, "--wait", str(seconds))[-1]
        return len(sent["delivered_to"]) > 0 and not sent.get("missing")

    def place(self, channel, latitude, longitude, address):
        self.node.cli("send", channel, "--as", "location", "--latitude", str(latitude), "--longitude", str(longitude),
                      "--address", address)

    def custom(self, channel, event, **fields):
        texts = [word for name, text in fields.items() for word in ("--field", f"{name}={text}")]
        self.node.cli("send", channel, "--as", "custom", "--event", event, *texts)

    def edit(self, channel, message_id, text):
        self.node.cli("edit", channel, message_id, text)

    def recall(self, channel, message_id):
        self.node.cli("recall", channel, message_id)

    def command(self, channel, action, **parameters):
        texts = [word for name, text in parameters.items() for word in ("--param", f"{name}={text}")]
        self.node.cli("send", channel, "--as", "cmd", "--action", action, *texts)

    def commands(self, channel):
        """Those of others that came, with their texts."""
        return [(event["action"], event["params"]) for event in list(self.events)
                if event.get("event") == "command" and event.get("channel") == channel]

    def texts(self, channel):
        return self.node.texts(channel)

    def history(self, channel):
        return self.node.history(channel)

    def types(self, channel):
        return [row["type"] for row in self.history(channel)]

    def tell(self, other, text):
        self.node.cli("tell", other.peer_id, text)

    def told(self):
        """What came as peer messages; what comes twice stands twice."""
        return [event["body"] for event in list(self.events)
                if event.get("type") == "text" and event["channel"] is None
                and event["sender"]["sender_id"] != self.peer_id]

    def share(self, channel, path, kind=None, dots=None):
        """`dots`: how wide and high it is; this peer finds out by itself."""
        return self.node.share(channel, path, kind=kind)[0]

    def media(self, channel):
        return {row.get("media_id") for row in self.node.cli("media", channel)}

    def download(self, media, path):
        self.node.download(media, path, timeout=120)

    def combine(self, channel, title, message_ids):
        self.node.cli("combine", channel, *message_ids, "--title", title)

    def unpack(self, row, path):
        """The texts of a combined message's messages."""
        return [message["body"] for message in self.node.cli("unpack", row["media_id"])]

    def end(self):
        self.watch.terminate()
        self.watch.wait()
        self.node.stop(within=30)


class PythonPeer:
    kind = "Python"
    program = ("-m", "parley_peer")

    def __init__(self, lan, host, name, suites="aesgcm,chachapoly", options=()):
        self.lan, self.name, self.host = lan, name, host
        self.home = lan.folder / f"python{host}"
        self.log = open(f"{self.home}.log", "wb")
        # `ip netns exec` becomes the peer, so the process is the peer's.
        self.process = subprocess.Popen(
            ["ip", "netns", "exec", lan.namespace(host), PYTHON, *self.program, "--home", str(self.home),
             "--name", name, "--interface", "eth0", "--suites", suites, *options],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log, cwd=ROOT / "Peers" / "Python")
        lan.processes.append(self.process)
        self.lines, self.arrived, self.asked, self.has_ended = [], threading.Condition(), 0, False
        threading.Thread(target=self._read, daemon=True).start()
        ready = self.wait_line(lambda line: line.get("event") == "ready", 60, "is ready")
        self.peer_id, self.port = ready["peer_id"], ready["tcp_port"]

    def _read(self):
        for line in self.process.stdout:
            with self.arrived:
                self.lines.append(json.loads(line))
                self.arrived.notify_all()
        with self.arrived:
            self.has_ended = True
            self.arrived.notify_all()

    def wait_line(self, wanted, within, what):
        with self.arrived:
            self.arrived.wait_for(lambda: self.has_ended or any(wanted(line) for line in self.lines), within)
            found = [line for line in self.lines if wanted(line)]
        if not found:
            raise Failure(f"{self.name}: not within {within} s: {what}\n{self.errors()}")
        return found[0]

    def errors(self):
        return pathlib.Path(self.log.name).read_text(errors="backslashreplace")[-1500:]

    def call(self, *words, within=60):
        with self.arrived:
            self.asked += 1
            number = self.asked
            self.process.stdin.write(json.dumps(words).encode() + b"\n")
            self.process.stdin.flush()
        answer = self.wait_line(lambda line: line.get("answer") == number, within, f"answers {words[0]}")
        if "error" in answer:
            raise Failure(f"{self.name}: {' '.join(words)[:200]}: {answer['error']}")
        return answer

    def join(self, channel, passphrase=None, is_room=False):
        path = self.lan.folder / f"{self.name}.passphrase"
        if passphrase:
            path.write_text(passphrase)
        self.call("join", channel, str(path) if passphrase else "", "room" if is_room else "group")

    def attributes(self, channel):
        return {row["key"]: row["value"] for row in self.call("attributes", channel)["attributes"]}

    def set_attribute(self, channel, key, value, is_for_ever=True):
        self.call("attribute", channel, key, value, *([] if is_for_ever else ["keep", "leave"]))

    def leave(self, channel):
        self.call("leave", channel)

    def members(self, channel):
        return self.call("members", channel)["members"]

    def online(self, channel):
        return {row["display_name"] for row in self.members(channel) if row["online"]}

    def hands(self, channel):
        return {row["display_name"] for row in self.members(channel) if row["hand"]}

    def hand(self, channel, is_up):
        self.call("hand", channel, "up" if is_up else "down")

    def send(self, channel, text):
        self.call("send", channel, text)

    def send_acknowledged(self, channel, text, seconds):
        sent = self.call("send", channel, text, str(seconds), within=seconds + 30)
        return 0 < sent["present"] == sent["delivered_to"]

    def place(self, channel, latitude, longitude, address):
        self._say(channel, "location", {"latitude": latitude, "longitude": longitude, "address": address})

    def custom(self, channel, event, **fields):
        self._say(channel, "custom", {"event": event, "custom_ext": fields})

    def edit(self, channel, message_id, text):
        self._say(channel, "edit", {"target": self._own(message_id), "body": text})

    def recall(self, channel, message_id):
        self._say(channel, "recall", {"target": self._own(message_id)})

    def _own(self, message_id):
        return {"sender_id": self.peer_id, "message_id": message_id}

    def _say(self, channel, kind, members):
        self.call("raw", channel, kind, json.dumps(members))

    def command(self, channel, action, **parameters):
        self.call("live", channel, "cmd", json.dumps({"action": action, "params": parameters}))

    def commands(self, channel):
        with self.arrived:
            return [(line["action"], line["params"]) for line in self.lines
                    if line.get("event") == "live" and line["channel"] == channel and line["type"] == "cmd"]

    def history(self, channel):
        return self.call("history", channel)["messages"]

    def texts(self, channel):
        return [row["body"] for row in self.history(channel) if row["type"] == "text"]

    def types(self, channel):
        return [row["type"] for row in self.history(channel)]

    def tell(self, other, text):
        self.call("tell", other.peer_id, text)

    def told(self):
        with self.arrived:
            return [line["body"] for line in self.lines if line.get("event") == "peer_message"]

    def share(self, channel, path, kind="file", dots=None):
        own = {"width": dots[0], "height": dots[1]} if dots else {}
        if kind == "video":
            own = {"duration": 1, **own}
        return self.call("share", channel, str(path), kind, json.dumps(own))["media_id"]

    def media(self, channel):
        return {row["media_id"] for row in self.call("media", channel)["media"]}

    def download(self, media, path):
        self.call("download", media, str(path), within=120)

    def combine(self, channel, title, message_ids):
        self.call("combine", channel, title, str(self.lan.folder / f"{channel}-combined.ndjson"), *message_ids)

    def unpack(self, row, path):
        answer = self.call("unpack", row["media_id"], str(row["levels"]), str(path), within=60)
        return [message["body"] for message in answer["messages"]]

    def end(self):
        self.process.terminate()
        try:
            self.process.wait(30)
        finally:
            self.log.close()
        errors = self.errors()
        if "Traceback" in errors:
            raise Failure(f"{self.name} had trouble: {errors}")


KINDS = {"Swift": SwiftPeer, "Python": PythonPeer}


def see_each_other(channel, *peers, within=60):
    names = {peer.name for peer in peers}
    for peer in peers:
        eventually(lambda: peer.online(channel) >= names, within, f"{peer.name} sees {names} in {channel}", every=0.1)
