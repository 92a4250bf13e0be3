"""The main job between three nodes on one LAN."""
import hashlib
import os
import struct
import zlib

from harness import MIB, Lan, at_once, eventually, expect, seconds_until

EVERYBODY = {"Ana", "Ben", "Cem"}


def three(lan, passphrase="seven wet dogs"):
    nodes = [lan.node(name) for name in ("Ana", "Ben", "Cem")]
    for node in nodes:
        node.join("garden", passphrase)
    for node in nodes:
        eventually(lambda: node.online("garden") == EVERYBODY, 5, f"{node.name} sees everybody")
    return nodes


def all_see(nodes, online, limit, what, since=None):
    return max(at_once(*(
        lambda node=node: seconds_until(lambda: node.online("garden") == online, limit, f"{node.name}: {what}", since)
        for node in nodes)))


def random_file(path, size):
    """Writes it and returns its SHA-256."""
    digest = hashlib.sha256()
    with open(path, "wb") as file:
        while size > 0:
            part = os.urandom(min(size, MIB))
            digest.update(part)
            file.write(part)
            size -= len(part)
    return digest.hexdigest()


def sha256(path):
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while part := file.read(MIB):
            digest.update(part)
    return digest.hexdigest()


def picture(path):
    """A small PNG, 64 by 64."""
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = b"".join(b"\0" + bytes((x * 4, y * 4, 128)[i] for x in range(64) for i in range(3)) for y in range(64))
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 64, 64, 8, 2, 0, 0, 0))
                     + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))
    return sha256(path)


def test_joining_leaving_and_crashing_are_seen_in_time():
    with Lan(4) as lan:
        ana, ben, cem = nodes = [lan.node(name) for name in ("Ana", "Ben", "Cem")]
        ana.join("garden", "seven wet dogs")
        ben.join("garden", "seven wet dogs")
        cem.join("garden", "seven wet dogs")
        joined = all_see(nodes, EVERYBODY, 1, "sees all three after the last has joined")

        cem.cli("leave", "garden")
        left = all_see([ana, ben], {"Ana", "Ben"}, 1, "sees that Cem left")
        expect(ana.offline("garden") == {"Cem"}, "who left stands in the offline section")
        cem.join("garden", "seven wet dogs")
        all_see(nodes, EVERYBODY, 2, "sees Cem again")

        cem.kill9()
        crashed = all_see([ana, ben], {"Ana", "Ben"}, 6, "sees that Cem crashed")
        for node in (ana, ben):
            expect(node.offline("garden") == {"Cem"}, f"{node.name} shows who crashed as offline")
        cem.start()
        all_see(nodes, EVERYBODY, 3, "sees Cem, who joined again by starting")
        expect(len(ana.members("garden")) == 3, "who came back is the same member")

        cem.stop()
        stopped = all_see([ana, ben], {"Ana", "Ben"}, 1, "sees that Cem stopped")
        return (f"joined {joined:.2f} s, left {left:.2f} s, kill -9 {crashed:.2f} s, SIGTERM {stopped:.2f} s")


def test_status_text_hand_and_tell_reach_everybody():
    with Lan(3) as lan:
        ana, ben, cem = nodes = three(lan)
        with ben.watch("garden") as watch:
            # The watch has begun once it shows something.
            def seen():
                ana.cli("send", "garden", "ping")
                return watch.events

            eventually(seen, 5, "Ben's watch shows an event", every=0.2)
            sent = ana.cli("send", "garden", "Hello World", "--wait", "5")[-1]
            expect(len(sent["delivered_to"]) == 2, f"--wait waits until both others have it: {sent}")
            event = watch.wait(lambda event: event.get("body") == "Hello World", 2, "the text")
            expect(event["sender"] == {"display_name": "Ana", "sender_id": ana.peer_id}, f"the sender is Ana: {event}")
            expect(event["message_id"] == sent["message_id"] and event["type"] == "text", f"the schema: {event}")
            ben.cli("hand", "garden", "up")
            for node in nodes:
                raised = seconds_until(
                    lambda: node.members("garden")[ben.peer_id]["raise_hand"] is True, 1, f"{node.name} sees the hand")
            watch.wait(lambda event: event.get("peer_id") == ben.peer_id and event.get("raise_hand"), 2, "the own hand")
        orders = [node.texts("garden") for node in nodes]
        expect(orders[0] == orders[1] == orders[2] and orders[0][-1] == "Hello World", f"one order: {orders}")
        ben.cli("hand", "garden", "down")
        eventually(lambda: not cem.members("garden")[ben.peer_id]["raise_hand"], 1, "Cem sees the hand go down")

        with cem.watch() as watch:
            def told():
                ana.cli("tell", "Cem", "for you alone")
                return [event for event in watch.events if event.get("body") == "for you alone"]

            eventually(told, 5, "Cem hears Ana", every=0.2)
        expect("for you alone" not in ben.texts("garden"), "Ben does not hear what is told to Cem")
        outcome = ana.cli("tell", cem.peer_id, "again")[-1]
        expect("delivered" in str(outcome), f"tell says that it was delivered: {outcome}")
        cem.stop()
        eventually(lambda: "Cem" in ana.offline("garden"), 2, "Ana sees that Cem is away")
        outcome = ana.cli("tell", cem.peer_id[:8], "for later")[-1]
        expect("queued" in str(outcome), f"tell says that it waits: {outcome}")
        message = ana.refused(66, "tell", "Nobody", "hm")
        expect("Nobody" in message, f"an unknown peer is named: {message}")
        return f"hand seen in {raised:.2f} s"


