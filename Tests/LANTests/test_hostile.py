"""Noise, replays, half-open and slow connections: the node lives, stays small, and real peers still get in."""
import os
import random
import select
import socket
import time

from harness import GROUP, Failure, Lan, eventually, expect, seconds_until
from pcap import Traffic

RESIDENT_MIB_MAX = 200
ATTACKER = 4


def begin(lan):
    """Ana and Ben, with what they said recorded; the attacker is a host of its own."""
    ana, ben = lan.node("Ana", host=1), lan.node("Ben", host=2)
    with lan.capture() as capture:
        for node in (ana, ben):
            node.join("garden", "seven wet dogs")
        for node in (ana, ben):
            eventually(lambda: node.online("garden") == {"Ana", "Ben"}, 5, "both are there")
        ana.cli("send", "garden", "before", "--wait", "5")
        ana.cli("tell", "Ben", "before")
    return ana, ben, Traffic(capture.path)


def still_well(lan, nodes, host=3, name="Cem"):
    """A new peer gets in within 5 s, and messages pass."""
    cem = lan.node(name, host=host)
    started = time.monotonic()
    cem.join("garden", "seven wet dogs")
    everybody = {"Ana", "Ben", name}
    for node in (*nodes, cem):
        seconds_until(lambda: node.online("garden") == everybody, 5, f"{node.name} and the new peer meet", started)
    took = time.monotonic() - started
    nodes[0].cli("send", "garden", "after")
    for node in (*nodes, cem):
        eventually(lambda: "after" in node.texts("garden"), 5, f"{node.name} has the message sent after")
        node.expect_alive()
        expect(node.peak_mib() < RESIDENT_MIB_MAX, f"{node.name} took {node.peak_mib():.0f} MiB")
    texts = nodes[1].texts("garden")
    expect(sorted(texts) == ["after", "before"], f"nothing was forged or doubled: {texts}")
    return took, max(node.peak_mib() for node in nodes)


def test_random_flipped_and_replayed_datagrams():
    dice = random.Random(76)
    with Lan(ATTACKER) as lan:
        ana, ben, traffic = begin(lan)
        expect(traffic.datagrams, "there are datagrams to replay")
        sender = lan.inside(ATTACKER, lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        targets = [GROUP] + [(ana.address, port) for port in ana.udp_ports()] + [(ana.address, GROUP[1])]
        sent = 0

        def shoot(payload):
            nonlocal sent
            for target in targets:
                try:
                    sender.sendto(payload, target)
                    sent += 1
                except (BlockingIOError, ConnectionError):
                    pass

        for size in (0, 1, 2, 16, 1231, 1232, 1233, 9000, 65507):
            shoot(dice.randbytes(size))
        for _ in range(5000):
            shoot(dice.randbytes(dice.randrange(1, 1400)))
        captured = [payload for _, _, payload in traffic.datagrams if payload]
        for payload in captured * 3:
            shoot(payload)
        for _ in range(5000):
            flipped = bytearray(dice.choice(captured))
            # In the header mostly: what follows is sealed, and any change there is the same.
            bit = dice.randrange(min(len(flipped), dice.choice((4, 64, 2000))) * 8)
            flipped[bit // 8] ^= 1 << bit % 8
            shoot(bytes(flipped[:dice.choice((len(flipped), dice.randrange(len(flipped) + 1)))]))
        took, peak = still_well(lan, (ana, ben))
        return f"{sent:,} datagrams; a new peer in {took:.2f} s; peak {peak:.1f} MiB"


def dial(lan, node, count, port):
    """So many connections, and how many of them the node's kernel answered within 3 s."""
    def connect():
        sockets = []
        for _ in range(count):
            link = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
            link.setblocking(False)
            link.connect_ex((node.address, port))
            sockets.append(link)
        return sockets

    links = lan.inside(ATTACKER, connect)
    poll = select.poll()
    for link in links:
        poll.register(link, select.POLLOUT)
    try:
        eventually(lambda: len(poll.poll(0)) == count, 3, "all are answered")
    except Failure:
        # A node may leave the rest waiting in the kernel, if real peers get in all the same.
        pass
    return links, len(poll.poll(0))


def push(links, data):
    for link in links:
        try:
            link.send(data)
        except OSError:
            pass


def closed(links):
    """How many of them the node has closed."""
    count = 0
    for link in links:
        try:
            count += link.recv(4096) == b""
        except (BlockingIOError, InterruptedError):
            pass
        except OSError:
            count += 1
    return count


def test_half_open_connections_by_the_thousand():
    with Lan(ATTACKER) as lan:
        ana, ben, _ = begin(lan)
        links, answered = dial(lan, ana, 1500, ana.tcp_port())
        took, peak = still_well(lan, (ana, ben))
        for link in links:
            link.close()
        return f"1,500 dialled, {answered:,} answered; a new peer in {took:.2f} s; peak {peak:.1f} MiB"


def test_lengths_and_slow_handshakes():
    dice = random.Random(77)
    with Lan(ATTACKER) as lan:
        ana, ben, traffic = begin(lan)
        port = ana.tcp_port()
        openings = [stream for stream in traffic.streams.values() if len(stream) > 64]
        expect(openings, "there are sessions to imitate")
        lengths, _ = dial(lan, ana, 20, port)
        for link, data in zip(lengths, [b"\xff" * 4, b"\xff" * 8, b"\0" * 4, b"\x7f\xff\xff\xff", b"\xff\xff" * 4096,
                                        b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", dice.randbytes(100_000)] * 3):
            push([link], data)
        # What was recorded, again: whole, and cut off with a huge length after it.
        replayed, _ = dial(lan, ana, 20, port)
        for link in replayed:
            stream = dice.choice(openings)
            push([link], stream[:dice.randrange(1, len(stream))] + b"\xff" * 32)
        slow, _ = dial(lan, ana, 30, port)
        position = 0

        def drip():
            nonlocal position
            push(slow, openings[0][position:position + 1])
            position += 1
            return closed(slow) == len(slow)

        took, peak = still_well(lan, (ana, ben))
        # A byte at a time, as a real session begins: the time for a handshake ends all the same.
        ended = seconds_until(drip, 60, "the node gives up slow handshakes", every=0.5)
        eventually(lambda: closed(lengths + replayed) == 40, 60, "the node closes what is no session")
        ana.expect_alive()
        expect(os.path.exists(f"/proc/{ben.process.pid}"), "Ben lives")
        return f"a new peer in {took:.2f} s; slow handshakes ended after {ended:.0f} s; peak {peak:.1f} MiB"
