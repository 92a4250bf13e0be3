"""Owned channels: a class joins by one link; who was removed reads nothing said afterwards, whatever it recorded."""
import ctypes
import hashlib
import secrets
import shutil

from harness import Lan, at_once, eventually, expect
from pcap import Traffic

CHANNEL = "Klasse 7/b"


def invite(node, *options):
    return node.cli("invite", CHANNEL, *options)[0]["link"]


def join(node, link):
    # Never as an argument: other users of the machine see those.
    return node.cli("join", "--link-file", "-", input=link)


def test_thirty_join_by_one_link():
    with Lan(31) as lan:
        teacher = lan.node("Teacher")
        teacher.cli("create", CHANNEL)
        link = invite(teacher, "--expires", "8h", "--uses", "30")
        printed = teacher.run("invite", CHANNEL, "--expires", "8h", json_lines=False)
        expect("█".encode() in printed.stdout and b"parley://join/Klasse%207%2Fb#" in printed.stdout,
               f"a QR code and a link are printed: {printed.stdout[-300:]}")
        expect(link not in " ".join(map(str, teacher.log_text().split())), "the link stands in no log")
        pupils = [lan.node(f"P{number}") for number in range(30)]
        at_once(*[lambda node=node: join(node, link) for node in pupils])
        everybody = {"Teacher"} | {node.name for node in pupils}
        for node in (teacher, *pupils[::7]):
            eventually(lambda: node.online(CHANNEL) == everybody, 60, f"{node.name} sees all 31")
        teacher.cli("send", CHANNEL, "good morning")
        for node in pupils:
            eventually(lambda: "good morning" in node.texts(CHANNEL), 60, f"{node.name} has the text")
        pupils[29].cli("send", CHANNEL, "good morning, teacher")
        eventually(lambda: "good morning, teacher" in teacher.texts(CHANNEL), 30, "the teacher has the answer")


def test_altered_links_are_refused():
    with Lan(2) as lan:
        teacher, pupil = lan.node("Teacher"), lan.node("Pupil")
        teacher.cli("create", CHANNEL)
        link = invite(teacher)
        other = "a" if link[-9] != "a" else "b"
        for altered, reason in [(link[:-9] + other + link[-8:], "altered"), (link[:-3], "altered"),
                                ("https://example.org", "no invitation"), (link.replace("7%2F", "8%2F"), "altered")]:
            said = pupil.refused(65, "join", "--link-file", "-", input=altered)
            expect(reason in said and (altered[30:60] or "\0") not in said, f"the reason, without the link: {said}")
        expect(pupil.cli("channels") == [], "nothing was joined")
        said = pupil.run("join", link)
        expect(said.returncode == 0 and b"can see" in said.stderr, "an argument is warned of")
        expect(pupil.refused(73, "create", CHANNEL), "a second channel of that name is refused")
        expect("owner" in pupil.refused(77, "invite", CHANNEL), "a member invites nobody")


class Generation:
    """What its secret opens (Wire.docc, Wire.md and Datagrams.md)."""
    sodium = ctypes.CDLL("libsodium.so.23")

    def __init__(self, channel, secret):
        self.discovery_key, self.datagram_key = (
            hashlib.blake2b(b"parley/1/channel/" + label + channel, digest_size=32, key=secret).digest()
            for label in (b"discovery", b"datagram"))

    def opens(self, datagram):
        """The frames; nothing when it does not."""
        if len(datagram) < 60 or datagram[:4] != b"PL\1\0":
            return b""
        tag = hashlib.blake2b(datagram[4:12], digest_size=16, key=self.discovery_key).digest()[:8]
        if tag != datagram[12:20]:
            return b""
        sealed = datagram[44:]
        plain = ctypes.create_string_buffer(len(sealed))
        status = self.sodium.crypto_aead_xchacha20poly1305_ietf_decrypt(
            plain, None, None, sealed, ctypes.c_ulonglong(len(sealed)), datagram[:44], ctypes.c_ulonglong(44),
            datagram[20:44], self.datagram_key)
        return plain.raw[:len(sealed) - 16] if status == 0 else b""


