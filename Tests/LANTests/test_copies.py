"""A profile restored from a backup, or running twice: it never signs two things under one number, and its honest owner
is not shut out."""
import shutil

from harness import Lan, Node, eventually, expect

CHANNEL = "garden"


def company(lan):
    ana, ben = lan.node("Ana"), lan.node("Ben")
    for node in (ana, ben):
        node.join(CHANNEL)
    eventually(lambda: ben.online(CHANNEL) == {"Ana", "Ben"}, 30, "both are there")
    return ana, ben


def copy_of(lan, node, host):
    home = lan.folder / f"copy on {host}"
    shutil.copytree(node.home, home, ignore=shutil.ignore_patterns("*.sock", "lock"))
    copy = Node(lan, host, node.name, home=home)
    lan.nodes.append(copy)
    return copy


def equivocations(node):
    return [row for row in node.members(CHANNEL).values() if "equivocation" in row.get("excesses", [])]


def test_a_profile_restored_from_a_backup():
    with Lan(3) as lan:
        ana, ben = company(lan)
        ana.send_many(CHANNEL, [f"before {number}" for number in range(20)])
        ana.stop()
        copy = copy_of(lan, ana, 3)
        # What was said after the backup was made is unknown to it, and its numbers are taken.
        ana.start(within=30)
        ana.send_many(CHANNEL, [f"after {number}" for number in range(20)])
        expected = [f"before {number}" for number in range(20)] + [f"after {number}" for number in range(20)]
        eventually(lambda: ben.texts(CHANNEL) == expected, 30, "Ben has all of it")
        ana.stop()
        copy.start(within=30)
        copy.send_many(CHANNEL, [f"restored {number}" for number in range(20)])
        expected += [f"restored {number}" for number in range(20)]
        for node in (ben, copy):
            eventually(lambda: sorted(node.texts(CHANNEL)) == sorted(expected), 60, f"{node.name} has all of it once")
        expect(copy.texts(CHANNEL) == ben.texts(CHANNEL), "in one order")
        expect(not equivocations(ben), "and nothing was signed twice under one number")


def test_a_profile_that_runs_twice():
    with Lan(3) as lan:
        ana, ben = company(lan)
        ana.send_many(CHANNEL, [f"first {number}" for number in range(20)])
        # As it was copied off a machine that went on running.
        copy = copy_of(lan, ana, 3)
        copy.launch()
        both = (ana, copy)

        def states():
            found = []
            for node in both:
                done = node.run("status")
                # One that was aborted may have ended its process.
                found.append("aborted" if done.returncode or b'"aborted"' in done.stdout else "runs")
            return found

        eventually(lambda: sorted(states()) == ["aborted", "runs"], 60, "one of both gives way", every=0.2)
        survivor = both[states().index("runs")]
        said = [f"second {number}" for number in range(20)]
        survivor.send_many(CHANNEL, said)
        eventually(lambda: set(ben.texts(CHANNEL)) >= set(said), 60, "who is left is heard")
        texts = ben.texts(CHANNEL)
        expect(len(texts) == len(set(texts)) == 40, f"each once: {texts}")
        expect(not equivocations(ben), "and nothing was signed twice under one number")
        eventually(lambda: "Ana" in ben.online(CHANNEL), 30, "Ana is there for Ben")
        return f"{'the copy' if survivor is copy else 'the first'} is left"
