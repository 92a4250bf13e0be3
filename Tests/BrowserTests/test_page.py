"""Two people, two pages: what a class does with it in its first ten minutes."""
import hashlib
import os

from stage import eventually, expect, picture, request

HOSTILE = "<img src=x onerror=document.title='owned'>"


def test_join_and_talk(stage):
    ana, max_ = stage.person("Ana"), stage.person("Max")
    expect("#" not in ana.browser.address, "the token is still in the address bar")
    ana.shot("01-empty")
    ana.join("garden", "seven wet dogs")
    ana.shot("02-joined")
    max_.join("garden", "seven wet dogs")
    ana.browser.wait(".person .name", "Max")
    ana.say("Hello Max, look at https://example.org/a?b=c. Nice 🌻")
    max_.sees("Hello Max")
    link = max_.browser.one(".row a")
    expect(link.attribute("href") == "https://example.org/a?b=c", f"the link leads to {link.attribute('href')}")
    expect("noopener" in link.attribute("rel"), "the link's page could reach this one")
    ana.browser.wait(".own .status", "Delivered")
    max_.say("Grüße, 你好, مرحبا")
    ana.sees("你好")
    ana.browser.wait(".day", "Today")
    ana.browser.one(".own .status button").click()
    ana.browser.wait("dialog", "Max")
    ana.browser.keys("Escape")
    ana.browser.gone("dialog")
    ana.shot("03-talk")
    max_.shot("04-talk-other-side")


def test_hands(stage):
    ana, max_ = stage.people[:2]
    max_.browser.one(".hand-button", "Raise").click()
    max_.browser.wait(".hand-button", "Lower")
    ana.browser.wait(".person .hand", "1")
    # h works while nothing is typed, and is a letter while something is.
    ana.browser.one("#message").type("h")
    expect(ana.browser.has(".hand-button", "Raise"), "a typed h has raised the hand")
    ana.browser.one("#message").clear()
    ana.browser.one(".room-header h1").click()
    ana.browser.run("document.activeElement.blur()")
    ana.browser.keys("h")
    ana.browser.wait(".hand-button", "Lower")
    names = ana.browser.run("return [...document.querySelectorAll('.person .name')].map((item) => item.textContent)")
    expect(names[:2] == ["Max", "Ana"], f"the queue is {names}")
    ana.shot("05-hands")
    ana.browser.keys("h")
    ana.browser.wait(".hand-button", "Raise")
    max_.browser.one(".hand-button").click()
    max_.browser.wait(".hand-button", "Raise")


def test_photos_open_large(stage):
    ana, max_ = stage.people[:2]
    path = picture(stage.folder / "sunset.png")
    ana.browser.all("input[type=file]")[0].type(str(path))
    max_.browser.wait("button.picture")
    eventually(lambda: max_.browser.run(
        "return document.querySelector('button.picture img')?.naturalWidth > 0"), 30, "the preview is shown")
    max_.shot("06-photo")
    max_.browser.one("button.picture").click()
    eventually(lambda: max_.browser.run("return document.querySelector('dialog img')?.naturalWidth >= 700"), 30,
               "the large picture is shown")
    max_.shot("07-photo-large")
    max_.browser.keys("Escape")
    max_.browser.gone("dialog")


def test_a_large_file_with_progress(stage):
    ana, max_ = stage.people[:2]
    size = int(os.environ.get("PARLEY_BROWSER_FILE_MB") or 200) * 1_000_000
    path = stage.folder / "lecture notes.bin"
    block = os.urandom(1 << 20)
    digest = hashlib.sha256()
    with open(path, "wb") as file:
        for number in range(0, size, len(block)):
            part = number.to_bytes(8, "big") + block[8:min(len(block), size - number)]
            file.write(part)
            digest.update(part)
    ana.browser.all("input[type=file]")[0].type(str(path))
    ana.browser.wait(".uploads progress", within=10)
    max_.browser.wait(".file-name", "lecture notes.bin", within=90)
    ana.browser.gone(".uploads li", within=30)
    max_.browser.run("""window.progressSeen = 0
      new MutationObserver(() => {
        if (document.querySelector('.timeline .file-actions progress')) window.progressSeen += 1
      }).observe(document.querySelector('.timeline'), { subtree: true, childList: true, attributes: true })""")
    max_.browser.one(".timeline button[aria-label='Download lecture notes.bin']").click()
    max_.browser.wait(".timeline .file-actions", "of", within=10)
    max_.shot("08-download")
    max_.browser.wait(".timeline .done", "lecture notes.bin", within=120)
    expect(max_.browser.run("return window.progressSeen") > 0, "no progress was shown")
    saved = max_.downloads / "lecture notes.bin"
    got = hashlib.sha256()
    with open(saved, "rb") as file:
        while part := file.read(1 << 20):
            got.update(part)
    expect(got.digest() == digest.digest(), "the downloaded file is another one")
    max_.browser.one("button[aria-label=Files]").click()
    max_.browser.wait("table", "sunset.png")
    max_.shot("09-files")
    max_.browser.one("button[aria-label=Members]").click()