def known_generations(node):
    """The secrets in a profile: what a thief of it has."""
    found = []
    for path in (node.home / "channels").iterdir():
        data = path.read_bytes()
        if data[:9] != b"PARLEYCH\2":
            continue
        founder, salt, identifier, at = data[9:41], data[41:57], data[57:89], 90 + data[89]
        hashed = b"parley/1/channel/owned" + founder + salt + data[90:at]
        expect(hashlib.blake2b(hashed, digest_size=32).digest() == identifier, "the profile is read as it was written")
        count = data[at]
        at += 1
        for _ in range(count):
            found.append(Generation(identifier, data[at + 8:at + 40]))
            at += 50 + int.from_bytes(data[at + 48:at + 50], "big")
        expect(at == len(data), "the profile is read to its end")
    return found


def opened(traffic, generations):
    texts = [generation.opens(payload) for _, _, payload in traffic.datagrams for generation in generations]
    return [text for text in texts if text]


def test_the_removed_read_nothing_afterwards():
    before, after = "before-" + secrets.token_hex(8), "after-" + secrets.token_hex(8)
    with Lan(4) as lan:
        teacher, eve, ana, ben = [lan.node(name) for name in ("Teacher", "Eve", "Ana", "Ben")]
        teacher.cli("create", CHANNEL)
        link = invite(teacher)
        for node in (eve, ana, ben):
            join(node, link)
        all_names = {"Teacher", "Eve", "Ana", "Ben"}
        for node in (teacher, eve, ana, ben):
            eventually(lambda: node.online(CHANNEL) == all_names, 30, f"{node.name} sees all")
        with lan.capture() as capture:
            ana.cli("send", CHANNEL, before, "--wait", "10")
            eventually(lambda: before in eve.texts(CHANNEL), 10, "Eve has what is said before")
        first = lan.folder / "before.pcap"
        shutil.move(capture.path, first)
        ben.stop()
        with eve.watch(CHANNEL) as watch:
            teacher.cli("remove", CHANNEL, eve.peer_id)
            watch.wait(lambda event: event.get("event", event.get("type")) == "refused", 30, "Eve is told why")
        for node in (teacher, ana):
            eventually(lambda: "Eve" not in node.online(CHANNEL), 30, f"{node.name} lists Eve no more")
        with lan.capture() as capture:
            ana.cli("send", CHANNEL, after, "--wait", "10")
            eventually(lambda: after in teacher.texts(CHANNEL), 10, "the members have it")
            eve.run("send", CHANNEL, "let me in")
            # Who was away gets the secret when it comes back.
            ben.start()
            eventually(lambda: after in ben.texts(CHANNEL), 60, "Ben catches up")
        second, generations = Traffic(capture.path), known_generations(eve)
        expect(after not in eve.texts(CHANNEL), "Eve has nothing of what was said afterwards")
        for node in (teacher, ana, ben):
            expect("let me in" not in node.texts(CHANNEL), f"{node.name} shows nothing of hers")
        # Hers, and Ben's before he had the new one, are all that can be opened with what she knew.
        own = {b"\x0a\x4d\x00" + bytes([node.host]) for node in (eve, ben)}
        second.datagrams = [item for item in second.datagrams if item[0][0] not in own]
        earlier, later = opened(Traffic(first), generations), opened(second, generations)
        expect(any(before.encode() in text for text in earlier), "the keys open what was said before")
        # Beacons, and suspicions that somebody is gone, may be: members say where they are under a secret that who was
        # away still has. Nothing else.
        kinds = sorted(text[0] for text in later)
        expect(len(second.datagrams) > len(later) and set(kinds) <= {1, 6},
               f"of {len(second.datagrams)} datagrams who was removed reads frames of the types {kinds}")
        expect(not any(after.encode() in text for text in later), "nothing of what was said is among them")
        return f"{len(earlier)} readable before; of {len(second.datagrams)} after {len(later)}: who is where, no more"
