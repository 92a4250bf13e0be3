"""A terminal of its own, in tmux: what a person would see and press."""
import os
import pathlib
import shutil
import subprocess
import tempfile

from conditions import Failure, Skip, eventually


class Tmux:
    """A server of its own, which ends with the `with`."""

    def __enter__(self):
        if not shutil.which("tmux"):
            raise Skip("needs tmux")
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="parley-terminal-"))
        self.socket = str(self.folder / "tmux")
        self.count = 0
        (self.folder / "tmux.conf").write_text(
            "set -g default-terminal tmux-256color\nset -g monitor-bell on\nset -g bell-action any\n"
            "set -g allow-rename off\nset -g set-titles on\nset -g escape-time 0\nset -g remain-on-exit on\n"
            "set -g history-limit 5000\n")
        return self

    def __exit__(self, *_):
        self.run("kill-server", check=False)
        shutil.rmtree(self.folder, ignore_errors=True)

    def run(self, *arguments, check=True, **options):
        done = subprocess.run(["tmux", "-u", "-S", self.socket, "-f", str(self.folder / "tmux.conf"), *arguments],
                              capture_output=True, text=True, timeout=30, **options)
        if check and done.returncode != 0:
            raise Failure(f"tmux {' '.join(arguments)}: {done.stderr.strip()}")
        return done.stdout

    def window(self, command, width=80, height=24, environment=None):
        self.count += 1
        name = f"w{self.count}"
        set_ = [f"-e{key}={value}" for key, value in (environment or {}).items()]
        self.run("new-session", "-d", "-s", name, "-x", str(width), "-y", str(height), *set_, *command,
                 env={**os.environ, "LANG": "C.UTF-8", "LC_ALL": "C.UTF-8"})
        return Window(self, name)


class Window:
    def __init__(self, tmux, name):
        self.tmux, self.name = tmux, name

    def type(self, text):
        self.tmux.run("send-keys", "-t", self.name, "-l", text)

    def key(self, *names):
        self.tmux.run("send-keys", "-t", self.name, *names)

    def paste(self, text):
        """As terminals do it when asked for marks."""
        self.tmux.run("set-buffer", "-b", "pasted", "--", text)
        self.tmux.run("paste-buffer", "-p", "-r", "-b", "pasted", "-t", self.name)

    def resize(self, width, height):
        self.tmux.run("resize-window", "-t", self.name, "-x", str(width), "-y", str(height))

    def value(self, form):
        return self.tmux.run("display-message", "-p", "-t", self.name, form).rstrip("\n")

    @property
    def cursor(self):
        return tuple(int(part) for part in self.value("#{cursor_x} #{cursor_y}").split())

    @property
    def rows(self):
        return self.tmux.run("capture-pane", "-p", "-t", self.name).rstrip("\n").split("\n")

    @property
    def text(self):
        """All of it, what has scrolled away included; rows that were wrapped are joined."""
        return self.tmux.run("capture-pane", "-p", "-J", "-S", "-", "-t", self.name)

    @property
    def raw(self):
        return self.tmux.run("capture-pane", "-p", "-e", "-S", "-", "-t", self.name)

    @property
    def line(self):
        """The last row that is not empty, with what it continues."""
        rows = [row for row in self.tmux.run("capture-pane", "-p", "-J", "-t", self.name).split("\n") if row.strip()]
        return rows[-1].rstrip() if rows else ""

    def sees(self, text, within=20):
        try:
            eventually(lambda: text in self.text, within, f"{text!r} is shown", every=0.05)
        except Failure as error:
            raise Failure(f"{error}; the screen:\n" + "\n".join("        |" + row for row in self.rows)) from None

    def has_line(self, line, within=20):
        try:
            eventually(lambda: self.line == line, within, f"the line is {line!r}", every=0.05)
        except Failure as error:
            raise Failure(f"{error}; the screen:\n" + "\n".join("        |" + row for row in self.rows)) from None
