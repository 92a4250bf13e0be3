"""Who has no passphrase learns nothing and changes nothing; who listens on the wire reads nothing."""
import base64
import os
import secrets
import socket

from harness import GROUP, MIB, Lan, eventually, expect
from pcap import Traffic


def test_outsider_and_capture_learn_nothing():
    channel, passphrase = "Küche-" + secrets.token_hex(6), "pass-" + secrets.token_hex(8)
    names = ["Zoë-" + secrets.token_hex(5), "Yan-" + secrets.token_hex(5)]
    text, told = "text-" + secrets.token_hex(16), "told-" + secrets.token_hex(16)
    file_name, content = "plan-" + secrets.token_hex(8) + ".pdf", os.urandom(3 * MIB + 5)
    control = b"control-" + secrets.token_hex(8).encode()
    with Lan(3) as lan:
        (lan.folder / file_name).write_bytes(content)
        with lan.capture() as capture:
            zoe, yan = lan.node(names[0]), lan.node(names[1])
            eve = lan.node("Eve")
            zoe.join(channel, passphrase)
            yan.join(channel, passphrase)
            heard = eve.run("join", channel, "--passphrase-file", passphrase_file(lan, "not it"), json_lines=False)
            for node in (zoe, yan):
                eventually(lambda: node.online(channel) == set(names), 5, f"{node.name} sees the other")
            zoe.cli("send", channel, text, "--wait", "5")
            yan.cli("tell", zoe.peer_id, told)
            yan.cli("hand", channel, "up")
            (media,) = zoe.share(channel, lan.folder / file_name)
            eventually(lambda: yan.cli("media", channel), 5, "the file is announced")
            path = yan.download(media, lan.folder / "copy")
            expect(path.read_bytes() == content, "the file arrives")
            eve.cli("send", channel, "let me in")

            expect(set(eve.members(channel)) == {eve.peer_id}, "Eve sees no member but herself")
            expect(eve.texts(channel) == ["let me in"], "Eve has no message but her own")
            expect(eve.cli("media", channel) == [], "Eve sees no file")
            expect(eve.run("download", media, "-o", str(lan.folder / "eve")).returncode != 0, "Eve gets no file by ID")
            expect(not (lan.folder / "eve").exists(), "nor a part of one")
            for node in (zoe, yan):
                expect(set(node.members(channel)) == {zoe.peer_id, yan.peer_id}, f"{node.name} does not see Eve")
                expect(node.texts(channel) == [text], f"{node.name} has nothing of Eve's")
            said = (heard.stdout + heard.stderr).decode()
            expect(heard.returncode == 0 and "heard" in said and "passphrase" in said,
                   f"join says that others were heard, and asks about the passphrase: {said}")
            # Shows that the capture sees what is there to be seen, up to its end.
            sender = lan.inside(3, lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
            eventually(lambda: sender.sendto(control, GROUP) and control in capture.path.read_bytes(), 10,
                       "the capture is written")
        traffic = Traffic(capture.path)
        everything = capture.path.read_bytes()
        secrets_of_ours = {
            "the channel's name": channel, "a display name": names[0], "the other display name": names[1],
            "the text": text, "what was told": told, "the file's name": file_name, "the passphrase": passphrase,
            "a PeerID as text": zoe.peer_id, "another PeerID as text": yan.peer_id, "the media ID as text": media,
            "a PeerID": raw(zoe.peer_id), "another PeerID": raw(yan.peer_id),
            "the file's first bytes": content[:48], "bytes of the file": content[MIB + 77:MIB + 125],
            "the file's last bytes": content[-48:],
        }
        expect(traffic.contains(control), "the capture holds what was sent in clear")
        volume = sum(map(len, traffic.streams.values()))
        expect(volume > len(content), f"the capture holds the file's transfer, {volume} bytes")
        for what, needle in secrets_of_ours.items():
            data = needle.encode() if isinstance(needle, str) else needle
            for form in {data, data[:len(data) // 2] if len(data) >= 24 else data}:
                expect(form not in everything and not traffic.contains(form), f"{what} is on the wire in clear")
        return f"{len(traffic.datagrams)} datagrams and {volume / MIB:.1f} MiB of TCP searched"


def raw(peer_id):
    return base64.b32decode(peer_id.upper() + "=" * (-len(peer_id) % 8))


def passphrase_file(lan, text):
    path = lan.folder / "other.passphrase"
    path.write_text(text)
    path.chmod(0o600)
    return str(path)
