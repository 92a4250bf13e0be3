"""The interactive chat, at a terminal of its own."""
import os
import pty
import re
import subprocess
import threading

from harness import PARLEY, Failure, Lan, eventually, expect


class Terminal:
    """`parley chat` on a pseudo-terminal; what it shows is gathered."""

    def __init__(self, node, channel):
        ours, theirs = pty.openpty()
        self.process = subprocess.Popen(
            [PARLEY, "chat", channel, "--home", str(node.home)], stdin=theirs, stdout=theirs, stderr=theirs,
            start_new_session=True, env={**os.environ, "TERM": "xterm"})
        os.close(theirs)
        node.lan.processes.append(self.process)
        self.descriptor, self.shown = ours, b""
        self.arrived = threading.Condition()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        while True:
            try:
                data = os.read(self.descriptor, 65536)
            except OSError:  # EIO: nobody has the terminal open any more
                return
            with self.arrived:
                self.shown += data
                self.arrived.notify_all()

    def type(self, line):
        os.write(self.descriptor, line.encode() + b"\n")

    def wait(self, text, within=5):
        with self.arrived:
            if not self.arrived.wait_for(lambda: text.encode() in self.shown, within):
                raise Failure(f"the chat does not show {text!r} within {within} s: {self.shown[-500:]!r}")


def test_chat_at_a_terminal():
    with Lan(2) as lan:
        ana, ben = lan.node("Ana"), lan.node("Ben")
        for node in (ana, ben):
            node.join("garden", "seven wet dogs")
        for node in (ana, ben):
            eventually(lambda: node.online("garden") == {"Ana", "Ben"}, 5, "both are there")
        (lan.folder / "note.txt").write_text("a note")
        chat = Terminal(ana, "garden")

        def greeted():
            # Whatever the first line meets, the chat is up once one arrives.
            chat.type("typed by Ana")
            return "typed by Ana" in ben.texts("garden")

        eventually(greeted, 10, "what is typed arrives", every=0.5)
        ben.cli("send", "garden", "said by Ben")
        chat.wait("said by Ben")
        ben.cli("send", "garden", "-", input="\x1b[2Jwiped")
        chat.wait("wiped")
        expect(b"\x1b[2Jwiped" not in chat.shown, "a text cannot wipe the terminal")
        chat.type("/hand up")
        eventually(lambda: ben.members("garden")[ana.peer_id]["raise_hand"], 5, "/hand up raises the hand")
        before = len(chat.shown)
        chat.type("/members")
        eventually(lambda: b"Ben" in chat.shown[before:], 5, "/members shows Ben")
        chat.type(f"/share {lan.folder / 'note.txt'}")
        media = eventually(lambda: ben.cli("media", "garden"), 5, "/share announces the file")
        expect(media[0]["file_name"] == "note.txt", f"under its name: {media}")
        chat.type("/quit")
        status = chat.process.wait(10)
        expect(status == 0, f"/quit ends the chat properly: {status}")
        plain = re.sub(rb"\x1b\[[0-9;?]*[A-Za-z]", b"", chat.shown)
        expect(b"said by Ben" in plain, "what was shown can be read")
        ana.expect_alive()
        expect(ana.online("garden") == {"Ana", "Ben"}, "the node goes on after the chat")
