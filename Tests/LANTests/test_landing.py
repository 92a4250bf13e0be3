"""Where downloads come down: too little space, a folder that goes or may not be written, and what remains then."""
import array
import concurrent.futures
import contextlib
import fcntl
import hashlib
import os
import shutil

from harness import MIB, Lan, eventually, expect
from test_disk import remount, small_disk

FS_IOC_GETFLAGS, FS_IOC_SETFLAGS, FS_IMMUTABLE_FL = 0x80086601, 0x40086602, 0x10


def content(size, seed):
    return hashlib.shake_256(seed.encode()).digest(MIB) * (size // MIB) + bytes(size % MIB)


def pair(lan):
    ana, ben = lan.node("Ana"), lan.node("Ben")
    for node in (ana, ben):
        node.join("garden")
    eventually(lambda: ana.online("garden") == ben.online("garden") == {"Ana", "Ben"}, 10, "they meet")
    return ana, ben


def shared(lan, ana, ben, name, data):
    path = lan.folder / name
    path.write_bytes(data)
    [media] = ana.share("garden", path)
    share_with(ana, ben, media)
    return media


def share_with(ana, ben, media):
    eventually(lambda: any(row.get("media_id") == media for row in ben.history("garden")), 10,
               "Ben hears what Ana shared")


def immutable(folder, is_set):
    """Not even root may make a name there; what is open can still be written."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        flags = array.array("i", [0])
        fcntl.ioctl(descriptor, FS_IOC_GETFLAGS, flags, True)
        flags[0] = flags[0] | FS_IMMUTABLE_FL if is_set else flags[0] & ~FS_IMMUTABLE_FL
        fcntl.ioctl(descriptor, FS_IOC_SETFLAGS, flags)
    finally:
        os.close(descriptor)


def parts(folder):
    return [path for path in folder.iterdir() if path.name.startswith(".parley-")]


@contextlib.contextmanager
def meanwhile(job):
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        yield pool.submit(job)


def slow_link(lan, host):
    lan.on(host, "tc", "qdisc", "add", "dev", "eth0", "root", "tbf", "rate", "100mbit", "burst", "64kb", "latency",
           "50ms")


def test_too_little_space_is_said_before_the_first_byte():
    """150 MB into 100 MB: need and have are named, nothing is written; with room it completes."""
    size = 150_000_000
    with Lan(2) as lan, small_disk(lan, "small", "100000000") as disk:
        ana, ben = pair(lan)
        data = content(size, "space")
        media = shared(lan, ana, ben, "big", data)
        before = lan.traffic(2)[1]
        done = ben.run("download", media, folder=disk)
        message = done.stderr.decode()
        expect(done.returncode != 0 and str(size) in message and "free" in message, f"need is named: {message}")
        have = os.statvfs(disk)
        expect(str(have.f_bavail * have.f_frsize) in message, f"have is named: {message}")
        expect(list(disk.iterdir()) == [], "nothing was written")
        expect(lan.traffic(2)[1] - before < 2 * MIB, "nor fetched")
        remount(disk, "size=200m", ana, ben)
        path = ben.download(media, folder=disk)
        expect(path.read_bytes() == data, "with room it completes")
        expect(parts(disk) == [], "and leaves nothing beside it")


def test_a_folder_that_may_not_be_written_any_more():
    """The name is refused at the very end: what was fetched is kept, and lands without being fetched again."""
    with Lan(2) as lan, small_disk(lan, "small", "100m") as disk:
        ana, ben = pair(lan)
        data = content(32 * MIB, "permission")
        media = shared(lan, ana, ben, "plan", data)
        slow_link(lan, 1)
        with meanwhile(lambda: ben.run("download", media, folder=disk)) as job:
            eventually(lambda: parts(disk), 10, "it has begun")
            immutable(disk, True)
            try:
                done = job.result(60)
            finally:
                immutable(disk, False)
        message = done.stderr.decode()
        expect(done.returncode != 0 and "not permitted" in message, f"it is said what is wrong: {message}")
        expect(len(parts(disk)) == 1, "what was fetched is kept")
        before = lan.traffic(2)[1]
        path = ben.download(media, folder=disk)
        expect(path.read_bytes() == data, "it lands once that is allowed")
        expect(lan.traffic(2)[1] - before < 2 * MIB, "and is not fetched again")


def test_a_folder_that_is_removed():
    with Lan(2) as lan, small_disk(lan, "small", "100m") as disk:
        ana, ben = pair(lan)
        data = content(16 * MIB, "removed")
        media = shared(lan, ana, ben, "plan", data)
        target = disk / "in"
        target.mkdir()
        slow_link(lan, 1)
        with meanwhile(lambda: ben.run("download", media, "-o", str(target / "plan"))) as job:
            eventually(lambda: parts(target), 10, "it has begun")
            shutil.rmtree(target)
            done = job.result(60)
        message = done.stderr.decode()
        expect(done.returncode != 0 and "there is no such" in message, f"it is said what is wrong: {message}")
        target.mkdir()
        path = ben.download(media, path=target / "plan")
        expect(path.read_bytes() == data, "with the folder there it completes")
        expect(parts(target) == [], "and leaves nothing beside it")
