"""Channels with an owner, answers, other kinds, files on the desktop, the doctor, many tabs."""
import os
import shutil
import subprocess

from conditions import Skip
from stage import eventually, expect
from test_page import HOSTILE

# Tabs of one browser, of which six could have a connection each.
TABS = 8


def test_an_owned_channel_by_invitation(stage):
    ana, max_ = stage.people[:2]
    page = ana.browser
    page.one("button", "Join a channel").click()
    page.one("#join-name").type("club")
    page.one("label", "A new one, by invitation only").click()
    page.one("dialog button[type=submit]", "Create").click()
    page.gone("dialog")
    page.wait("h1", "club")
    if not page.has(".panel-foot button"):
        page.one("button[aria-label=Members]").click()
    page.wait(".person .mark", "owner")
    page.one(".panel-foot button", "Invite").click()
    page.one("dialog button[type=submit]", "Make a link").click()
    page.wait("#invite-link")
    link = page.run("return document.querySelector('#invite-link').value")
    expect(link.startswith("parley:"), f"the link is {link[:12]}…")
    eventually(lambda: page.run("return document.querySelector('.code-picture img')?.naturalWidth > 50"), 10,
               "the QR code is shown")
    ana.shot("40-invitation")
    page.keys("Escape")
    page.gone("dialog")
    page = max_.browser
    page.one("button", "Join a channel").click()
    page.one("label", "By invitation").click()
    page.one("#join-link-text").type(link)
    page.one("dialog button[type=submit]", "Join").click()
    page.gone("dialog")
    page.wait("h1", "club")
    ana.browser.wait(".person .name", "Max")
    max_.say("Thank you for having me")
    ana.sees("Thank you for having me")


def test_roles_and_announcements(stage):
    ana, max_ = stage.people[:2]
    page = ana.browser
    page.one("button[aria-label='More about Max']").click()
    page.wait("dialog dd", "member")
    ana.shot("41-person")
    page.one("dialog button", "Mute for 10 minutes").click()
    page.wait("dialog button", "Unmute")
    max_.browser.wait(".person .mark", "muted")
    max_.say("Can you hear me?")
    max_.browser.wait(".failed", "muted")
    max_.browser.one(".failed button", "Discard").click()
    page.one("dialog button", "Unmute").click()
    page.wait("dialog button", "Make admin")
    page.one("dialog button", "Make admin").click()
    page.wait("dialog button", "No longer admin")
    page.keys("Escape")
    page.gone("dialog")
    max_.browser.one(".panel-foot button", "Announce").click()
    max_.browser.one("#announce-text").type("Next meeting on Friday")
    max_.browser.one("dialog button[type=submit]").click()
    ana.browser.wait(".announcement", "Next meeting on Friday")
    ana.shot("42-roles")
    ana.browser.one(".rooms button", "garden").click()
    expect(not ana.browser.has(".announcement"), "the announcement stands in another channel")
    max_.browser.one(".rooms button", "garden").click()


def test_answers_quote_what_they_answer(stage):
    ana, max_ = stage.people[:2]
    ana.say("Which colour shall the door have?")
    max_.sees("Which colour")
    max_.browser.run("""
      const row = [...document.querySelectorAll('.row')].find((item) => item.textContent.includes('Which colour'))
      row.querySelector('.reply').focus()""")
    max_.browser.keys("Enter")
    max_.browser.wait(".answered", "Which colour")
    max_.shot("43-answering")
    max_.say("Green")
    max_.browser.gone(".answered")
    ana.browser.wait(".row .quote", "Which colour shall")
    ana.browser.one(".row .quote").click()
    ana.browser.wait(".row.found", "Which colour")
    ana.shot("44-answer")


def more(page, text):
    """Opens what can be done with the message that has this text."""
    page.run("""
      const row = [...document.querySelectorAll('.row')].findLast((item) => item.textContent.includes(arguments[0]))
      row.querySelector('.more').focus()""", text)
    page.keys("Enter")
    page.wait("dialog h2", "What to do with this message")


