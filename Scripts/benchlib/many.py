"""One file to many at once, each host behind a link of its own."""
import pathlib
import sys
import tempfile
import time

from common import MIB, benchmark_program, check_same, make_file, span
from hosts import Hosts, Node


def transfer(folder, program, source, count, rate):
    """Seconds until all have the file, from the first request; bytes that left the source's interface, in files."""
    hosts, nodes = Hosts("many"), []
    try:
        for index, host in enumerate(hosts.star(count + 1, rate)):
            nodes.append(Node(host, folder, f"node{index}", program, "v0"))
        for node in nodes:
            node.ask(f"members {count + 1}")
        sender, receivers = nodes[0], nodes[1:]
        media = sender.ask(f"share {source}")["id"]
        idle = [node.memory("VmRSS") for node in nodes]
        sent, took = Hosts.sent_bytes(hosts.star_hosts[0]), [node.seconds() for node in nodes]
        orders, start = [], time.monotonic()
        for index, node in enumerate(receivers):
            target = folder / f"in{index}"
            target.mkdir()
            orders.append((node, node.order(f"download {media} {target}"), target))
        for node, number, _ in orders:
            node.answer(number, 300)
        seconds = time.monotonic() - start
        sent = Hosts.sent_bytes(hosts.star_hosts[0]) - sent
        took = [node.seconds() - was for node, was in zip(nodes, took)]
        above = [node.memory("VmHWM") - was for node, was in zip(nodes, idle)]
        for _, _, target in orders:
            check_same(source, target / source.name)
        size = source.stat().st_size
        return {"seconds": seconds, "times": seconds / (size * 8 / rate), "copies": sent / size, "sender": took[0],
                "receiver": max(took[1:]), "sender_above": above[0], "receiver_above": max(above[1:])}
    finally:
        for node in nodes:
            node.stop()
        hosts.close()


def measure(arguments, folder):
    trials = [(4, 1_000_000_000, 256)] + ([(30, 100_000_000, 32)] if arguments.thirty else [])
    program, results = benchmark_program(), []
    for count, rate, mib in trials:
        source, rows = make_file(folder / "file.bin", mib), []
        for run in range(arguments.runs):
            with tempfile.TemporaryDirectory(dir=folder) as place:
                rows.append(transfer(pathlib.Path(place), program, source, count, rate))
            print(f"run {run + 1}: {mib} MiB to {count}: {rows[-1]['seconds']:.2f} s, "
                  f"{rows[-1]['copies']:.2f} copies", file=sys.stderr)
        source.unlink()
        results.append({"count": count, "rate": rate, "mib": mib, "runs": rows})
    return results


def report(results):
    print("\nTo many at once, each host behind a link of its own (tc tbf, both ways)\n")
    print("| receivers | link, Mbit/s | MiB | wire s | seconds until all have it | times the wire | copies sent "
          "| source s | a receiver s | source MiB above idle | a receiver |")
    print("|---|---|---|---|---|---|---|---|---|---|---|")
    for trial in results:
        rows, wire = trial["runs"], trial["mib"] * MIB * 8 / trial["rate"]
        print(f"| {trial['count']} | {trial['rate'] // 1_000_000:,} | {trial['mib']} | {wire:.2f} "
              f"| {span(rows, 'seconds', '{:.2f}')} | {span(rows, 'times', '{:.2f}')} "
              f"| {span(rows, 'copies', '{:.2f}')} | {span(rows, 'sender', '{:.2f}')} "
              f"| {span(rows, 'receiver', '{:.2f}')} | {span(rows, 'sender_above', '{:.0f}')} "
              f"| {span(rows, 'receiver_above', '{:.0f}')} |")
    print("\nWire: the file's bytes at the link's rate, once. Copies: bytes that left the source's interface, headers "
          "included. Of\nreceivers the one with the most. All hosts share this machine's cores.")
