"""Messages while a file saturates the link between writer and reader."""
import pathlib
import sys
import tempfile
import threading
import time

from common import Stopped, benchmark_program, make_file, span
from hosts import Hosts, Node, wait_until

LINK = 100_000_000
RATE = 20


def trial(arguments, folder, program, source):
    hosts, nodes = Hosts("chat"), []
    count = int(arguments.chat_seconds * RATE)
    try:
        for index, host in enumerate(hosts.star(2, LINK)):
            nodes.append(Node(host, folder, f"node{index}", program, "v0"))
        for node in nodes:
            node.ask("members 2")
        sender, receiver = nodes
        rows = {"idle": latencies(sender, receiver, count)}
        media = sender.ask(f"share {source}")["id"]
        (folder / "in").mkdir()
        before = Hosts.sent_bytes(hosts.star_hosts[0])
        download = receiver.order(f"download {media} {folder / 'in'}")
        # Two seconds into it: the windows have found their size.
        wait_until(lambda: Hosts.sent_bytes(hosts.star_hosts[0]) - before > LINK // 4, 30, "the file does not come")
        before, start = Hosts.sent_bytes(hosts.star_hosts[0]), time.monotonic()
        # With the bytes and against them.
        orders = [threading.Thread(target=lambda: rows.update(with_it=latencies(sender, receiver, count))),
                  threading.Thread(target=lambda: rows.update(against=latencies(receiver, sender, count)))]
        for order in orders:
            order.start()
        for order in orders:
            order.join()
        seconds = time.monotonic() - start
        share = (Hosts.sent_bytes(hosts.star_hosts[0]) - before) * 8 / seconds / LINK
        if receiver.is_done(download):
            raise Stopped("the download ended before the messages: take a larger file, with --chat-mib")
        if "with_it" not in rows or "against" not in rows:
            raise Stopped("not every message was heard")
        row = {"share": share * 100}
        for name, values in rows.items():
            values.sort()
            row |= {f"{name}_p50": values[len(values) // 2], f"{name}_p99": values[len(values) * 99 // 100],
                    f"{name}_max": values[-1]}
        return row
    finally:
        for node in nodes:
            node.stop()
        hosts.close()


def latencies(writer, reader, count):
    """Milliseconds."""
    reader.ask("heard 0")
    writer.ask(f"write {count} {RATE}")
    return [value / 1_000 for value in reader.ask(f"heard {count}")["microseconds"]]


def measure(arguments, folder):
    program, rows = benchmark_program(), []
    source = make_file(folder / "file.bin", arguments.chat_mib)
    for run in range(arguments.runs):
        with tempfile.TemporaryDirectory(dir=folder) as place:
            rows.append(trial(arguments, pathlib.Path(place), program, source))
        print(f"run {run + 1}: messages beside a transfer: p99 {rows[-1]['with_it_p99']:.1f} ms", file=sys.stderr)
    source.unlink()
    return rows


def report(rows, arguments):
    print(f"\nMessages of 256 bytes beside a transfer that fills a link of {LINK // 1_000_000} Mbit/s (tc tbf, both "
          "ways), ms\n")
    print("| | p50 | p99 | longest | of the link |")
    print("|---|---|---|---|---|")
    for name, text in (("idle", "before the transfer"), ("with_it", "the way of the file"), ("against", "against it")):
        share = span(rows, "share", "{:.0f} %") if name == "with_it" else ""
        print(f"| {text} | {span(rows, name + '_p50', '{:.1f}')} | {span(rows, name + '_p99', '{:.1f}')} "
              f"| {span(rows, name + '_max', '{:.1f}')} | {share} |")
    print(f"\n{RATE} a second each way for {arguments.chat_seconds:g} s, from when each was due; a file of "
          f"{arguments.chat_mib} MiB, which is on its way before\nthe first and after the last. Of the link: what left "
          "the source's interface meanwhile.")