def test_what_is_done_to_messages(stage):
    ana, max_ = stage.people[:2]
    if ana.call("GET", "/v1/channels/garden/pins")[0] == 404:
        raise Skip("this node changes no messages")
    ana.say("The meeting is on Thrusday")
    max_.sees("Thrusday")
    more(max_.browser, "Thrusday")
    max_.shot("48-deeds")
    max_.browser.one("dialog button", "👍").click()
    ana.browser.wait(".reactions button", "1")
    more(ana.browser, "Thrusday")
    ana.browser.one("dialog button", "Change").click()
    ana.browser.wait(".answered", "Changing")
    ana.browser.one("#message").clear()
    ana.browser.one("#message").type("The meeting is on Thursday")
    ana.browser.keys("Enter")
    max_.sees("on Thursday")
    max_.browser.wait(".row .deed", "edited")
    max_.browser.gone(".row .text", "Thrusday")
    max_.browser.wait(".reactions button[aria-pressed=true]", "1")
    more(max_.browser, "on Thursday")
    max_.browser.one("dialog button", "Pin").click()
    ana.browser.wait(".row .deed", "pinned")
    ana.browser.one("button[aria-label='Pinned messages']").click()
    ana.browser.wait("dialog .found-text", "on Thursday")
    ana.shot("49-pins")
    ana.browser.one("dialog .found-text").click()
    ana.browser.wait(".row.found", "on Thursday")
    ana.shot("50-state")
    ana.say("This should not have been said")
    max_.sees("should not have been")
    more(ana.browser, "should not have been")
    ana.browser.one("dialog button", "Take back").click()
    max_.browser.wait(".row", "Taken back by Ana")
    max_.browser.gone(".row .text", "should not have been")
    expect(not max_.browser.has(".row", "should not have been"), "what was taken back is still shown")
    max_.shot("51-recalled")
    # The same after a reload.
    max_.open_page()
    max_.browser.wait(".row .deed", "edited")
    max_.browser.wait(".row", "Taken back by Ana")


def test_who_is_writing(stage):
    ana, max_ = stage.people[:2]
    ana.browser.one("#message").type("I am about to say")
    max_.browser.wait(".writers", "Ana is writing")
    max_.shot("52-writing")
    ana.browser.keys("Enter")
    max_.sees("I am about to say")
    max_.browser.gone(".writers", "Ana is writing")


def test_places_and_custom_messages(stage):
    ana, max_ = stage.people[:2]
    for body in [{"type": "location", "latitude": 52.5163, "longitude": 13.3777, "building_name": "The gate"},
                 {"type": "custom", "event": HOSTILE, "custom_ext": {"<b>": HOSTILE}}]:
        status, answer = max_.call("POST", "/v1/channels/garden/messages", body)
        expect(status == 201, f"{answer}")
    ana.browser.wait(".row", "52.51630, 13.37770")
    ana.browser.wait(".row", "The gate")
    ana.browser.wait(".row dd", "<img")
    expect(ana.browser.run("return document.querySelectorAll('img[src=x], .row b').length") == 0, "a text became HTML")
    ana.shot("45-kinds")


def test_a_film_plays_in_the_page(stage):
    ana, max_ = stage.people[:2]
    film = stage.folder / "film.webm"
    made = shutil.which("ffmpeg") and subprocess.run(
        ["ffmpeg", "-loglevel", "error", "-f", "lavfi", "-i", "testsrc=duration=2:size=160x120:rate=10", "-c:v",
         "libvpx", "-y", str(film)], capture_output=True, text=True)
    if not made or made.returncode != 0:
        raise Skip("needs ffmpeg with VP8")
    ana.cli("share", "garden", str(film))
    max_.browser.one(".timeline button[aria-label='Video film.webm']", "Play").click()
    eventually(lambda: max_.browser.run("""
      const film = document.querySelector('dialog video')
      return film && film.readyState >= 1 && film.videoWidth === 160 && Math.round(film.duration) === 2"""), 20,
               "the film can be played")
    max_.shot("53-film")
    max_.browser.keys("Escape")
    max_.browser.gone("dialog")


def test_a_voice_message_plays_in_the_page(stage):
    ana, max_ = stage.people[:2]
    voice = stage.folder / "voice.ogg"
    made = shutil.which("ffmpeg") and subprocess.run(
        ["ffmpeg", "-loglevel", "error", "-f", "lavfi", "-i", "sine=duration=3", "-c:a", "libopus", "-y", str(voice)],
        capture_output=True, text=True)
    if not made or made.returncode != 0:
        raise Skip("needs ffmpeg with Opus")
    ana.cli("share", "garden", str(voice), "--as", "voice")
    max_.browser.wait(".row audio")
    max_.browser.wait(".row .caption", "Voice message")
    max_.browser.run("document.querySelector('.row audio').load()")
    max_.browser.run("document.querySelector('.row audio').preload = 'metadata'")
    eventually(lambda: max_.browser.run("""
      const sound = document.querySelector('.row audio')
      return sound.readyState >= 1 && Math.round(sound.duration) === 3"""), 20, "the voice can be played")
    max_.shot("54-voice")


