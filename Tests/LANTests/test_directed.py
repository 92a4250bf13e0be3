"""What is said in a channel to some of its members is nobody else's: not in their databases, not in what they relay,
not on the wire. What is said to whoever is there is kept for nobody who is not."""
import secrets

from harness import Lan, eventually, expect
from pcap import Traffic


def test_nobody_but_its_receivers_has_a_directed_message():
    channel = "team-" + secrets.token_hex(4)
    secret = "directed-" + secrets.token_hex(16)
    with Lan(5) as lan:
        with lan.capture() as capture:
            ana, ben, cho, eva = (lan.node(name) for name in ("Ana", "Ben", "Cho", "Eva"))
            for node in (ana, ben, cho, eva):
                node.join(channel, "a passphrase that all of them have")
            for node in (ana, ben, cho, eva):
                eventually(lambda: len(node.online(channel)) == 4, 10, f"{node.name} sees the others")
            (sent,) = ana.cli("send", channel, secret, "--to", "Ben", "--to", cho.peer_id, "--wait", "10")
            expect(set(sent["delivered_to"]) == {ben.peer_id, cho.peer_id}, f"both have it: {sent}")
            ana.cli("send", channel, "for all", "--wait", "10")
            for node in (ana, ben, cho):
                found = [message for message in node.history(channel) if message.get("body") == secret]
                expect(len(found) == 1, f"{node.name} has it once, in the channel")
                expect(found[0]["receivers"] == [ben.peer_id, cho.peer_id], f"{node.name} sees to whom it was said")
            # A newcomer is told all that there is to be told, by whoever is asked.
            dan = lan.node("Dan")
            dan.join(channel, "a passphrase that all of them have")
            for node in (eva, dan):
                eventually(lambda: "for all" in node.texts(channel), 10, f"{node.name} has what was said to all")
                expect(node.texts(channel) == ["for all"], f"{node.name} is shown nothing else")
            for node in (ana, ben, cho, eva, dan):
                node.stop()
        for node, is_theirs in ((ana, True), (ben, True), (cho, True), (eva, False), (dan, False)):
            files = [path for path in node.home.rglob("*") if path.is_file()]
            expect(any(path.name == "store.sqlite" for path in files), f"{node.name} has a database")
            found = [path.name for path in files if secret.encode() in path.read_bytes()]
            expect(bool(found) == is_theirs, f"on {node.name}'s disk it is in {found}")
        traffic, everything = Traffic(capture.path), capture.path.read_bytes()
        expect(len(traffic.datagrams) > 0, "the capture holds what was sent")
        for form in (secret, secret[: len(secret) // 2], ben.peer_id):
            expect(not traffic.contains(form.encode()) and form.encode() not in everything, f"{form} is on the wire")
        return f"{len(traffic.datagrams)} datagrams searched"


def test_who_is_absent_gets_nothing_of_what_is_for_those_there():
    channel = "lobby-" + secrets.token_hex(4)
    live = "live-" + secrets.token_hex(16)
    with Lan(3) as lan:
        ana, ben = lan.node("Ana"), lan.node("Ben")
        for node in (ana, ben):
            node.join(channel)
            eventually(lambda: "Ana" in node.online(channel), 10, f"{node.name} is there")
        eventually(lambda: ana.online(channel) == {"Ana", "Ben"}, 10, "Ana sees Ben")
        eventually(lambda: ben.online(channel) == {"Ana", "Ben"}, 10, "Ben sees Ana")
        with ben.watch(channel) as watch:
            def command_heard():
                # Not kept: it is said until the watcher is there.
                ana.cli("send", channel, "--as", "cmd", "--action", "refresh", "--param", "page=2")
                return any(event.get("event") == "command" for event in watch.events)

            eventually(command_heard, 10, "Ben is commanded")
            command = watch.wait(lambda event: event.get("event") == "command", 1, "the command")
            expect(command["action"] == "refresh" and command["params"] == {"page": "2"}, f"as it was sent: {command}")
            ana.cli("send", channel, live, "--online-only")
            watch.wait(lambda event: event.get("body") == live, 10, "Ben gets it")
        ana.cli("send", channel, "after", "--wait", "10")
        eva = lan.node("Eva")
        eva.join(channel)
        eventually(lambda: eva.texts(channel) == ["after"], 10, "Eva has what is kept, and nothing else")
        for node in (ana, ben):
            expect(node.texts(channel) == [live, "after"], f"{node.name}, who was there, has it")
            expect("refresh" not in str(node.history(channel)), "a command is in no history")
        for node in (ana, ben, eva):
            node.stop()
        for path in eva.home.rglob("*"):
            expect(not path.is_file() or live.encode() not in path.read_bytes(), f"{path.name} of Eva's has it")
