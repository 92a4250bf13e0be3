"""Scripts/bench messages: latency, throughput and processor time of chat messages."""
import array
import json
import os
import pathlib
import platform
import statistics
import subprocess
import sys
import tempfile
import threading
import time

from common import (ROOT, Stopped, benchmark_program, compiled, die_with_parent, machine_busy_seconds,
                    processor_seconds, span)

WORDS_BYTES = (8 + 8 * 60) * 8
NAMESPACE = f"parley-{os.getpid()}-bench"
RATE = 200
WINDOW = 800
BROKERS = {
    "NATS core": ("NATS", "nats", ["nats-server", "-a", "127.0.0.1", "-p", "{port}"], 0),
    "mosquitto QoS 0": ("MOSQUITTO", "mosquitto", ["mosquitto", "-c", "{configuration}"], 0),
    "mosquitto QoS 1": ("MOSQUITTO", "mosquitto", ["mosquitto", "-c", "{configuration}"], 1),
    "ZeroMQ PUB/SUB": ("ZEROMQ", "zmq", None, 0),
}


class System:
    """What is compared: how its publisher, subscribers and server are started."""

    def __init__(self, name, program, has_home=False, server=None, quality=0):
        self.name, self.program, self.has_home, self.server, self.quality = name, program, has_home, server, quality

    def tail(self, folder, who, port):
        if self.has_home:
            (folder / who).mkdir(mode=0o700)
            return [str(folder / who)]
        return [str(port), str(self.quality)]


