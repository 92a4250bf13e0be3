"""The chat at a terminal: typing while messages come, resizing, pasting, sharing, what hostile people try."""
import filecmp
import os

from conditions import eventually, expect

HOSTILE = "\x1b[2J\x1b[H\x1b]0;owned\x07\x07\r\x1b[31mAna: I agree\x9b2J\b\b\u202egpj"
WIDE = "日本語のテキスト 🌻 你好"


def test_begins(stage):
    ana, ben = stage.ana, stage.ben
    ben.cli("join", "team", "--open")
    ana.open_chat("team", "--open")
    ana.window.sees("/help lists what you can do")
    ana.window.has_line("team>")
    ana.window.sees("Ben")
    ben.send("hello Ana's terminal")
    ana.window.sees("hello Ana's terminal")


def test_typing_while_messages_come(stage):
    window, ben = stage.ana.window, stage.ben
    window.type("half a sente")
    window.has_line("team> half a sente")
    for number in range(20):
        ben.send(f"message {number} {WIDE if number % 2 else ''} comes while somebody types")
    window.sees("message 19")
    window.has_line("team> half a sente")
    column, row = window.cursor
    expect(column == len("team> half a sente"), f"the cursor stands in column {column}")
    shown = window.text
    for number in range(20):
        wide = WIDE if number % 2 else ""
        expect(f"message {number} {wide} comes while somebody types" in shown, f"message {number} is torn: {shown}")
    window.type("nce")
    window.key("Enter")
    ben.hears("half a sentence")
    window.sees("you: half a sentence")
    expect(window.text.count("half a sente") == 1, "what was typed is shown twice")


def test_wide_letters_and_emoji(stage):
    window, ben = stage.ana.window, stage.ben
    window.type(WIDE)
    window.has_line("team> " + WIDE)
    # Each of the eight and two ideographs and the flower takes two columns.
    width = len("team> ") + 2 * 8 + 1 + 2 + 1 + 2 * 2
    eventually(lambda: window.cursor[0] == width, 10, f"the cursor stands in column {width}: {window.cursor}")
    ben.send("between")
    window.sees("between")
    window.has_line("team> " + WIDE)
    expect(window.cursor[0] == width, f"the cursor stands in column {window.cursor[0]}, not {width}")
    window.key("Left", "Left", "BSpace")
    window.key("Enter")
    ben.hears("日本語のテキスト 🌻你好")


def test_resizing(stage):
    window, ben = stage.ana.window, stage.ben
    text = "a line that is long enough to be wrapped in a narrow window, and whole again in a wide one"
    window.type(text)
    window.has_line("team> " + text)
    for width in [40, 100, 33, 80]:
        window.resize(width, 24)
        eventually(lambda: window.value("#{window_width}") == str(width), 10, "the window has its size")
        ben.send(f"at {width} columns")
        window.sees(f"at {width} columns")
        eventually(lambda: "team> " + text in window.text.replace("\n", ""), 10, f"the line is whole at {width}")
    window.key("Enter")
    ben.hears(text)


def test_pasting_lines(stage):
    window, ben = stage.ana.window, stage.ben
    window.paste("first line\n  second\tline\nthird line\n")
    window.has_line("team> first line␤  second line␤third line")
    window.key("Enter")
    ben.hears("first line\n  second line\nthird line")
    window.paste("/quit")
    window.has_line("team> /quit")
    window.key("C-u")
    # The Escape key is no mark: with f it goes to the end of a word.
    window.key("Escape")
    window.type("f")
    window.key("C-u")
    window.type("alone")
    window.key("Enter")
    ben.hears("alone")


def test_completion(stage):
    window, ben = stage.ana.window, stage.ben
    window.type("/mem")
    window.key("Tab")
    window.has_line("team> /members")
    window.key("Enter")
    window.sees("Online (2)")
    window.type("/tell B")
    window.key("Tab")
    window.has_line("team> /tell Ben")
    window.type("psst")
    window.key("Enter")
    ben.hears("psst", channel=None)
    folder = stage.folder / "things to share"
    folder.mkdir()
    (folder / "notes of the day.txt").write_text("notes\n")
    window.type(f"/share {stage.folder}/thi")
    window.key("Tab")
    window.has_line(f"team> /share {stage.folder}/things to share/")
    window.key("Tab")
    window.has_line(f"team> /share {stage.folder}/things to share/notes of the day.txt")
    window.key("Enter")
    window.sees("shared notes of the day.txt")
    window.type("/zzz")
    window.key("Tab")
    window.key("C-u")


def test_history_of_lines(stage):
    window, ben = stage.ana.window, stage.ben
    window.type("once more")
    window.key("Enter")
    ben.hears("once more")
    window.key("Up")
    window.has_line("team> once more")
    window.type("!")
    window.key("Enter")
    ben.hears("once more!")