def test_an_ambiguous_name_is_refused_with_candidates():
    with Lan(3) as lan:
        ana, first, second = lan.node("Ana"), lan.node("Ben"), lan.node("Ben")
        for node in (ana, first, second):
            node.join("garden")
        eventually(lambda: ana.members("garden").keys() == {ana.peer_id, first.peer_id, second.peer_id}, 5, "all three")
        message = ana.refused(65, "tell", "Ben", "which one?")
        expect(first.peer_id[:4] in message and second.peer_id[:4] in message, f"both are named: {message}")
        expect("delivered" in str(ana.cli("tell", second.peer_id, "you")), "a PeerID says which")


def test_photo_and_file_arrive_by_media_id():
    size = 100 * MIB
    with Lan(3) as lan:
        ana, ben, cem = three(lan)
        photo, file = lan.folder / "sunset.png", lan.folder / "film.bin"
        hashes = picture(photo), random_file(file, size)
        (photo_id,), (file_id,) = ana.share("garden", photo, kind="photo"), ana.share("garden", file)
        for node in (ben, cem):
            rows = eventually(
                lambda: (rows := {row["media_id"]: row for row in node.cli("media", "garden")}).keys()
                >= {photo_id, file_id} and rows, 5, f"{node.name} sees both announced")
            expect(rows[photo_id]["type"] == "photo" and rows[photo_id]["file_name"] == "sunset.png", f"{rows}")
            expect(rows[file_id]["type"] == "file" and rows[file_id]["size"] == size, f"{rows}")
        for node in (ben, cem):
            path = node.download(photo_id, lan.folder / f"{node.name}.png")
            expect(sha256(path) == hashes[0], f"{node.name} has the photo unchanged")

        def fetch(node):
            path = lan.folder / f"{node.name}.bin"
            took = seconds_until(lambda: node.download(file_id, path), 240, f"{node.name} downloads")
            expect(sha256(path) == hashes[1], f"{node.name} has the file unchanged")
            expect(os.stat(path).st_mode & 0o111 == 0, "no executable bit")
            return took

        took = max(at_once(lambda: fetch(ben), lambda: fetch(cem)))
        piped = ben.run("download", photo_id, "-o", "-", json_lines=False)
        expect(hashlib.sha256(piped.stdout).hexdigest() == hashes[0], "-o - writes the bytes to standard output")
        unknown = file_id[:-1] + ("a" if file_id[-1] != "a" else "q")
        expect("media" in ben.refused(66, "download", unknown), "an unknown ID is refused, with what it is")
        return f"{size // MIB} MiB to two at once in {took:.1f} s ({2 * size / MIB / took:.0f} MiB/s together)"


def test_late_joiner_sees_who_is_there_and_what_was_said():
    with Lan(4) as lan:
        ana, ben, cem = three(lan)
        for number in range(20):
            (ana, ben)[number % 2].cli("send", "garden", f"text {number}")
        ben.cli("hand", "garden", "up")
        cem.cli("leave", "garden")
        eventually(lambda: "Cem" in ana.offline("garden"), 2, "Cem left")
        dee = lan.node("Dee")
        dee.join("garden", "seven wet dogs")
        took = seconds_until(lambda: dee.online("garden") == {"Ana", "Ben", "Dee"}, 1, "Dee sees who is there")
        eventually(lambda: dee.members("garden")[ben.peer_id]["raise_hand"], 1, "Dee sees whose hand is up")
        expect(not dee.members("garden")[ana.peer_id]["raise_hand"], "and whose is not")
        eventually(lambda: len(dee.texts("garden")) == 20, 5, "Dee has what was said")
        expect(dee.texts("garden") == ana.texts("garden"), "in the same order")
        return f"members in {took:.2f} s"
