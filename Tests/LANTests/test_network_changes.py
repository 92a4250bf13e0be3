"""Networks that change under a running node: a new address, a cable pulled, another switch, a sleep. Within 5 s of
their end, and without a restart, everybody is back and has what was written meanwhile."""
import itertools
import signal
import time

from harness import LONG, Lan, eventually, expect, seconds_until

ALL = {"Ana", "Ben", "Cleo"}
# Seconds, of the specification.
RECOVERY = 5


class Garden:
    """Three in one channel; what happens at Ana is watched."""

    def __init__(self, lan):
        self.lan = lan
        self.nodes = [lan.node(name) for name in ("Ana", "Ben", "Cleo")]
        self.ana, self.ben, self.cleo = self.nodes
        for node in self.nodes:
            node.join("garden")
        for node in self.nodes:
            eventually(lambda: node.online("garden") == ALL, 10, f"{node.name} sees all")
        self.said = ["hello"]
        self.ana.cli("send", "garden", "hello", "--wait", "5")

    def miss_ana(self):
        """Until the others have noticed; then they write."""
        for node in (self.ben, self.cleo):
            eventually(lambda: "Ana" in node.offline("garden"), 60, f"{node.name} misses Ana")
        self.write()

    def write(self):
        for node in (self.ben, self.cleo):
            self.said.append(f"{node.name} says {len(self.said)}")
            node.cli("send", "garden", self.said[-1])

    def recover(self, since):
        """Seconds until all see all and Ana has what was written; then she writes, and it arrives."""
        took = seconds_until(
            lambda: all(ALL <= node.online("garden") for node in self.nodes)
            and set(self.ana.texts("garden")) == set(self.said), RECOVERY, "all are back", since=since)
        self.said.append(f"Ana says {len(self.said)}")
        (receipt,) = self.ana.cli("send", "garden", self.said[-1], "--wait", "5")
        expect({self.ben.peer_id, self.cleo.peer_id} <= set(receipt["delivered_to"]), f"both have it: {receipt}")
        orders = [node.texts("garden") for node in self.nodes]
        expect(orders[0] == orders[1] == orders[2] and len(orders[0]) == len(self.said), f"one order: {orders}")
        return took


    def watched(self, watch):
        """Until the watch has begun: it shows Ana's hand."""
        words = itertools.cycle(["up", "down"])

        def shown():
            self.ana.cli("hand", "garden", next(words))
            return watch.events

        eventually(shown, 10, "the watch shows what happens", every=0.2)


def states(watch):
    return [event["state"] for event in watch.events if event["event"] == "state_changed"]


def reason(watch, state, count=1):
    """Of the last of so many changes to this state."""
    def found():
        return [event for event in watch.events if event["event"] == "state_changed" and event["state"] == state]

    eventually(lambda: len(found()) >= count, RECOVERY, f"Ana is {state}")
    return found()[-1]["reason"]


def test_another_address():
    with Lan(3) as lan:
        for host in (1, 2, 3):
            lan.on(host, "ip", "-6", "address", "flush", "dev", "eth0")
        garden = Garden(lan)
        with garden.ana.watch() as watch:
            garden.watched(watch)
            # As a DHCP client does it: the old one is gone for a moment.
            lan.on(1, "ip", "address", "del", "10.77.0.1/24", "dev", "eth0")
            expect("eth0" in reason(watch, "reconnecting"), "the event says why")
            garden.write()
            lan.on(1, "ip", "address", "add", "10.77.0.101/24", "brd", "+", "dev", "eth0")
            changed = time.monotonic()
            first = garden.recover(changed)
            expect("10.77.0.101" in reason(watch, "connected"), "and what is used now")
            # And at once, the new one before the old one goes; without this the kernel takes both.
            lan.on(1, "sysctl", "-qw", "net.ipv4.conf.eth0.promote_secondaries=1")
            lan.on(1, "ip", "address", "add", "10.77.0.102/24", "brd", "+", "dev", "eth0")
            lan.on(1, "ip", "address", "del", "10.77.0.101/24", "dev", "eth0")
            changed = time.monotonic()
            garden.write()
            second = garden.recover(changed)
            expect("10.77.0.102" in reason(watch, "connected", 2), "the second is told as well")
            expect(states(watch) == ["reconnecting", "connected"] * 2, f"nothing else: {states(watch)}")
        return f"{first:.2f} s and {second:.2f} s after"


