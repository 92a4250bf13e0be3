"""Accessibility, light and dark, narrow windows, languages."""
import importlib.util
import os
import pathlib
import subprocess
import sys
import tempfile
import zipfile

from conditions import Skip
from stage import expect

# Where axe-core comes from: a package of PyPI that has it as one file.
PACKAGE, FILE = "axe-playwright-python==0.1.8", "axe_playwright_python/axe.min.js"


def axe():
    """The source of axe-core: installed, or fetched once."""
    spec = importlib.util.find_spec("axe_playwright_python")
    if spec:
        return (pathlib.Path(spec.submodule_search_locations[0]) / "axe.min.js").read_text()
    cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "parley-axe.js"
    if not cache.exists():
        raise Skip(f"axe-core is not here: pip install {PACKAGE.split('==')[0]}")
    return cache.read_text()


def fetch():
    """Puts axe-core into the cache, unless it is there; says why not."""
    try:
        return axe() and None
    except Skip:
        pass
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run([sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "-d", folder, PACKAGE],
                              capture_output=True, text=True)
        wheels = list(pathlib.Path(folder).glob("*.whl"))
        if done.returncode != 0 or not wheels:
            return done.stderr.strip().splitlines()[-1:]
        cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "parley-axe.js"
        cache.parent.mkdir(parents=True, exist_ok=True)
        cache.write_bytes(zipfile.ZipFile(wheels[0]).read(FILE))
    return None


def check(page, where, source):
    """What axe-core finds against WCAG 2 A and AA."""
    page.run(source + "; return true")
    found = page.run("""
      return axe.run(document, { runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'] })
        .then((result) => result.violations.map((item) => item.id + ': ' + item.nodes.map((node) =>
          node.target.join(' ') + ' — ' + node.failureSummary.split('\\n').slice(1, 3).join(';')).join(' | ')))""")
    expect(not found, f"{where}: " + "\n        ".join(found))


def test_accessible_in_light_and_dark(stage):
    source = axe()
    page = stage.people[0].browser
    for dark in [False, True]:
        mode = "dark" if dark else "light"
        page.emulate(1200, 800, dark=dark)
        for panel in ["Members", "Files", "Search"]:
            if not page.has(f"button[aria-label={panel}][aria-expanded=true]"):
                page.one(f"button[aria-label={panel}]").click()
            check(page, f"{panel}, {mode}", source)
            stage.people[0].shot(f"20-{panel.lower()}-{mode}")
        page.one("button", "Join a channel").click()
        page.wait("dialog")
        check(page, f"the dialog, {mode}", source)
        stage.people[0].shot(f"21-join-{mode}")
        page.keys("Escape")
        page.gone("dialog")
    page.emulate(1200, 800)
    page.one("button[aria-label=Members]").click()


def test_accessible_dialogs(stage):
    source = axe()
    person = stage.people[0]
    page = person.browser
    if not page.has(".rooms button", "club"):
        raise Skip("there is no channel of its own: run all of it")
    page.one(".rooms button", "club").click()
    if not page.has(".panel-foot button"):
        page.one("button[aria-label=Members]").click()
    for width, dark in [(1200, False), (1200, True), (360, False)]:
        page.emulate(width, 800 if width > 400 else 640, dark=dark, reduced=True)
        mode = f"{width}-{'dark' if dark else 'light'}"
        for name, button, text in [("person", "button[aria-label='More about Max']", None),
                                   ("invite", ".panel-foot button", "Invite"), ("doctor", ".state-line", None),
                                   ("keys", "button[aria-label=Keys]", None)]:
            if width < 400 and name in ("person", "invite"):
                if not page.has(".panel-foot button"):
                    page.one("button[aria-label=Members]").click()
            elif width < 400:
                page.keys("Escape")
                page.one("button[aria-label=Channels]").click()
            page.one(button, text).click()
            page.wait("dialog")
            if name == "doctor":
                page.wait("dialog .findings .mark")
            if name == "invite":
                page.one("dialog button[type=submit]").click()
                page.wait("#invite-link")
            check(page, f"{name}, {mode}", source)
            wide = page.run("const box = document.querySelector('dialog'); return box.scrollWidth - box.clientWidth")
            expect(wide <= 0, f"the dialog {name} is {wide} px too wide at {width} px")
            person.shot(f"26-{name}-{mode}")
            page.keys("Escape")
            page.gone("dialog")
    page.emulate(1200, 800)
    page.keys("Escape")
    page.one(".rooms button", "garden").click()


def test_narrow_windows(stage):
    person = stage.people[0]
    page = person.browser
    if page.has("button[aria-label=Members][aria-expanded=true]"):
        page.one("button[aria-label=Members]").click()
    for width in [360, 700]:
        page.emulate(width, 640, reduced=True)
        wide = page.run("return document.documentElement.scrollWidth")
        expect(wide <= width, f"at {width} px the page is {wide} px wide")
        person.shot(f"22-narrow-{width}")
        cut = page.run("""return [...document.querySelectorAll('button, textarea')].filter((item) =>
          item.checkVisibility({ visibilityProperty: true })).filter((item) => {
            const box = item.getBoundingClientRect()
            return box.width > 1 && (box.left < -1 || box.right > innerWidth + 1)
          }).map((item) => item.outerHTML.slice(0, 80))""")
        expect(not cut, f"at {width} px these are cut off: {cut}")
    page.emulate(360, 640, reduced=True)
    page.one("button[aria-label=Channels]").click()
    page.wait(".sidebar .rooms button")
    person.shot("23-narrow-menu")
    page.one(".rooms button", "garden").click()
    page.one("button[aria-label=Members]").click()
    person.shot("24-narrow-members")
    page.keys("Escape")
    page.emulate(1200, 800)


def test_languages(stage):
    person = stage.people[1]
    page = person.browser
    for code, word in [("de", "Senden"), ("zh", "发送"), ("en", "Send")]:
        page.run("localStorage.setItem('parley.language', arguments[0])", code)
        page.open(page.address)
        page.wait("button[type=submit]", word)
        expect(page.run("return document.documentElement.lang") == code, "the page does not say its language")
        page.wait(".row .text")
        person.shot(f"25-language-{code}")
    missing = page.run("""
      return Promise.all(['en', 'de', 'zh'].map((name) => import(`/text-${name}.js`))).then((all) => {
        const names = all.map((table) => Object.keys(table.default).sort().join())
        return names.every((list) => list === names[0]) ? null : names
      })""")
    expect(missing is None, f"the languages have different texts: {missing}")
