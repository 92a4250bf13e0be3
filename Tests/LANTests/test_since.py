"""Exactly once to the application: readers that crash and go on after their last cursor, at nodes that crash."""
import json
import random
import signal
import subprocess
import threading

from harness import LONG, PARLEY, Lan, eventually, expect

WRITERS_MESSAGES = 2000 if LONG else 400
TELLS = 60 if LONG else 12
ROUNDS_MIN = 100 if LONG else 15


class Reader:
    """Runs `parley watch --since` again and again; keeps what it printed in whole lines, as a program would that notes
    the cursor of the last message it is done with."""

    def __init__(self, node, *options):
        self.node, self.options = node, options
        self.cursor, self.seen, self.process, self.runs = 0, [], None, 0

    def start(self):
        self.process = subprocess.Popen(
            [PARLEY, "watch", "--since", str(self.cursor), "--json", "--home", str(self.node.home), *self.options],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
        self.node.lan.processes.append(self.process)
        self.runs += 1
        self.thread = threading.Thread(target=self._read, args=(self.process,), daemon=True)
        self.thread.start()

    def _read(self, process):
        for line in process.stdout:
            # Of a reader that was killed in the middle of a line the rest is missing.
            if not line.endswith(b"\n"):
                break
            event = json.loads(line)
            if event["event"] == "message":
                self.seen.append((event["cursor"], event["body"]))
                self.cursor = event["cursor"]

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.thread.join()

    def check(self, wanted):
        """Each once, in the order of cursors."""
        texts = [text for _, text in self.seen]
        cursors = [cursor for cursor, _ in self.seen]
        expect(cursors == sorted(set(cursors)), "cursors rise")
        expect(len(texts) == len(set(texts)), f"no message twice: {len(texts) - len(set(texts))} are")
        expect(set(texts) == wanted, f"all messages, and no others: {len(wanted - set(texts))} are missing")


def test_a_reader_and_its_node_crash_at_random_and_nothing_is_missed_or_repeated():
    pause = threading.Event()
    # Which moments are hit differs from run to run; the seed says which were tried.
    seed = random.SystemRandom().randrange(1 << 32)
    dice = random.Random(seed)
    with Lan(3) as lan:
        ana, ben, cleo = (lan.node(name) for name in ("Ana", "Ben", "Cleo"))
        for node in (ana, ben, cleo):
            node.join("garden")
        eventually(lambda: ana.online("garden") == {"Ana", "Ben", "Cleo"}, 10, "all are there")
        crashing, patient = Reader(ben), Reader(ben, "--reconnect", "30")
        crashing.start()
        patient.start()
        wanted = {f"{name} {number}" for name in ("Ana", "Cleo") for number in range(WRITERS_MESSAGES)}
        wanted |= {f"told {number}" for number in range(TELLS)}

        def write(node):
            for number in range(WRITERS_MESSAGES):
                node.send_many("garden", [f"{node.name} {number}"])
                pause.wait(0.002)

        def tell():
            for number in range(TELLS):
                ana.cli("tell", ben.peer_id, f"told {number}")

        errors = []

        def guarded(job, *arguments):
            try:
                job(*arguments)
            except BaseException as error:  # shown below
                errors.append(error)

        threads = [threading.Thread(target=guarded, args=job, daemon=True)
                   for job in ((write, ana), (write, cleo), (tell,))]
        for thread in threads:
            thread.start()
        rounds = node_kills = 0
        while rounds < ROUNDS_MIN or any(thread.is_alive() for thread in threads):
            pause.wait(dice.uniform(0.02, 0.5))
            crashing.kill()
            if rounds % 3 == 2:
                ben.kill9()
                node_kills += 1
                # The reader may be there before its node.
                crashing.start()
                ben.start()
                crashing.kill()
            crashing.start()
            rounds += 1
        for thread in threads:
            thread.join()
        expect(not errors, f"writing goes on: {errors}")
        for reader in (crashing, patient):
            try:
                eventually(lambda: len(reader.seen) >= len(wanted), 30, f"all is read (seed {seed})")
            finally:
                reader.process.send_signal(signal.SIGINT)
                reader.thread.join(10)
            reader.check(wanted)
        expect(patient.runs == 1, "the patient one was started once")
        return f"{len(wanted)} messages, {crashing.runs} readers, {node_kills} kills of the node"


def test_a_cursor_of_another_store_is_refused():
    with Lan(1) as lan:
        ana = lan.node("Ana")
        ana.join("garden")
        ana.send_many("garden", ["one"])
        (message,) = ana.history("garden")
        text = ana.refused(65, "watch", "--since", str(message["cursor"] + 256))
        expect("begin again with 0" in text, f"it says what to do: {text}")
        ana.refused(64, "watch", "--since", "yesterday")
        ana.cli("down")
        ana.process.wait(10)
        ana.refused(69, "watch", "--since", "0")
        ana.refused(69, "watch", "--reconnect", "1")