def test_hands_keep_their_order_over_a_reload(stage):
    ana, max_ = stage.people[:2]
    mia = stage.person("Aaron")
    mia.join("garden", "seven wet dogs")
    for person in [max_, ana, mia]:
        person.call("PUT", "/v1/channels/garden/hand", {"raised": True})
        ana.browser.wait(f".person:has(.hand) .name", person.name)
    order = "return [...document.querySelectorAll('.person:has(.hand) .name')].map((item) => item.textContent)"
    eventually(lambda: ana.browser.run(order) == ["Max", "Ana", "Aaron"], 10, "the queue is Max, Ana, Aaron")
    ana.open_page()
    ana.browser.wait(".person .hand")
    eventually(lambda: ana.browser.run(order) == ["Max", "Ana", "Aaron"], 10,
               f"the queue stays so after a reload: {ana.browser.run(order)}")
    mia.browser.wait(".person .hand")
    expect(mia.browser.run(order) == ["Max", "Ana", "Aaron"], f"Aaron's queue is {mia.browser.run(order)}")
    for person in [max_, ana]:
        person.call("PUT", "/v1/channels/garden/hand", {"raised": False})
    mia.browser.close()
    mia.stop()


def test_the_desktop_opens_what_is_harmless(stage):
    ana, max_ = stage.people[:2]
    opened = stage.folder / "opened"
    folder = stage.folder / "bin"
    folder.mkdir()
    (folder / "xdg-open").write_text(f"#!/bin/sh\nprintf '%s\\n' \"$1\" >> '{opened}'\n")
    (folder / "xdg-open").chmod(0o755)
    max_.stop()
    max_.environment = {"PATH": f"{folder}:{os.environ['PATH']}", "DISPLAY": ":0"}
    max_.start()
    max_.browser.gone(".banner", within=30)
    for name in ["minutes.pdf", "helper.desktop"]:
        (stage.folder / name).write_text("not really")
        ana.cli("share", "garden", str(stage.folder / name))
        max_.browser.one(f".timeline button[aria-label='Download {name}']").click()
        max_.browser.wait(f".timeline button[aria-label='Show {name} in its folder']")
    expect(not max_.browser.has("button[aria-label='Open helper.desktop']"), "what might run is offered to be opened")
    max_.browser.one(".timeline button[aria-label='Open minutes.pdf']").click()
    saved = str(max_.downloads / "minutes.pdf")
    eventually(lambda: opened.exists() and opened.read_text().splitlines() == [saved], 10, "the file is opened")
    max_.browser.one(".timeline button[aria-label='Show helper.desktop in its folder']").click()
    eventually(lambda: opened.read_text().splitlines() == [saved, str(max_.downloads)], 10, "its folder is opened")
    number = next(item["download_id"] for item in max_.call("GET", "/v1/downloads")[1]
                  if item["file_name"] == "helper.desktop")
    status, answer = max_.call("POST", f"/v1/downloads/{number}/open")
    expect(status == 403 and answer["code"] == "not_opened", f"{status}: {answer}")
    max_.shot("46-open")


def test_the_doctor_is_behind_the_state_line(stage):
    ana = stage.people[0]
    ana.browser.one(".state-line").click()
    ana.browser.wait("dialog .findings", "datagrams come back")
    ana.browser.wait("dialog", "MB are free")
    ana.shot("47-doctor")
    ana.browser.keys("Escape")
    ana.browser.gone("dialog")


def test_many_tabs_share_one_stream(stage):
    ana, max_ = stage.people[:2]
    page = ana.browser
    first = page.call("GET", "/window")
    address = page.address
    tabs = []
    for _ in range(TABS - 1):
        handle = page.call("POST", "/window/new", {"type": "tab"})["handle"]
        page.call("POST", "/window", {"handle": handle})
        page.open(address)
        page.wait(".state-line", "Connected")
        tabs.append(handle)
    max_.say("To all tabs at once")
    for handle in [first, *tabs]:
        page.call("POST", "/window", {"handle": handle})
        page.wait(".row .text", "To all tabs at once")
        texts = page.run("return [...document.querySelectorAll('.row .text')].map((item) => item.textContent)")
        expect(texts.count("To all tabs at once") == 1, "it is shown twice")
    found = page.run("""return fetch(localStorage.getItem('parley.base') + '/metrics')
      .then((answer) => answer.text())""")
    expect("parley_event_streams 1\n" in found, "the tabs do not share one stream: "
           + next((line for line in found.splitlines() if line.startswith("parley_event_streams")), found[:200]))
    for handle in tabs:
        page.call("POST", "/window", {"handle": handle})
        page.call("DELETE", "/window")
    page.call("POST", "/window", {"handle": first})
    max_.say("To the one that is left")
    page.wait(".row .text", "To the one that is left")