def test_a_pasted_picture_and_a_dropped_file(stage):
    ana, max_ = stage.people[:2]
    ana.browser.run("""
      const canvas = new OffscreenCanvas(40, 30)
      canvas.getContext('2d').fillRect(5, 5, 20, 20)
      return canvas.convertToBlob().then((blob) => {
        const transfer = new DataTransfer()
        transfer.items.add(new File([blob], 'image.png', { type: 'image/png' }))
        document.querySelector('#message').dispatchEvent(
          new ClipboardEvent('paste', { clipboardData: transfer, bubbles: true, cancelable: true }))
      })""")
    max_.browser.wait(".row .file-name", "pasted picture")
    ana.browser.run("""
      const transfer = new DataTransfer()
      const text = '<script>document.title = "owned"</' + 'script>'
      transfer.items.add(new File([text], 'evil.html', { type: 'text/html' }))
      document.querySelector('main').dispatchEvent(
        new DragEvent('drop', { dataTransfer: transfer, bubbles: true, cancelable: true }))""")
    max_.browser.wait(".row .file-name", "evil.html")


def test_media_cannot_run_as_script(stage):
    max_ = stage.people[1]
    address = max_.browser.run("""
      const row = [...document.querySelectorAll('.row')].find((item) => item.textContent.includes('evil.html'))
      return row.querySelector('a[download]').href""")
    answer = max_.browser.run("""
      return fetch(arguments[0]).then((answer) => Object.fromEntries(answer.headers))""", address)
    expect(answer["content-disposition"].startswith("attachment"), "HTML is not a download")
    expect("sandbox" in answer["content-security-policy"], "media are not in a sandbox")
    expect(answer["x-content-type-options"] == "nosniff", "the browser may guess types")
    expect("html" not in answer["content-type"], f"HTML is served as {answer['content-type']}")
    # Asked for as a page: it is a download, and this page stays.
    max_.browser.run("location.href = arguments[0]", address)
    max_.browser.wait(".row .text", "Grüße")
    expect("owned" not in max_.browser.title, "a shared file ran as a script")


def test_search_finds_and_jumps(stage):
    ana = stage.people[0]
    ana.browser.keys("Escape")
    ana.browser.run("document.activeElement.blur()")
    ana.browser.keys("/")
    ana.browser.one("#search").type("hello")
    ana.browser.keys("Enter")
    ana.browser.wait(".results .found-text", "Hello Max")
    ana.shot("10-search")
    ana.browser.one(".results button").click()
    ana.browser.wait(".row.found", "Hello Max")
    ana.browser.keys("Escape")
    ana.browser.gone("#search")


def test_to_one_person(stage):
    ana, max_ = stage.people[:2]
    if not ana.browser.has(".person button"):
        ana.browser.one("button[aria-label=Members]").click()
    ana.browser.one(".person button", "Max").click()
    ana.browser.wait("h1", "Max")
    ana.say("Only for you")
    ana.sees("Only for you")
    ana.browser.wait(".own .status", "Delivered")
    max_.browser.one(".rooms button", "Ana").click()
    max_.sees("Only for you")
    max_.shot("11-peer")
    max_.browser.one(".rooms button", "garden").click()
    ana.browser.one(".rooms button", "garden").click()
    # What was said alone is there again after a reload, too.
    ana.open_page()
    ana.browser.one(".rooms button", "Max").click()
    ana.sees("Only for you")
    ana.browser.one(".rooms button", "garden").click()


