"""Members gone bad that speak the protocol: what they serve of files and of history harms nobody (hostile_peer.py)."""
import pathlib
import signal
import subprocess
import time

from harness import MIB, Lan, Skip, at_once, eventually, expect, seconds_until
from peers import PYTHON, PythonPeer

CHANNEL = "garden"
# Above what an idle node has; what others may make it keep is counted in ARCHITECTURE.md (Queues).
RESIDENT_MIB_MAX = 200
LINK = "100mbit"
SIZE = 24 * MIB
# What nobody sends by mistake: whoever did is told of, and not asked again.
PROVED = ("wrong_bytes", "wrong_nodes")


class HostilePeer(PythonPeer):
    program = (str(pathlib.Path(__file__).with_name("hostile_peer.py")),)

    def __init__(self, lan, host, lie=""):
        if subprocess.run([PYTHON, "-c", "import nacl, noise, cryptography"], capture_output=True).returncode != 0:
            raise Skip(f"{PYTHON} has not what Peers/Python needs: PARLEY_PYTHON=$(Scripts/python)")
        super().__init__(lan, host, "Mallory", options=("--lie", lie) if lie else ())

    def has_lied(self):
        with self.arrived:
            return any(line.get("event") == "lied" for line in self.lines)


def slow_down(lan, *hosts):
    """Links at the rate of a small network: with the memory's, what a lie costs could not be told from the rest."""
    for host in hosts:
        lan.on(host, "tc", "qdisc", "add", "dev", "eth0", "root", "tbf", "rate", LINK, "burst", "256kb", "latency",
               "50ms")


