"""File names and texts made to harm. The names that no disk of a sender can hold (`../x`, one with NUL, empty …) are
tried in Tests/VocabularyTests and Tests/Fuzz/Names.swift; here are those that travel through share and download."""
import os
import threading

from harness import Lan, at_once, eventually, expect

NAMES = [
    "a\\..\\x", "\\etc\\x", "line\nbreak", "\x1b[2J", "photo\u202egpj.exe", "я" * 127, "e\u0301.txt", "\u00e9.txt",
    "CON", "trailing.", "🎉.png", "..\\..\\up", ".hidden", "-rf", "a:b", " ", "\u0301mark", "\\\u0301x", "a\u200db",
    "$(id)", "%2e%2e%2fx", "\x9b31mred", "a\x9b2J.png", "<img src=x onerror=alert(1)>.png", "\"><svg onload=x>",
    ".bashrc",
]


def listing(folder):
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


def two(lan):
    ana, ben = lan.node("Ana"), lan.node("Ben")
    for node in (ana, ben):
        node.join("garden", "seven wet dogs")
    for node in (ana, ben):
        eventually(lambda: node.online("garden") == {"Ana", "Ben"}, 5, "both are there")
    return ana, ben


def no_control_bytes(data, where):
    text = data.decode("utf-8")
    bad = {hex(ord(character)) for character in text
           if (ord(character) < 0x20 and character != "\n") or 0x7F <= ord(character) <= 0x9F
           or 0x202A <= ord(character) <= 0x202E or 0x2066 <= ord(character) <= 0x2069}
    expect(not bad, f"{where} shows a terminal {sorted(bad)}")


def test_file_names_stay_inside_the_folder():
    with Lan(2) as lan:
        ana, ben = two(lan)
        source, outer = lan.folder / "source", lan.folder / "outer"
        target = outer / "target"
        source.mkdir()
        target.mkdir(parents=True)
        before = listing(lan.folder)
        media = {}
        for number, name in enumerate(NAMES):
            # Distinct contents, so that each has an ID of its own.
            (source / name).write_text(f"content {number}")
            (media[name],) = ana.share("garden", source / name)
        shared = listing(lan.folder) - before
        eventually(lambda: {row["media_id"] for row in ben.cli("media", "garden")} >= set(media.values()), 5, "all")
        paths = {name: ben.download(identifier, folder=target) for name, identifier in media.items()}
        for number, (name, path) in enumerate(paths.items()):
            expect(path.resolve().parent == target.resolve(), f"{name!r} was written to {path}")
            expect(path.read_text() == f"content {number}", f"{name!r} has its content")
            expect(not path.name.startswith("."), f"{name!r} is not hidden: {path.name!r}")
            expect(len(os.fsencode(path.name)) <= 255, f"{name!r} has a short enough name")
            no_control_bytes(path.name.encode(), f"the name of {name!r}")
        new = listing(lan.folder) - before - shared
        expect({path for path in new if not path.startswith(("home", "outer/target/"))} == set(),
               f"nothing is written outside the folder: {new}")
        expect(len(list(target.iterdir())) == len(NAMES), "one file each, and nothing temporary is left")
        for command in (["media", "garden"], ["history", "garden"], ["members", "garden"]):
            no_control_bytes(ben.run(*command, json_lines=False).stdout, f"parley {command[0]}")
            no_control_bytes(ben.run(*command).stdout, f"parley {command[0]} --json")
        return f"{len(NAMES)} names"


def test_nothing_is_replaced_unasked():
    with Lan(2) as lan:
        ana, ben = two(lan)
        (lan.folder / "news.txt").write_text("new")
        (media,) = ana.share("garden", lan.folder / "news.txt")
        eventually(lambda: ben.cli("media", "garden"), 5, "the file is known")
        folder = lan.folder / "target"
        folder.mkdir()
        kept, victim = folder / "news.txt", lan.folder / "victim"
        kept.write_text("old")
        victim.write_text("precious")
        expect("--force" in ben.refused(73, "download", media, "-o", str(kept)), "the refusal says how to replace")
        expect(kept.read_text() == "old", "what exists is kept")
        numbered = ben.download(media, folder=folder)
        expect(numbered != kept and numbered.read_text() == "new" and kept.read_text() == "old", "it gets a number")
        (folder / "link").symlink_to(victim)
        ben.refused(73, "download", media, "-o", str(folder / "link"))
        expect(victim.read_text() == "precious", "a link is not written through")
        ben.download(media, kept, force=True)
        expect(kept.read_text() == "new", "--force replaces")


def test_fifty_downloads_of_one_name_at_once():
    with Lan(2) as lan:
        ana, ben = two(lan)
        content = os.urandom(300_000)
        (lan.folder / "one.bin").write_bytes(content)
        (media,) = ana.share("garden", lan.folder / "one.bin")
        eventually(lambda: ben.cli("media", "garden"), 5, "the file is known")
        folder = lan.folder / "target"
        folder.mkdir()
        gate = threading.Barrier(50)

        def fetch():
            gate.wait()
            return ben.download(media, folder=folder)

        paths = at_once(*[fetch] * 50)
        expect(len(set(paths)) == 50, f"fifty names: {len(set(paths))}")
        expect(all(path.read_bytes() == content for path in paths), "each whole")
        expect(len(list(folder.iterdir())) == 50, "and nothing else is left")


def test_texts_cannot_move_a_cursor():
    with Lan(2) as lan:
        ana, ben = two(lan)
        texts = ["a\x1b[2Jb", "bell\x07", "back\x08", "\x9b31m", "turn\u202earound", "two\nlines", "\x1b]0;title\x07"]
        for text in texts:
            ana.cli("send", "garden", "-", input=text)
        eventually(lambda: len(ben.texts("garden")) == len(texts), 5, "all are there")
        expect(ben.texts("garden") == texts, "as JSON they are what was sent")
        no_control_bytes(ben.run("history", "garden", json_lines=False).stdout, "parley history")
        no_control_bytes(ben.run("history", "garden").stdout, "parley history --json")
        done = ben.run("send", "garden", "-", input=b"\xff\xfe not UTF-8")
        expect(done.returncode == 65, f"a text that is not UTF-8 is refused: {done.returncode} {done.stderr}")
        refused = ben.run("join", "bad\x1b[2J", "--open")
        expect(refused.returncode in (64, 65), f"a channel's name with a control character is refused: {refused}")
        no_control_bytes(refused.stderr, "the refusal")
