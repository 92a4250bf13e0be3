"""What a node costs: idle, and with large files."""
import os
import shutil
import time

from harness import LONG, MIB, Lan, Skip, eventually, expect

# In MiB as the harness measures. 20 MB were wanted, and held until the page, roles and tokens, then the kinds of
# messages made the program larger: half of what is resident are pages of the program itself, a third of libraries;
# 2.6 MB are written to.
IDLE_MIB_MAX = 24_000_000 / MIB
LARGE_FILE_MIB_MAX = 64
# 150 MB.
PART_OF_HUGE_FILE_MIB_MAX = 143


def test_an_idle_node_of_ten_is_small():
    seconds = 60 if LONG else 20
    with Lan(10) as lan:
        nodes = [lan.node(f"Node {number}") for number in range(10)]
        for node in nodes:
            node.join("garden")
        everybody = {node.name for node in nodes}
        for node in nodes:
            eventually(lambda: node.online("garden") == everybody, 10, f"{node.name} sees all ten")
        used, since = [node.cpu_seconds() for node in nodes], time.monotonic()
        eventually(lambda: time.monotonic() - since >= seconds, seconds + 5, "an idle while is over", every=1)
        cpu = max(node.cpu_seconds() - before for node, before in zip(nodes, used)) * 60 / seconds
        resident = max(node.resident_mib() for node in nodes)
        expect(resident < IDLE_MIB_MAX, f"an idle node takes {resident:.1f} MiB; the limit is {IDLE_MIB_MAX:.1f}")
        return f"{resident:.1f} MiB of {IDLE_MIB_MAX:.1f} resident, {cpu:.3f} processor seconds a minute"


def test_a_large_file_needs_little_memory():
    size = (4096 if LONG else 512) * MIB
    with Lan(2) as lan:
        if shutil.disk_usage(lan.folder).free < size + 512 * MIB:
            raise Skip(f"needs {size // MIB + 512} MiB free in {lan.folder}")
        ana, ben = lan.node("Ana"), lan.node("Ben")
        for node in (ana, ben):
            node.join("garden")
        eventually(lambda: ben.online("garden") == {"Ana", "Ben"}, 5, "both are there")
        path = lan.folder / "sparse"
        with open(path, "wb") as file:
            file.truncate(size)
            # Not the same everywhere: a block in the wrong place shows.
            for mark in range(0, size, 64 * MIB):
                file.seek(mark)
                file.write(mark.to_bytes(8, "big"))
        before = [node.resident_mib() for node in (ana, ben)]
        for node in (ana, ben):
            node.reset_peak()
        started = time.monotonic()
        (media,) = ana.share("garden", path)
        shared = time.monotonic()
        eventually(lambda: ben.cli("media", "garden"), 5, "the file is known")
        copy = ben.download(media, lan.folder / "copy", timeout=900)
        took = time.monotonic() - shared
        expect(os.stat(copy).st_size == size, "the copy has its size")
        with open(copy, "rb") as file:
            for mark in range(0, size, 64 * MIB):
                file.seek(mark)
                expect(file.read(8) == mark.to_bytes(8, "big"), f"the copy is right at {mark}")
        added = [node.peak_mib() - was for node, was in zip((ana, ben), before)]
        expect(max(added) < LARGE_FILE_MIB_MAX,
               f"sharing added {added[0]:.0f} MiB, downloading {added[1]:.0f}; the limit is {LARGE_FILE_MIB_MAX}")
        return (f"{size // MIB} MiB: shared in {shared - started:.1f} s (+{added[0]:.1f} MiB), "
                f"downloaded in {took:.1f} s (+{added[1]:.1f} MiB), {size / MIB / took:.0f} MiB/s")


def test_110_gib_shared_and_read_in_part():
    """A sparse file, with marks in it that show whether the right bytes come."""
    if not LONG:
        raise Skip("PARLEY_LONG=1 runs it")
    size, step = 110 << 30, 11 << 30
    with Lan(2) as lan:
        ana, ben = lan.node("Ana"), lan.node("Ben")
        for node in (ana, ben):
            node.join("garden")
        eventually(lambda: ben.online("garden") == {"Ana", "Ben"}, 5, "both are there")
        path = lan.folder / "sparse"
        with open(path, "wb") as file:
            file.truncate(size)
            for mark in range(0, size, step):
                file.seek(mark)
                file.write(mark.to_bytes(8, "big") + os.urandom(MIB))
        for node in (ana, ben):
            node.reset_peak()
        started = time.monotonic()
        (row,) = [row for row in ana.cli("share", "garden", str(path), timeout=3600) if "media_id" in row]
        shared = time.monotonic() - started
        eventually(lambda: ben.cli("media", "garden"), 5, "the file is known")
        times = []
        for start in (0, 5 * step, size - 3 * MIB):
            part = lan.folder / f"part{start}"
            started = time.monotonic()
            ben.cli("download", row["media_id"], f"--range={start}-{start + 2 * MIB - 1}", "-o", str(part), timeout=600)
            times.append(time.monotonic() - started)
            with open(path, "rb") as file:
                file.seek(start)
                expect(part.read_bytes() == file.read(2 * MIB), f"the part from {start} on is right")
        peaks = [node.peak_mib() for node in (ana, ben)]
        expect(max(peaks) < PART_OF_HUGE_FILE_MIB_MAX,
               f"sharing took {peaks[0]:.0f} MiB, downloading {peaks[1]:.0f}; the limit is {PART_OF_HUGE_FILE_MIB_MAX}")
        return (f"110 GiB shared in {shared:.1f} s ({peaks[0]:.0f} MiB at most), three parts of 2 MiB read in "
                f"{', '.join(f'{took:.2f}' for took in times)} s ({peaks[1]:.0f} MiB at most)")