def test_an_interface_down_and_up():
    with Lan(3) as lan:
        garden = Garden(lan)
        with garden.ana.watch() as watch:
            garden.watched(watch)
            lan.on(1, "ip", "link", "set", "eth0", "down")
            expect("down" in reason(watch, "reconnecting"), "the event says why")
            garden.miss_ana()
            lan.on(1, "ip", "link", "set", "eth0", "up")
            long = garden.recover(time.monotonic())
            expect("eth0" in reason(watch, "connected"), "and what is used now")
            # For a moment only: nobody has missed her, but sessions and sockets were those of before.
            lan.on(1, "ip", "link", "set", "eth0", "down")
            lan.on(1, "ip", "link", "set", "eth0", "up")
            started = time.monotonic()
            garden.write()
            short = garden.recover(started)
        return f"{long:.2f} s after a long time, {short:.2f} s after a short one"


def test_a_cable_moved_to_another_switch_and_back():
    with Lan(4) as lan:
        lan.on("bridge", "ip", "link", "add", "br1", "type", "bridge", "stp_state", "0", "forward_delay", "0",
               "mcast_snooping", "0")
        lan.on("bridge", "ip", "link", "set", "br1", "up")
        lan.on("bridge", "ip", "link", "set", "port4", "master", "br1")
        garden = Garden(lan)
        dora = lan.node("Dora", host=4)
        dora.join("garden")

        def move(bridge):
            lan.on("bridge", "ip", "link", "set", "port1", "down")
            lan.on("bridge", "ip", "link", "set", "port1", "master", bridge)
            lan.on("bridge", "ip", "link", "set", "port1", "up")
            return time.monotonic()

        with garden.ana.watch() as watch:
            garden.watched(watch)
            moved = move("br1")
            there = seconds_until(
                lambda: "Dora" in garden.ana.online("garden") and "Ana" in dora.online("garden"), RECOVERY,
                "Ana and Dora meet", since=moved)
            expect("carrier" in reason(watch, "reconnecting"), "the event says why")
        garden.miss_ana()
        # Dora learns from Ana what was said before, and her name stays in the list.
        eventually(lambda: dora.texts("garden") == ["hello"], 10, "Dora has the history")
        lan.on("bridge", "ip", "link", "set", "port4", "down")
        back = garden.recover(move("br0"))
        return f"met the other side after {there:.2f} s, back after {back:.2f} s"


def test_a_part_of_the_network_cut_off_unseen():
    """Between two switches: no interface of any node shows it."""
    with Lan(3) as lan:
        lan.on("bridge", "ip", "link", "add", "br1", "type", "bridge", "stp_state", "0", "forward_delay", "0",
               "mcast_snooping", "0")
        lan.on("bridge", "ip", "link", "set", "br1", "up")
        garden = Garden(lan)
        with garden.ana.watch() as watch:
            garden.watched(watch)
            lan.on("bridge", "ip", "link", "set", "port1", "master", "br1")
            garden.miss_ana()
            eventually(lambda: garden.ana.offline("garden") == {"Ben", "Cleo"}, 60, "Ana misses the others")
            lan.on("bridge", "ip", "link", "set", "port1", "master", "br0")
            took = garden.recover(time.monotonic())
            expect(states(watch) == [], f"her own network was there all the time: {states(watch)}")
        return f"{took:.2f} s after"


def test_sleep_and_wake():
    with Lan(3) as lan:
        garden = Garden(lan)
        garden.ana.signal(signal.SIGSTOP)
        slept = time.monotonic()
        garden.miss_ana()
        if LONG:
            eventually(lambda: time.monotonic() - slept > 600, 610, "ten minutes are over", every=1)
        garden.ana.signal(signal.SIGCONT)
        took = garden.recover(time.monotonic())
        return f"slept {time.monotonic() - slept - took:.0f} s, back {took:.2f} s after"
