"""Namespaces, links and processes of the measurements of media."""
import json
import os
import pathlib
import subprocess
import threading
import time

from common import Stopped, die_with_parent, processor_seconds

# Debian's own values, whatever this machine's are: figures of different machines shall say the same.
TCP = {"net.ipv4.tcp_rmem": "4096 131072 6291456", "net.ipv4.tcp_wmem": "4096 16384 4194304"}


def run(*command):
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def read(host, path):
    return subprocess.run(["ip", "netns", "exec", host, "cat", path], check=True, stdout=subprocess.PIPE,
                          text=True).stdout.strip()


class Hosts:
    """Network namespaces, removed at the end. Nothing leads out of them."""

    tcp = "cubic"

    def __init__(self, kind):
        self.prefix = f"parley-{os.getpid()}-{kind}"
        self.names = []

    def add(self, name):
        host = f"{self.prefix}-{name}"
        run("ip", "netns", "add", host)
        self.names.append(host)
        run("ip", "-n", host, "link", "set", "lo", "up")
        run("ip", "netns", "exec", host, "sysctl", "-qw", *(f"{key}={value}" for key, value in TCP.items()))
        # A kernel may have kept some to the first namespace (tcp_allowed_congestion_control).
        subprocess.run(["ip", "netns", "exec", host, "sysctl", "-qw",
                        f"net.ipv4.tcp_congestion_control={Hosts.tcp}"], stderr=subprocess.DEVNULL, check=False)
        return host

    @staticmethod
    def congestion_control(host):
        return read(host, "/proc/sys/net/ipv4/tcp_congestion_control")

    def star(self, count, rate):
        """Hosts on one bridge, each behind a link of so many bit/s both ways (`tc tbf`); the link is `v0`."""
        bridge = self.add("bridge")
        # Without snooping: the querier that a network of this kind has elsewhere would be missing.
        run("ip", "-n", bridge, "link", "add", "b0", "type", "bridge", "mcast_snooping", "0")
        run("ip", "-n", bridge, "link", "set", "b0", "up")
        self.star_hosts = hosts = [self.add(str(index)) for index in range(count)]
        limit = ["root", "tbf", "rate", str(rate), "burst", "256kb", "latency", "50ms"]
        for index, host in enumerate(hosts):
            port = f"p{index}"
            run("ip", "-n", host, "link", "add", "v0", "type", "veth", "peer", "name", port, "netns", bridge)
            run("ip", "-n", bridge, "link", "set", port, "master", "b0", "up")
            run("ip", "-n", host, "address", "add", f"10.45.0.{index + 1}/24", "brd", "+", "dev", "v0")
            run("ip", "-n", host, "link", "set", "v0", "up")
            run("tc", "-n", host, "qdisc", "add", "dev", "v0", *limit)
            run("tc", "-n", bridge, "qdisc", "add", "dev", port, *limit)
        return hosts

    @staticmethod
    def sent_bytes(host):
        return int(read(host, "/sys/class/net/v0/statistics/tx_bytes"))

    def close(self):
        for name in self.names:
            subprocess.run(["ip", "netns", "delete", name], check=False)


class Program:
    """A process in a namespace; its errors go to a log in its folder."""

    def __init__(self, host, folder, name, command):
        self.name = name
        self.log_path = pathlib.Path(folder) / f"{name}.log"
        with open(self.log_path, "wb") as log:
            self.process = subprocess.Popen(
                ["ip", "netns", "exec", host, *map(str, command)], cwd=folder, stdin=subprocess.PIPE,
                stdout=subprocess.PIPE, stderr=log, text=True, preexec_fn=die_with_parent)
        self.pid = self.process.pid

    def failed(self, what):
        said = self.log_path.read_text(errors="replace").strip()[-600:] or "nothing"
        return Stopped(f"{self.name}: {what}; it said: {said}")

    def line(self):
        line = self.process.stdout.readline()
        if not line:
            raise self.failed("it ended")
        return line.strip()

    def tell(self, line):
        try:
            self.process.stdin.write(line + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            raise self.failed("it ended") from None

    def seconds(self):
        return processor_seconds(self.pid)

    def memory(self, key):
        """MiB of a line of proc_pid_status(5)."""
        for line in pathlib.Path(f"/proc/{self.pid}/status").read_text(encoding="ascii").splitlines():
            if line.startswith(key + ":"):
                return int(line.split()[1]) / 1024
        raise self.failed("it ended")

    def stop(self):
        # Asked first: a server that is killed leaves its workers behind.
        for end in (self.process.terminate, self.process.kill):
            if self.process.poll() is None:
                end()
                try:
                    self.process.wait(3)
                except subprocess.TimeoutExpired:
                    continue
        for pipe in (self.process.stdin, self.process.stdout):
            try:
                pipe.close()
            except BrokenPipeError:
                pass


class Node(Program):
    """A node of ParleyBenchmark: orders go out at once, and each answer is waited for by its number."""

    def __init__(self, host, folder, name, program, interface):
        home = pathlib.Path(folder) / f"{name}-home"
        home.mkdir(mode=0o700)
        super().__init__(host, folder, name, [program, "media", interface, home])
        self.answers, self.changed, self.count = {}, threading.Condition(), 0
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        for line in self.process.stdout:
            answer = json.loads(line)
            with self.changed:
                self.answers[answer["order"]] = answer
                self.changed.notify_all()
        with self.changed:
            self.answers["end"] = None
            self.changed.notify_all()

    def order(self, text):
        with self.changed:
            self.count += 1
            number = self.count
            self.tell(f"{number} {text}")
        return number

    def is_done(self, number):
        with self.changed:
            return number in self.answers

    def answer(self, number, seconds=120):
        with self.changed:
            if not self.changed.wait_for(lambda: number in self.answers or "end" in self.answers, seconds):
                raise self.failed(f"no answer to order {number} in {seconds} s")
            answer = self.answers.get(number)
        if answer is None or "error" in answer:
            raise self.failed(answer["error"] if answer else "it ended")
        return answer

    def ask(self, text, seconds=120):
        return self.answer(self.order(text), seconds)


class Tree:
    """The processes that descend from one: their processor time and, sampled, the most memory of all together."""

    def __init__(self, pid):
        self.pid, self.peak, self.is_over = pid, 0.0, threading.Event()
        self.thread = threading.Thread(target=self.sample, daemon=True)
        self.thread.start()

    def members(self):
        found, waiting = [], [self.pid]
        while waiting:
            pid = waiting.pop()
            found.append(pid)
            try:
                for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
                    waiting += map(int, (task / "children").read_text(encoding="ascii").split())
            except OSError:
                continue
        return found

    def fields(self, pid, name):
        try:
            return pathlib.Path(f"/proc/{pid}/{name}").read_text(encoding="ascii", errors="replace")
        except OSError:
            return ""

    def sample(self):
        page = os.sysconf("SC_PAGE_SIZE") / (1 << 20)
        while not self.is_over.wait(0.05):
            texts = [self.fields(pid, "statm").split() for pid in self.members()]
            self.peak = max(self.peak, sum(int(text[1]) for text in texts if text) * page)

    def seconds(self):
        """With those that have ended and were waited for: clock ticks, hundredths."""
        ticks = 0
        for pid in self.members():
            text = self.fields(pid, "stat")
            ticks += sum(map(int, text.rsplit(")", 1)[1].split()[11:15])) if text else 0
        return ticks / os.sysconf("SC_CLK_TCK")

    def stop(self):
        self.is_over.set()
        self.thread.join()
        return self.peak


def wait_until(condition, seconds, what):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise Stopped(what)
        threading.Event().wait(0.02)