def content(seed):
    return b"".join((seed * 1_000_003 + at).to_bytes(8, "big") * 128 for at in range(SIZE // 1024))


def company(lan, *names):
    nodes = [lan.node(name) for name in names]
    for node in nodes:
        node.join(CHANNEL)
    return nodes


def announce(lan, node, ana, number):
    """Ana shares a file that the node hears of."""
    data = content(number)
    (lan.folder / f"file {number}").write_bytes(data)
    (media,) = ana.share(CHANNEL, lan.folder / f"file {number}")
    eventually(lambda: any(row["media_id"] == media for row in node.cli("media", CHANNEL)), 20, "it is announced")
    return media, data


def fetched(lan, node, media, data, while_stopped=None, liar=None):
    """Seconds that the node takes to fetch it. `while_stopped`: a holder that does not answer until the liar has lied,
    since who is asked for what is chance; the time counts from then on."""
    if while_stopped:
        while_stopped.signal(signal.SIGSTOP)
    started = time.monotonic()

    def wake():
        nonlocal started
        if while_stopped:
            try:
                eventually(liar.has_lied, 60, "Mallory was asked, and lied", every=0.01)
            finally:
                while_stopped.signal(signal.SIGCONT)
            started = time.monotonic()

    target = lan.folder / f"copy of {media}"
    at_once(lambda: node.download(media, target, timeout=120), wake)
    took = time.monotonic() - started
    expect(target.read_bytes() == data, "every byte is right")
    return took


def lying(lie):
    """Seconds for a file from an honest holder alone, and from that one and this liar."""
    with Lan(3) as lan:
        ana, ben = company(lan, "Ana", "Ben")
        slow_down(lan, 1, 3)
        mallory = HostilePeer(lan, 3, lie)
        mallory.join(CHANNEL)
        eventually(lambda: "Mallory" in ben.online(CHANNEL), 30, "Ben sees Mallory")
        alone = fetched(lan, ben, *announce(lan, ben, ana, 0))
        took = []
        for number in (1, 2):
            media, data = announce(lan, ben, ana, number)
            mallory.call("hold", CHANNEL, str(lan.folder / f"file {number}"))
            took.append(fetched(lan, ben, media, data, *(() if mallory.has_lied() else (ana, mallory))))
        if lie in PROVED:
            eventually(lambda: "is no longer asked for" in ben.log_text(), 10, "Ben says whom it asks no more")
        expect(ben.peak_mib() < RESIDENT_MIB_MAX, f"Ben took {ben.peak_mib():.0f} MiB")
        expect(not list(ben.home.rglob("*.part")) and not list(lan.folder.glob(".*.part")), "no part lies about")
        ben.expect_alive()
        return f"{lie.replace('_', ' ')} {max(took):.1f} s ({max(took) / alone:.2f} times, {ben.peak_mib():.0f} MiB)"


def said(lies):
    return f"{SIZE // MIB} MiB, as against the honest holder alone: " + ", ".join(lying(lie) for lie in lies)


def test_holders_that_lie():
    return said(("wrong_bytes", "wrong_nodes", "endless_manifest"))


def test_holders_that_give_nothing():
    return said(("false_claims", "silent", "trickle"))


def test_one_who_asks_for_everything_at_once():
    with Lan(3) as lan:
        ana, ben = company(lan, "Ana", "Ben")
        slow_down(lan, 1)
        mallory = HostilePeer(lan, 3)
        mallory.join(CHANNEL)
        eventually(lambda: "Mallory" in ana.online(CHANNEL), 30, "Ana sees Mallory")
        (lan.folder / "file").write_bytes(content(1))
        (lan.folder / "other").write_bytes(content(2))
        first, second = ana.share(CHANNEL, lan.folder / "file", lan.folder / "other")
        eventually(lambda: len(ben.cli("media", CHANNEL)) == 2, 20, "both are announced")
        started = time.monotonic()
        ben.download(first, lan.folder / "copy")
        alone = time.monotonic() - started
        ana.reset_peak()
        connections = mallory.call("greedy", CHANNEL, ana.peer_id, second, "4", "300")["connections"]
        started = time.monotonic()
        path = ben.download(second, lan.folder / "other copy", timeout=180)
        beside = time.monotonic() - started
        expect(path.read_bytes() == content(2), "every byte is right")
        expect(ana.peak_mib() < RESIDENT_MIB_MAX, f"Ana took {ana.peak_mib():.0f} MiB")
        ana.cli("send", CHANNEL, "still here", "--wait", "10")
        return (f"Ben alone {alone:.1f} s, beside {connections} connections that ask for all and read nothing "
                f"{beside:.1f} s ({beside / alone:.2f} times); Ana's peak {ana.peak_mib():.0f} MiB")


def test_poisoned_history_for_a_latecomer():
    found = []
    for lie in ("poisoned", "withholding", "endless_heads"):
        with Lan(4) as lan:
            ana, ben = company(lan, "Ana", "Ben")
            mallory = HostilePeer(lan, 3, lie)
            mallory.join(CHANNEL)
            eventually(lambda: "Mallory" in ana.online(CHANNEL), 30, "Ana sees Mallory")
            ana.send_many(CHANNEL, [f"text {number}" for number in range(2_000)])
            last = ana.texts(CHANNEL, 2_000)
            eventually(lambda: ben.texts(CHANNEL, 2_000) == last, 30, "Ben has everything")
            eventually(lambda: mallory.texts(CHANNEL) == last, 60, "Mallory has everything")
            ana.stop()
            cem = lan.node("Cem", host=4)
            # Whom Cem asks first is chance; so Ben does not answer until Mallory has.
            ben.signal(signal.SIGSTOP)
            try:
                cem.join(CHANNEL)
                eventually(mallory.has_lied, 60, "Mallory was asked, and lied", every=0.01)
            finally:
                ben.signal(signal.SIGCONT)
            started = time.monotonic()
            took = seconds_until(lambda: cem.texts(CHANNEL, 2_000) == last, 60, "Cem has what was said", since=started)
            ben.cli("send", CHANNEL, "after", "--wait", "10")
            eventually(lambda: cem.texts(CHANNEL, 1) == ["after"], 20, "Cem hears what is said after")
            expect(cem.texts(CHANNEL, 3_000) == [*last, "after"], "nothing else, each once")
            expect(cem.peak_mib() < RESIDENT_MIB_MAX, f"Cem took {cem.peak_mib():.0f} MiB")
            found.append(f"{lie.replace('_', ' ')} {took:.2f} s")
    return "2,000 texts of who is off: " + ", ".join(found)
