"""Roles of an owned channel: what the owner and its admins say counts alike on every node, and nobody else's does."""
from harness import Lan, eventually, expect

CHANNEL = "class"


def classroom(lan):
    """Teacher, Cho (an admin), Ben and Dot."""
    teacher = lan.node("Teacher")
    teacher.cli("create", CHANNEL)
    link = teacher.cli("invite", CHANNEL, "--uses", "10")[0]["link"]
    others = [lan.node(name) for name in ("Cho", "Ben", "Dot")]
    for node in others:
        node.cli("join", "--link-file", "-", input=link)
    nodes = [teacher, *others]
    for node in nodes:
        eventually(lambda: node.online(CHANNEL) == {"Teacher", "Cho", "Ben", "Dot"}, 60, f"{node.name} sees all")
    teacher.cli("admin", CHANNEL, "Cho")
    for node in nodes:
        eventually(lambda: role(node, nodes[1]) == "admin", 30, f"{node.name} has Cho as an admin")
    return nodes, link


def role(node, other):
    return node.members(CHANNEL)[other.peer_id].get("role")


def row(node, other):
    return node.members(CHANNEL)[other.peer_id]


def test_what_an_owner_and_admins_say_counts_everywhere():
    with Lan(5) as lan:
        (teacher, cho, ben, dot), link = classroom(lan)
        nodes = (teacher, cho, ben, dot)

        expect("admin" in ben.refused(77, "mute", CHANNEL, "Dot"), "a member mutes nobody")
        expect(cho.refused(77, "mute", CHANNEL, "Teacher"), "an admin does not mute the owner")

        cho.cli("mute", CHANNEL, "Ben")
        for node in nodes:
            eventually(lambda: row(node, ben).get("muted") is True, 30, f"{node.name} has Ben muted")
        expect("muted" in ben.refused(77, "send", CHANNEL, "can you hear me"), "Ben is told why")
        ben.cli("hand", CHANNEL, "up")
        for node in nodes:
            eventually(lambda: row(node, ben)["raise_hand"], 30, f"{node.name} sees the hand of the muted")
        cho.cli("lower", CHANNEL, "Ben")
        for node in nodes:
            eventually(lambda: not row(node, ben)["raise_hand"], 30, f"{node.name} sees it lowered")
        cho.cli("unmute", CHANNEL, "Ben")
        eventually(lambda: row(ben, ben).get("muted") is not True, 30, "Ben may speak again")
        ben.cli("send", CHANNEL, "thank you")
        for node in nodes:
            eventually(lambda: node.texts(CHANNEL) == ["thank you"], 30, f"{node.name} has it")

        cho.cli("remove", CHANNEL, "Ben")
        for node in (teacher, cho, dot):
            eventually(lambda: role(node, ben) == "removed", 30, f"{node.name} has Ben out")
        teacher.cli("send", CHANNEL, "without Ben", "--wait", "10")
        eventually(lambda: ben.run("send", CHANNEL, "still here").returncode == 77, 30, "Ben can say nothing any more")
        expect("without Ben" not in ben.texts(CHANNEL), "nor read what is said")
        # A new invitation lets in again who was removed, and one from before does not.
        newer = cho.cli("invite", CHANNEL)[0]["link"]
        ben.run("leave", CHANNEL)
        ben.cli("join", "--link-file", "-", input=newer)
        eventually(lambda: role(teacher, ben) == "member", 60, "Ben is back")
        teacher.cli("ban", CHANNEL, "Ben")
        for node in (teacher, cho, dot):
            eventually(lambda: role(node, ben) == "banned", 30, f"{node.name} has Ben banned")

        teacher.cli("transfer", CHANNEL, "Cho")
        for node in (teacher, cho, dot):
            eventually(lambda: (role(node, cho), role(node, teacher)) == ("owner", "admin"), 30,
                       f"{node.name} has Cho as the owner")
        expect(teacher.refused(77, "close", CHANNEL), "who gave it away does not close it")
        cho.cli("close", CHANNEL)
        eventually(lambda: dot.run("send", CHANNEL, "too late").returncode == 77, 30, "nobody says anything any more")
        # Who was not there learns the same.
        eve = lan.node("Eve", host=5)
        eve.cli("join", "--link-file", "-", input=link)
        eventually(lambda: eve.texts(CHANNEL)[:1] == ["thank you"], 60, "a latecomer has the history")
        for other, expected in ((cho, "owner"), (teacher, "admin")):
            eventually(lambda: other.peer_id in eve.members(CHANNEL) and role(eve, other) == expected, 60,
                       f"a latecomer has {other.name} as {expected}")


def test_roles_stand_after_a_restart_of_everybody():
    with Lan(4) as lan:
        (teacher, cho, ben, dot), _ = classroom(lan)
        nodes = (teacher, cho, ben, dot)
        teacher.cli("mute", CHANNEL, "Ben")
        teacher.cli("announce", CHANNEL, "We begin at 9")
        for node in nodes:
            eventually(lambda: row(node, ben).get("muted") is True, 30, f"{node.name} has Ben muted")
        for node in nodes:
            node.stop()
        for node in nodes:
            node.start(within=30)
        for node in nodes:
            eventually(lambda: node.online(CHANNEL) == {"Teacher", "Cho", "Ben", "Dot"}, 60, f"{node.name} sees all")
            expect((role(node, cho), role(node, teacher)) == ("admin", "owner"), f"{node.name} has the roles")
            expect(row(node, ben).get("muted") is True, f"{node.name} has Ben muted")
        expect("muted" in ben.refused(77, "send", CHANNEL, "can you hear me now"), "Ben still is")