def test_a_mention_rings_and_is_marked(stage):
    window, ben = stage.ana.window, stage.ben
    stage.other_window()
    ben.send("nobody in particular: bananas")
    window.sees("bananas")
    expect(window.value("#{window_bell_flag}") == "0", "it rings for a word that holds the name")
    ben.send("what do you say, Ana?")
    window.sees("what do you say, Ana?")
    eventually(lambda: window.value("#{window_bell_flag}") == "1", 10, "the bell rings")
    expect(any(row.startswith("» ") and row.endswith("Ana?") for row in window.rows), "the message is not marked")


def test_hostile_texts_are_text(stage):
    ana, window = stage.ana, stage.ana.window
    title = window.value("#{pane_title}")
    stage.clear_bell()
    mallory = stage.person("Mal\u0441lory")
    mallory.cli("join", "team", "--open")
    window.type("untouched")
    window.has_line("team> untouched")
    for text in [HOSTILE, "W" * 20_000, "Z" + "a\u0301\u0316" * 2_000, "\u2028\u2029\ufeff\x7f|", "\x1b[?2004l\x1bc"]:
        mallory.send(text)
    mallory.send("the last of them")
    window.sees("the last of them")
    window.has_line("team> untouched")
    expect(window.value("#{pane_title}") == title, f"the title is {window.value('#{pane_title}')!r}")
    expect(window.value("#{window_bell_flag}") == "0", "a message rings")
    expect("\\u{1b}[2J" in window.text, "the escape is not shown as text")
    expect("hello Ana's terminal" in window.text, "a message has erased what was there")
    forged = [row for row in window.text.split("\n") if row.startswith("Ana: I agree")]
    expect(not forged, "a message passes for one of somebody else")
    window.key("Enter")
    stage.ben.hears("untouched")
    mallory.stop()
    expect(ana.is_chatting, "the chat has ended")


def test_sharing_and_downloading(stage):
    window, ben = stage.ana.window, stage.ben
    content = os.urandom(12_000_000)
    (stage.folder / "film.bin").write_bytes(content)
    media = ben.cli("share", "team", str(stage.folder / "film.bin"))[0]
    window.sees("film.bin")
    window.type("/download film")
    window.key("Tab")
    window.has_line("team> /download film.bin")
    window.key("Enter")
    # Ana's node takes 3 MB a second at most: the prompt has time to show how far it is.
    eventually(lambda: "% of 12.0 MB" in window.line, 20, "the progress is shown")
    window.type("typed meanwhile")
    eventually(lambda: window.line.endswith("team> typed meanwhile"), 10, f"the line is whole: {window.line!r}")
    window.sees("downloaded: ", within=60)
    window.has_line("team> typed meanwhile")
    expect(filecmp.cmp(stage.ana.folder / "film.bin", stage.folder / "film.bin", shallow=False),
           "the file is another one")
    window.key("Enter")
    ben.hears("typed meanwhile")
    expect(media["media_id"], "it was shared")


def test_other_commands(stage):
    window, ben = stage.ana.window, stage.ben
    for line, answer in [("/hand", "your hand is up"), ("/hand down", "your hand is down"),
                         ("/search bananas", "bananas"), ("/history 2", "typed meanwhile"),
                         ("/media", "film.bin"), ("/token", "no login token is in use"),
                         ("/organiser", "no tokens are asked for"), ("/help", "/organiser [KEY|none]"),
                         ("/nothing", "there is no /nothing"), ("//said", "you: /said")]:
        window.type(line)
        window.key("Enter")
        window.sees(answer)
    ben.hears("/said")
    key = ben.cli("token", "key", str(stage.folder / "key"))[0]["organiser"]
    token = ben.token(stage.folder / "key", stage.ana.peer_id, "Ana of 7b")
    (stage.folder / "token").write_text(token)
    window.type(f"/token {stage.folder}/token")
    window.key("Enter")
    window.sees("logged in as Ana of 7b")
    window.type(f"/organiser {key}")
    window.key("Enter")
    window.sees("login tokens signed by")
    window.type("/organiser none")
    window.key("Enter")
    window.sees("no tokens are asked for")


def test_without_colours(stage):
    expect("\x1b[1m" in stage.ana.window.raw, "names are not set off where colours are wanted")
    ben = stage.ben
    ben.open_chat("team", environment={"NO_COLOR": "1"})
    ben.window.sees("/help lists what you can do")
    expect("\x1b[" not in ben.window.raw, "NO_COLOR is not respected")
    ben.window.key("C-d")
    ben.window.sees("ended 0")


def test_quitting(stage):
    ana = stage.ana
    ana.window.type("/quit")
    ana.window.key("Enter")
    ana.window.sees("ended 0")
    # The terminal is as before: what is pasted comes without marks, lines as they are.
    ana.window.type("sane")
    ana.window.sees("sane")
    channels = ana.cli("channels")
    expect(channels and channels[0]["name"] == "team", "quitting the chat has left the channel")
