"""A home belongs to one node and one user; the commands say what is wrong, with their exit status."""
import os
import socket
import stat
import subprocess

from harness import PARLEY, Lan, eventually, expect

COMMANDS = ["up", "down", "status", "id", "join", "leave", "channels", "members", "send", "tell", "hand", "share",
            "unshare", "media", "download", "watch", "history", "chat"]


def other_user(job):
    """The name of the error with which a job of another user (nobody, 65534) ends; empty when it succeeds."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        name = ""
        try:
            os.setgroups([])
            os.setgid(65534)
            os.setuid(65534)
            job()
        except BaseException as error:
            name = type(error).__name__
        os.write(write, name.encode())
        os._exit(0)
    os.close(write)
    os.waitpid(child, 0)
    with os.fdopen(read, "rb") as result:
        return result.read().decode()


def test_a_second_node_on_one_home_is_refused():
    with Lan(1) as lan:
        ana = lan.node("Ana")
        second = subprocess.run(ana.command(), capture_output=True, timeout=20)
        text = second.stderr.decode()
        expect(second.returncode not in (0, 64), f"the second refuses: {second}")
        expect(str(ana.process.pid) in text, f"and names process {ana.process.pid}: {text}")
        ana.expect_alive()
        expect(ana.cli("id")[0]["peer_id"] == ana.peer_id, "the first goes on")


def test_only_the_owner_can_use_a_home():
    with Lan(1) as lan:
        ana = lan.node("Ana")
        ana.join("garden", "seven wet dogs")
        modes = {path: stat.S_IMODE(path.lstat().st_mode) for path in [ana.home, *ana.home.rglob("*")]}
        expect(modes[ana.home] == 0o700, f"the home is 0700: {oct(modes[ana.home])}")
        open_to_others = [str(path) for path, mode in modes.items() if mode & 0o077]
        expect(not open_to_others, f"nothing in it is open to others: {open_to_others}")
        sockets = [path for path in modes if path.is_socket()]
        expect(sockets and all(modes[path] == 0o600 for path in sockets), f"the API's socket is 0600: {sockets}")
        # Even where the way to the home is open.
        lan.folder.chmod(0o755)
        expect(other_user(lambda: socket.socket(socket.AF_UNIX).connect(str(sockets[0]))) == "PermissionError",
               "another user cannot use the API")
        expect(other_user(lambda: os.listdir(ana.home)) == "PermissionError", "nor list the home")
        environment = open(f"/proc/{ana.process.pid}/environ", "rb").read()
        arguments = open(f"/proc/{ana.process.pid}/cmdline", "rb").read()
        expect(b"seven wet dogs" not in environment + arguments, "the passphrase is in neither")


def test_a_node_comes_back_as_who_it_was():
    with Lan(2) as lan:
        ana, ben = lan.node("Ana"), lan.node("Ben")
        for node in (ana, ben):
            node.join("garden", "seven wet dogs")
        ana.cli("send", "garden", "kept", "--wait", "5")
        before = ana.peer_id
        ana.cli("down")
        status = ana.process.wait(10)
        expect(status == 0, f"down ends it properly: {status}")
        ana.refused(69, "status")
        ana.start()
        expect(ana.peer_id == before, "the same identity")
        eventually(lambda: ana.online("garden") == {"Ana", "Ben"}, 5, "in the same channel, without a passphrase")
        expect(ana.texts("garden") == ["kept"], "with its history")
        ana.kill9()
        ana.start()
        eventually(lambda: ana.online("garden") == {"Ana", "Ben"}, 8, "also after a crash")
        expect(ana.texts("garden") == ["kept"], "with its history, each message once")


def test_commands_say_what_is_wrong():
    with Lan(1) as lan:
        ana = lan.node("Ana")
        for name in COMMANDS:
            done = subprocess.run([PARLEY, name, "--help"], capture_output=True, text=True, timeout=10)
            expect(done.returncode == 0 and f"parley {name}" in done.stdout and "xample" in done.stdout,
                   f"parley {name} --help gives an example: {done.stdout[:200]}")
        version = subprocess.run([PARLEY, "--version"], capture_output=True, text=True, timeout=10)
        expect(version.returncode == 0 and version.stdout.strip(), "--version")
        ana.refused(64, "no-such-command")
        ana.refused(64, "send")
        ana.refused(64, "hand", "garden", "sideways")
        message = ana.refused(66, "send", "nowhere", "text")
        expect("join" in message, f"a channel not joined: what to do is said: {message}")
        ana.join("garden")
        ana.refused(66, "share", "garden", str(lan.folder / "missing"))
        ana.refused(65, "download", "not-a-media-id")
        ana.refused(65, "join", "x" * 65, "--open")
        ana.refused(66, "join", "other", "--passphrase-file", str(lan.folder / "missing"))
        command = [*ana.command()]
        command[command.index("--interface") + 1] = "nope0"
        command[command.index("--home") + 1] = str(lan.folder / "fresh")
        done = subprocess.run(command, capture_output=True, text=True, timeout=20)
        expect(done.returncode != 0 and "nope0" in done.stderr and "eth0" in done.stderr,
               f"an interface that is not there: those that are get named: {done.stderr}")
        expect(os.path.exists(f"/proc/{ana.process.pid}"), "the node goes on")
