"""A peer that speaks the real protocol and means ill (Tests/Hostile), replays, and crowds: what each may not do."""
import json
import pathlib
import socket
import subprocess
import time

from harness import (GROUP, MIB, PARLEY, Failure, Lan, Node, Skip, UnixConnection, Watch, eventually, expect,
                     messages_path, post, seconds_until)
from pcap import Traffic
from test_hostile import ATTACKER, RESIDENT_MIB_MAX, begin, dial, still_well

HOSTILE = pathlib.Path(PARLEY).parent / "ParleyHostile"
CHANNEL = "square"


class Attack:
    """A hostile peer on the attacker's host: `with Attack(lan, "flood", CHANNEL, 5) as a: a.until("done")`."""

    def __init__(self, lan, attack, channel, *words, host=ATTACKER):
        if not HOSTILE.exists():
            raise Skip(f"there is no {HOSTILE}: Scripts/test lan builds it")
        self.process = subprocess.Popen(
            ["ip", "netns", "exec", lan.namespace(host), str(HOSTILE), attack, f"10.77.0.{host}", channel,
             *map(str, words)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        lan.processes.append(self.process)

    def __enter__(self):
        return self

    def until(self, key):
        """What it says under this name; it says something else before, or fails."""
        for line in self.process.stdout:
            said = json.loads(line)
            expect("failed" not in said, f"the attack fails: {said}")
            if key in said:
                return said[key]
        raise Failure(f"the attack ended without {key}")

    def go_on(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def __exit__(self, kind, error, trace):
        self.process.kill()
        self.process.wait()


def open_channel(lan, *names, channels=(CHANNEL,)):
    nodes = [lan.node(name, host=place + 1) for place, name in enumerate(names)]
    for channel in channels:
        for node in nodes:
            node.join(channel)
        for node in nodes:
            eventually(lambda: node.online(channel) == set(names), 10, f"{node.name} sees all in {channel}")
    return nodes


def unicast_port(node):
    """Of its IPv4 socket for datagrams to it alone."""
    rows = pathlib.Path(f"/proc/{node.process.pid}/net/udp").read_text().splitlines()[1:]
    ports = {int(row.split()[1].rpartition(":")[2], 16) for row in rows} - {GROUP[1]}
    (port,) = ports
    return port


def shoot(lan, node, payloads):
    sender = lan.inside(ATTACKER, lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
    count = 0
    for target in [GROUP] + [(node.address, port) for port in node.udp_ports()]:
        for payload in payloads:
            try:
                sender.sendto(payload, target)
                count += 1
            except (BlockingIOError, ConnectionError):
                pass
    return count


def test_a_capture_replayed_makes_no_ghost():
    with Lan(ATTACKER) as lan:
        ana, ben, traffic = begin(lan)
        payloads = [payload for _, _, payload in traffic.datagrams if payload]
        expect(payloads, "there is something to replay")
        ana.cli("leave", "garden")
        eventually(lambda: "Ana" in ben.offline("garden"), 5, "Ben knows that Ana left")
        # To who was there: she stays gone.
        count = shoot(lan, ben, payloads * 5)
        ben.kill9()
        # To one who was not.
        cem = lan.node("Cem", host=3)
        cem.join("garden", "seven wet dogs")
        count += shoot(lan, cem, payloads * 5)
        dee = lan.node("Dee", host=1)
        dee.join("garden", "seven wet dogs")
        for node in (cem, dee):
            eventually(lambda: node.online("garden") == {"Cem", "Dee"}, 10, f"{node.name} sees the other")
        count += shoot(lan, cem, payloads * 5)
        cem.cli("send", "garden", "still here", "--wait", "5")
        names = {row["display_name"] for row in cem.members("garden").values()}
        expect(names == {"Cem", "Dee"}, f"nobody of yesterday is listed: {names}")
        return f"{count:,} datagrams of yesterday"


def test_presence_after_a_leave_makes_no_ghost():
    with Lan(ATTACKER) as lan:
        ana, ben, traffic = begin(lan)
        payloads = [payload for _, _, payload in traffic.datagrams if payload]
        ana.cli("leave", "garden")
        eventually(lambda: "Ana" in ben.offline("garden"), 5, "Ben knows that Ana left")
        count = shoot(lan, ben, payloads * 10)
        # What is said after it is heard after it.
        cem = lan.node("Cem", host=3)
        cem.join("garden", "seven wet dogs")
        eventually(lambda: "Cem" in ben.online("garden"), 10, "Ben sees Cem")
        expect("Ana" in ben.offline("garden"), "Ana stays gone")
        return f"{count:,} datagrams replayed"


def test_ten_thousand_half_open_connections():
    with Lan(ATTACKER) as lan:
        ana, ben, _ = begin(lan)
        links, answered = dial(lan, ana, 10_000, ana.tcp_port())
        took, peak = still_well(lan, (ana, ben))
        for link in links:
            link.close()
        return f"10,000 dialled, {answered:,} answered; a new peer in {took:.2f} s; peak {peak:.1f} MiB"


def test_a_node_without_descriptors_goes_on():
    class Poor(Node):
        def command(self):
            words = super().command()
            return [*words[:4], "prlimit", "--nofile=96:96", *words[4:]]

    with Lan(ATTACKER) as lan:
        ana = Poor(lan, 1, "Ana")
        lan.nodes.append(ana)
        ana.start()
        ben = lan.node("Ben", host=2)
        for node in (ana, ben):
            node.join("garden", "seven wet dogs")
        for node in (ana, ben):
            eventually(lambda: node.online("garden") == {"Ana", "Ben"}, 10, "both are there")
        ana.cli("send", "garden", "before", "--wait", "5")
        links, answered = dial(lan, ana, 1_500, ana.tcp_port())
        took, peak = still_well(lan, (ana, ben))
        for link in links:
            link.close()
        return f"96 descriptors, 1,500 dialled, {answered:,} answered; a new peer in {took:.2f} s"


def test_a_hundred_thousand_identities():
    with Lan(ATTACKER) as lan:
        ana, ben = open_channel(lan, "Ana", "Ben")
        with Attack(lan, "identities", CHANNEL, 100_000) as attack:
            attack.until("identities")
            cem = lan.node("Cem", host=3)
            started = time.monotonic()
            cem.join(CHANNEL)
            for node in (ana, ben):
                seconds_until(lambda: "Cem" in node.online(CHANNEL), 30, f"{node.name} sees Cem", started)
            took = time.monotonic() - started
            attack.until("done")
        ana.cli("send", CHANNEL, "after")
        for node in (ana, ben, cem):
            eventually(lambda: "after" in node.texts(CHANNEL), 10, f"{node.name} has what was said after")
            node.expect_alive()
            expect(node.peak_mib() < RESIDENT_MIB_MAX, f"{node.name} took {node.peak_mib():.0f} MiB")
            expect({row["display_name"] for row in node.members(CHANNEL).values()} <= {"Ana", "Ben", "Cem"},
                   "nobody is listed who never answered")
        return f"a new peer in {took:.2f} s meanwhile; peak {max(node.peak_mib() for node in (ana, ben, cem)):.1f} MiB"


def latencies(ana, watch, count, word):
    connection = UnixConnection(ana.home / "api.sock", timeout=60)
    found = []
    for number in range(count):
        text = f"{word} {number}"
        started = time.monotonic()
        post(connection, messages_path(CHANNEL), text)
        watch.wait(lambda event: event.get("body") == text, 30, f"Ben has {text}")
        found.append(time.monotonic() - started)
        # What was seen need not be looked through again.
        with watch.arrived:
            watch.events.clear()
    connection.close()
    return sorted(found)


def test_a_flood_keeps_nobody_waiting():
    with Lan(ATTACKER) as lan:
        ana, ben = open_channel(lan, "Ana", "Ben")
        with Watch(ben, CHANNEL) as watch:
            def follows():
                ana.cli("send", CHANNEL, "ready")
                return any(event.get("body") == "ready" for event in list(watch.events))

            eventually(follows, 30, "Ben's watch has begun")
            latencies(ana, watch, 20, "warm")
            quiet = latencies(ana, watch, 200, "quiet")
            with Attack(lan, "flood", CHANNEL, 60) as attack:
                mallory = attack.until("flooding")
                loud = latencies(ana, watch, 200, "loud")
        for node in (ana, ben):
            node.expect_alive()
            expect(node.peak_mib() < RESIDENT_MIB_MAX, f"{node.name} took {node.peak_mib():.0f} MiB")
        before, meanwhile = quiet[197] * 1_000, loud[197] * 1_000
        return (f"p99 {before:.1f} ms, in the flood {meanwhile:.1f} ms ({meanwhile / before:.1f} times), by "
                f"{mallory[:4]}")


def test_ten_thousand_offers_put_nothing_on_a_disk():
    with Lan(ATTACKER) as lan:
        ana, ben = open_channel(lan, "Ana", "Ben")
        (lan.folder / "ours.txt").write_bytes(b"ours" * 1000)
        (media,) = ana.share(CHANNEL, lan.folder / "ours.txt")
        eventually(lambda: ben.cli("media", CHANNEL), 10, "Ben has Ana's offer")
        with Attack(lan, "offers", CHANNEL, 10_000) as attack:
            attack.until("done")
        ana.cli("send", CHANNEL, "after", "--wait", "10")
        # Not fewer: then the offers had not come, and nothing were shown by their absence.
        eventually(lambda: len(ben.cli("media", CHANNEL)) == 1_001, 30, "of one member 1,000 are remembered, no more")
        offers = ben.cli("media", CHANNEL)
        expect(any(row["media_id"] == media for row in offers), "Ana's file is not pushed out")
        sizes = {path: path.stat().st_size for node in (ana, ben) for path in node.home.rglob("*") if path.is_file()}
        largest = max(sizes.values())
        fetched = [path for path in sizes if "received" in path.parts]
        expect(not fetched, f"what nobody has was written: {fetched[:3]}")
        expect(sum(sizes.values()) < 64 * MIB, f"the homes take {sum(sizes.values()) / MIB:.0f} MiB")
        expect(ben.download(media, lan.folder / "copy").read_bytes() == b"ours" * 1000, "it can be had")
        return f"{len(offers):,} remembered; the largest file of a home has {largest / MIB:.1f} MiB"


def test_lamport_times_at_both_ends():
    with Lan(ATTACKER) as lan:
        ana, ben = open_channel(lan, "Ana", "Ben")
        ana.cli("send", CHANNEL, "one", "--wait", "5")
        with Attack(lan, "lamport", CHANNEL) as attack:
            attack.until("done")
        for node in (ana, ben):
            eventually(lambda: {"late", "early"} <= set(node.texts(CHANNEL)), 10, f"{node.name} has both")
        ben.cli("send", CHANNEL, "two", "--wait", "5")
        ana.cli("send", CHANNEL, "three", "--wait", "5")
        for node in (ana, ben):
            eventually(lambda: len(node.texts(CHANNEL)) == 5, 10, f"{node.name} has all")
            expect(node.texts(CHANNEL) == ["early", "one", "two", "three", "late"],
                   f"the order is the same everywhere: {node.texts(CHANNEL)}")


def test_what_is_forged_or_moved_is_refused():
    with Lan(ATTACKER) as lan:
        ana, ben = open_channel(lan, "Ana", "Ben", channels=(CHANNEL, "cellar"))
        with Attack(lan, "forge", CHANNEL, ana.peer_id) as attack:
            attack.until("done")
        with Attack(lan, "move", CHANNEL, "cellar") as attack:
            attack.until("listening")
            ana.cli("send", CHANNEL, "for the square", "--wait", "5")
            attack.until("done")
        # Whoever says that Ana's run is its own keeps nothing from her.
        with Attack(lan, "claim", CHANNEL) as attack:
            attack.until("listening")
            ana.cli("send", CHANNEL, "claimed", "--wait", "5")
            attack.until("done")
        sent = ana.cli("send", CHANNEL, "delivered", "--wait", "10")
        expect(ben.peer_id in sent[-1]["delivered_to"], f"Ben's acknowledgement reaches Ana: {sent}")
        outcome = ben.cli("tell", ana.peer_id, "you are where you were")[-1]
        expect("delivered" in str(outcome), f"Ana is reached where she was: {outcome}")
        for node in (ana, ben):
            expect(node.texts("cellar") == [], f"{node.name} has nothing in the cellar: {node.texts('cellar')}")
            expect("forged" not in node.texts(CHANNEL), "nothing forged is shown")
            expect(node.online(CHANNEL) == {"Ana", "Ben"}, f"who is there is known: {node.online(CHANNEL)}")


def test_two_entries_under_one_number_are_proved():
    with Lan(ATTACKER) as lan:
        ana, ben = open_channel(lan, "Ana", "Ben")
        places = [f"{node.address}:{unicast_port(node)}" for node in (ana, ben)]
        with Watch(ana, CHANNEL) as anas, Watch(ben, CHANNEL) as bens:
            with Attack(lan, "equivocate", CHANNEL, *places) as attack:
                mallory = attack.until("said")
                eventually(lambda: "yes" in ana.texts(CHANNEL), 10, "Ana was told yes")
                eventually(lambda: "no" in ben.texts(CHANNEL), 10, "Ben was told no")
                attack.go_on()
                attack.until("done")
            proofs = [watch.wait(lambda told: told.get("type") == "equivocated" or "entries" in told, 10, "the proof")
                      for watch in (anas, bens)]
        expect(proofs[0]["entries"] == proofs[1]["entries"] and len(set(proofs[0]["entries"])) == 2,
               "both hold the same two entries")
        expect(all(proof["peer_id"] == mallory for proof in proofs), "it is known who it was")
        ana.cli("send", CHANNEL, "after", "--wait", "5")
        for node in (ana, ben):
            eventually(lambda: "after" in node.texts(CHANNEL), 5, "others go on")
            expect(node.texts(CHANNEL) == ["after"], f"nothing of it is shown any more: {node.texts(CHANNEL)}")
        return f"by {mallory[:4]}"