def test_who_is_who(stage):
    ana = stage.people[0]
    ana.browser.one(".rooms button", "Max").click()
    ana.browser.one(".room-actions button", "Verify").click()
    ana.browser.wait("dialog .code")
    code = eventually(lambda: ana.browser.one("dialog .code").text, 20, "the digits are shown").replace(" ", "")
    other = stage.people[1].call("GET", f"/v1/peers/{ana.peer_id}/verification")[1]["code"].replace(" ", "")
    expect(code == other and len(code) == 30, f"Ana sees {code}, Max {other}")
    ana.browser.one("dialog button", "We see the same").click()
    ana.browser.wait("dialog button", "No longer verified")
    ana.shot("16-verify")
    ana.browser.keys("Escape")
    ana.browser.gone("dialog")
    ana.browser.wait(".room-title .mark", "verified")
    ana.browser.one(".rooms button", "garden").click()
    ana.browser.wait(".person .mark", "verified")


def test_unread_counts(stage):
    ana, max_ = stage.people[:2]
    ana.join("lobby")
    max_.say("While you were in the lobby")
    ana.browser.wait(".rooms .badge", "1")
    expect(ana.browser.title.startswith("(1)"), f"the title is {ana.browser.title}")
    ana.shot("12-unread")
    ana.browser.one(".rooms button", "garden").click()
    ana.browser.wait(".marker", "New")
    ana.browser.gone(".rooms .badge")
    ana.shot("13-marker")


def test_hostile_names_are_text(stage):
    ana = stage.people[0]
    mallory = stage.person(HOSTILE[:60])
    mallory.join("lobby")
    mallory.call("POST", "/v1/channels/lobby/messages", {"body": HOSTILE})
    mallory.call("POST", "/v1/channels/lobby/messages", {"body": "W" * 29_000})
    mallory.call("POST", "/v1/channels/lobby/messages", {"body": "\u202egpj.exe\u2066 Z" + "a\u0301\u0316" * 400})
    name = stage.folder / "<b>\u202egpj.svg"
    name.write_text("<svg xmlns='http://www.w3.org/2000/svg' onload=\"document.title='owned'\"/>")
    mallory.cli("share", "lobby", str(name))
    ana.browser.one(".rooms button", "lobby").click()
    ana.sees(HOSTILE)
    ana.browser.wait(".person .name", "<img")
    ana.browser.wait(".row .file-name", "<b>")
    expect(ana.browser.run("return document.querySelectorAll('img[src=x], .row b').length") == 0, "a text became HTML")
    expect("owned" not in ana.browser.title, "a text ran as a script")
    shown = ana.browser.run("return document.querySelector('.timeline').textContent")
    expect("\u202e" not in shown, "a text can reorder what stands around it")
    expect(not ana.browser.run("return document.documentElement.scrollWidth > innerWidth"),
           "a long word widens the page")
    ana.shot("14-hostile")
    mallory.browser.close()
    mallory.stop()
    ana.browser.wait(".panel h3", "Offline", within=30)
    ana.browser.one(".rooms button", "garden").click()


def test_foreign_hosts_and_origins_are_refused(stage):
    ana = stage.people[0]
    port = ana.port
    own = f"127.0.0.1:{port}"
    status, headers, body = request(port, headers={"Host": own})
    expect(status == 200 and b"<title>Parley" in body, f"the page itself: {status}")
    policy = headers["Content-Security-Policy"]
    expect("script-src 'self'" in policy and "unsafe" not in policy, f"the policy is {policy}")
    expect(headers["Referrer-Policy"] == "no-referrer" and headers["X-Content-Type-Options"] == "nosniff",
           "a header is missing")
    for host in ["evil.example", f"evil.example:{port}", "127.0.0.1", f"127.0.0.1:{port + 1}", ""]:
        expect(request(port, headers={"Host": host})[0] == 403, f"the host {host!r} is let in")
    base, cookie = ana.browser.run("return localStorage.getItem('parley.base')"), None
    for found in ana.browser.devtools("Network.getAllCookies")["cookies"]:
        if found["name"] == f"parley-{port}":
            cookie = found
    expect(cookie["httpOnly"] and cookie["sameSite"] == "Strict" and cookie["path"] == base + "/",
           f"the cookie is {cookie}")
    good = {"Host": own, "Cookie": f"{cookie['name']}={cookie['value']}"}
    expect(request(port, base + "/v1/id", headers=good)[0] == 200, "the cookie does not let in")
    foreign = ["http://evil.example", f"http://evil.example:{port}", "null", f"https://{own}",
               f"http://127.0.0.1:{port + 1}"]
    for origin in foreign:
        for method in ["GET", "POST"]:
            answer = request(port, base + "/v1/channels", method, {**good, "Origin": origin}, b"{}")
            expect(answer[0] == 403, f"{method} from {origin} gets {answer[0]}")
    expect(request(port, base + "/v1/id", headers={**good, "Sec-Fetch-Site": "cross-site"})[0] == 403, "cross-site")
    expect(request(port, base + "/v1/channels", "POST", good, b"{}")[0] == 403, "a POST that names no origin")
    expect(request(port, base + "/v1/id", headers={"Host": own})[0] == 401, "without the cookie")
    expect(request(port, "/v1/id", headers=good)[0] == 401, "without the secret address")
    expect(request(port, "/session", "POST", {"Host": own, "Origin": f"http://{own}"},
                   b'{"token": "' + b"0" * 64 + b'"}')[0] == 401, "a wrong token")
    origin = {"Origin": f"http://{own}"}
    for method, path, body in [("POST", "/v1/down", b"{}"), ("POST", "/v1/channels/garden/media", b'{"path": "/etc"}'),
                               ("GET", "/v1/page", None)]:
        answer = request(port, base + path, method, {**good, **origin}, body)
        expect(answer[0] == 403, f"{path} answers a page with {answer[0]}")