class Trial:
    """One system, one number of subscribers, one run."""

    port = 46_000

    def __init__(self, system, count, folder, arguments):
        self.system, self.count, self.folder, self.arguments = system, count, folder, arguments
        self.processes = []
        Trial.port += 1
        self.words = folder / "words"
        self.words.write_bytes(bytes(WORDS_BYTES))
        self.log = open(folder / "log", "wb")

    def start(self, command, **pipes):
        process = subprocess.Popen(
            ["ip", "netns", "exec", NAMESPACE, *command], stderr=self.log, cwd=self.folder,
            preexec_fn=die_with_parent, **{"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, **pipes})
        self.processes.append(process)
        return process

    def start_server(self):
        configuration = self.folder / "mosquitto.conf"
        # Nothing is stored and nothing refused: the publisher's window is the bound, as for every other system.
        configuration.write_text(
            f"listener {Trial.port} 127.0.0.1\nallow_anonymous true\npersistence false\nmax_queued_messages 0\n"
            "set_tcp_nodelay true\nuser root\n")
        server = self.start(
            [word.format(port=Trial.port, configuration=configuration) for word in self.system.server])
        probe = "import socket, sys; socket.create_connection(('127.0.0.1', int(sys.argv[1]))).close()"
        for _ in range(200):
            if subprocess.run(
                    ["ip", "netns", "exec", NAMESPACE, sys.executable, "-c", probe, str(Trial.port)],
                    stderr=subprocess.DEVNULL, check=False).returncode == 0:
                return server
            threading.Event().wait(0.02)
        raise Stopped(f"{self.system.server[0]} does not listen")

    def order(self, text, seconds):
        """Gives an order to the publisher and waits for its answer."""
        watchdog = threading.Timer(seconds, self.publisher.kill)
        watchdog.start()
        try:
            self.publisher.stdin.write(text + "\n")
            self.publisher.stdin.flush()
            line = self.publisher.stdout.readline()
        except BrokenPipeError:
            line = ""
        watchdog.cancel()
        if not line:
            self.log.flush()
            said = (self.folder / "log").read_text(errors="replace").strip() or "nothing"
            raise Stopped(f"{self.system.name} with {self.count}: '{text}' was not done; it said: {said}")
        return json.loads(line)

    def task(self, text, seconds):
        """What an order took: the answer, and the processor seconds of publisher, subscribers, server, all others."""
        groups = [[self.publisher], self.subscribers, [self.server] if self.server else []]
        busy = machine_busy_seconds()
        before = [[processor_seconds(process.pid) for process in group] for group in groups]
        answer = self.order(text, seconds)
        took = [sum(processor_seconds(process.pid) - was for process, was in zip(group, values))
                for group, values in zip(groups, before)]
        return answer, took, max(0, machine_busy_seconds() - busy - sum(took))

    def counted(self, sent):
        """What each reader got of the task that is over, and how many messages were lost or came again."""
        words = array.array("Q", self.words.read_bytes())
        counts = [words[8 + 8 * index + 1] for index in range(self.count)]
        return counts, sum(sent - count for count in counts) + sum(words[8 + 8 * i + 3] for i in range(self.count))

    def run(self):
        system, program = self.system, str(self.system.program)
        self.server = self.start_server() if system.server else None
        self.subscribers = [
            self.start([program, "sub", str(self.words), str(index), str(self.folder / f"latency-{index}"),
                        *system.tail(self.folder, f"home-{index}", Trial.port)])
            for index in range(self.count)]
        self.publisher = self.start(
            [program, "pub", str(self.words), str(self.count), *system.tail(self.folder, "home", Trial.port)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.order("warm", 90)
        sent = int(self.arguments.seconds * RATE)
        _, pace_took, pace_others = self.task(f"pace {sent} {RATE}", 60)
        pace_counts, pace_wrong = self.counted(sent)
        full, full_took, full_others = self.task(f"saturate {int(self.arguments.seconds * 1_000)} {WINDOW}", 60)
        full_counts, full_wrong = self.counted(full["sent"])
        self.order("end", 20)
        self.publisher.stdin.close()
        for process in [*self.subscribers, self.publisher]:
            process.wait(20)
        return {
            **self.paced(sent, sum(pace_counts), pace_took), "paced_wrong": pace_wrong,
            **self.saturated(full, full_counts, full_took), "wrong": full_wrong, "others": pace_others + full_others}

    def paced(self, sent, delivered, took):
        latencies = array.array("Q")
        for index in range(self.count):
            latencies.frombytes((self.folder / f"latency-{index}").read_bytes())
        values = sorted(latencies)
        if not values or delivered == 0:
            raise Stopped(f"{self.system.name} with {self.count}: nothing was delivered")
        return {
            "p50": values[len(values) // 2] / 1e6, "p99": values[len(values) * 99 // 100] / 1e6,
            "paced_publisher": took[0] / sent * 1e6, "paced_subscriber": took[1] / delivered * 1e6,
            "paced_server": took[2] / sent * 1e6,
        }

    def saturated(self, answer, counts, took):
        sent, seconds = answer["sent"], answer["seconds"]
        if seconds <= 0 or min(counts) == 0:
            raise Stopped(f"{self.system.name} with {self.count}: a reader got nothing")
        return {
            "messages": min(counts) / seconds, "deliveries": sum(counts) / seconds,
            "publisher": took[0] / sent * 1e6, "subscriber": took[1] / sum(counts) * 1e6,
            "server": took[2] / sent * 1e6,
        }

    def clear(self):
        for process in self.processes:
            if process.poll() is None:
                process.kill()
        for process in self.processes:
            process.wait()
        self.log.close()


def make_namespace():
    subprocess.run(["ip", "netns", "add", NAMESPACE], check=True)
    subprocess.run(["ip", "-n", NAMESPACE, "link", "set", "lo", "up"], check=True)


def systems(arguments, folder):
    found = [System("Parley", benchmark_program(), has_home=True),
             System("floor", compiled(folder, "floor.c", "floor", "-lsodium", "-lsqlite3"), has_home=True)]
    if arguments.peers:
        subprocess.run([ROOT / "Scripts" / "setup", "bench"], check=True)
        for name, (flag, library, server, quality) in BROKERS.items():
            client = compiled(folder, "brokers.c", library, f"-D{flag}", f"-l{library}")
            found.append(System(name, client, server=server, quality=quality))
    return [system for system in found if arguments.only is None or system.name in arguments.only.split(",")]


def disk(folder):
    """The file system, and the median milliseconds that it takes to write 4 KiB through to the disk."""
    kind = subprocess.run(["stat", "-f", "-c", "%T", folder], check=True, stdout=subprocess.PIPE, text=True).stdout
    if kind.strip() in ("tmpfs", "ramfs"):
        raise Stopped(f"{folder} is not on a disk ({kind.strip()}): name a folder that is, with --home")
    times = []
    with open(folder / "probe", "wb") as file:
        for _ in range(50):
            file.write(bytes(4_096))
            file.flush()
            start = time.monotonic()
            os.fdatasync(file.fileno())
            times.append((time.monotonic() - start) * 1e3)
    return f"{kind.strip()}, {statistics.median(times):.2f} ms to write 4 KiB through"


def report(results, counts, names, arguments):
    print(f"\nLatency at {RATE} messages a second, ms; processor time, µs a message of each process\n")
    print("| readers | system | p50 | p99 | writer | a reader | server | lost or twice |")
    print("|---|---|---|---|---|---|---|---|")
    for count in counts:
        for name in names:
            rows = results[name, count]
            print(f"| {count} | {name} | {span(rows, 'p50', '{:.2f}')} | {span(rows, 'p99', '{:.2f}')} "
                  f"| {span(rows, 'paced_publisher', '{:.0f}')} | {span(rows, 'paced_subscriber', '{:.0f}')} "
                  f"| {span(rows, 'paced_server', '{:.0f}')} | {sum(row['paced_wrong'] for row in rows)} |")
    print("\nThroughput, a second; processor time, µs a message of each process\n")
    print("| readers | system | messages | deliveries | writer | a reader | server | lost or twice |")
    print("|---|---|---|---|---|---|---|---|")
    for count in counts:
        for name in names:
            rows = results[name, count]
            print(f"| {count} | {name} | {span(rows, 'messages', '{:,.0f}')} | {span(rows, 'deliveries', '{:,.0f}')} "
                  f"| {span(rows, 'publisher', '{:.1f}')} | {span(rows, 'subscriber', '{:.1f}')} "
                  f"| {span(rows, 'server', '{:.1f}')} | {sum(row['wrong'] for row in rows)} |")
    print("\nLatency: from when a message was due. The floor is a lower bound: it puts more messages in a commit than "
          "a node\ncan, and asks for nothing again.")
    if arguments.peers:
        print("NATS, mosquitto and ZeroMQ neither store nor sign nor encrypt here. All send at once (TCP_NODELAY). QoS "
              "1 is\nacknowledged from hop to hop, with 20 messages in flight at most on each (the default of broker "
              "and library).")
    if arguments.json:
        pathlib.Path(arguments.json).write_text(
            json.dumps([{"system": name, "readers": count, "runs": rows} for (name, count), rows in results.items()]))


def measure(arguments, folder):
    counts = [int(count) for count in arguments.receivers.split(",")]
    if not all(1 <= count <= 60 for count in counts):
        raise Stopped("--receivers takes numbers from 1 to 60")
    compared = systems(arguments, folder)
    print(f"{platform.machine()}, {os.cpu_count()} cores, Linux {platform.release()}; homes on {disk(folder)}; "
          f"load {os.getloadavg()[0]:.1f} at the start", flush=True)
    make_namespace()
    results, others, start = {}, 0.0, time.monotonic()
    for run in range(arguments.runs):
        for count in counts:
            for system in compared:
                with tempfile.TemporaryDirectory(dir=folder) as place:
                    trial = Trial(system, count, pathlib.Path(place), arguments)
                    try:
                        row = trial.run()
                    finally:
                        trial.clear()
                others += row["others"]
                results.setdefault((system.name, count), []).append(row)
                print(f"run {run + 1}: {system.name}, {count} readers: p99 {row['p99']:.2f} ms, "
                      f"{row['deliveries']:,.0f} deliveries a second", file=sys.stderr)
    report(results, counts, [system.name for system in compared], arguments)
    measured = 2 * arguments.seconds * arguments.runs * len(counts) * len(compared)
    print(f"\n{arguments.runs} runs in {time.monotonic() - start:.0f} s. While it measured, others on this machine and "
          f"the kernel's own threads used about {others / measured:.1f} of {os.cpu_count()} cores.")