def test_the_node_restarts_under_an_open_page(stage):
    ana, max_ = stage.people[:2]
    ana.browser.wait("h1", "garden")
    before = ana.browser.run("window.stillTheSamePage = true; return document.querySelectorAll('.row').length")
    ana.stop()
    ana.browser.wait(".banner", "does not answer")
    max_.browser.wait(".panel h3", "Offline", within=30)
    ana.shot("15-node-away")
    max_.say("Said while Ana's node was away")
    max_.browser.wait(".own .text", "was away")
    ana.start()
    ana.sees("Said while Ana's node was away", within=30)
    ana.browser.gone(".banner", within=30)
    max_.say("And afterwards")
    ana.sees("And afterwards")
    texts = ana.browser.run("return [...document.querySelectorAll('.row .text')].map((item) => item.textContent)")
    expect(len(texts) == len(set(texts)), f"something is shown twice: {texts}")
    expect(ana.browser.run("return document.querySelectorAll('.row').length") == before + 2, "a row is missing")
    expect(ana.browser.run("return window.stillTheSamePage === true"), "the page was loaded anew")
    ana.say("I am back")
    max_.sees("I am back")


def test_everything_by_keyboard(stage):
    max_ = stage.people[1]
    page = max_.browser
    page.keys("Escape")
    page.run("document.activeElement.blur()")
    page.keys("j")
    page.wait("dialog")
    page.write("keys")
    # From the name: to the choice, to the button.
    page.keys("Enter")
    page.wait("h1", "keys")
    page.write("typed without a mouse")
    page.keys("Shift", "Enter")
    page.write("second line")
    page.keys("Enter")
    page.wait(".own .text", "second line")
    page.keys("Alt", "ArrowUp")
    page.gone("h1", "keys")
    # Tab reaches everything that can be pressed, and shows where it is.
    page.run("document.querySelector('.skip').focus()")
    reached = set()
    for _ in range(60):
        page.keys("Tab")
        reached.add(page.run("""const item = document.activeElement
          return item.getAttribute('aria-label') ?? item.textContent.trim().slice(0, 20)"""))
    for wanted in ["Search", "Members", "Files", "Share files", "Send", "Join a channel"]:
        expect(any(wanted in name for name in reached), f"Tab does not reach {wanted}: {reached}")
    page.run("document.activeElement.blur()")
    page.keys("?")
    page.wait("dialog", "raise or lower")
    page.keys("Escape")
    page.gone("dialog")


def test_leaving_and_coming_back_with_one_click(stage):
    max_ = stage.people[1]
    page = max_.browser
    page.one(".rooms button", "keys").click()
    if not page.has(".panel-foot button"):
        page.one("button[aria-label=Members]").click()
    page.one(".panel-foot button", "Leave").click()
    page.one("dialog button", "Leave").click()
    page.gone(".rooms button", "keys")
    page.one("button", "Join a channel").click()
    page.one(".earlier button", "keys").click()
    page.wait("h1", "keys")
    page.wait(".own .text", "typed without a mouse")
    page.one(".rooms button", "garden").click()


def test_nothing_was_complained_of(stage):
    for person in stage.people[:2]:
        found = [entry["message"] for entry in person.browser.log()
                 if "ERR_" not in entry["message"] and "401" not in entry["message"]]
        expect(not found, f"{person.name}'s page: {found}")
