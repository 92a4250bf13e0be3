"""One file from one program to another over loopback, beside the floor and other programs."""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

from common import ROOT, benchmark_program, check_same, compiled, make_file, span
from hosts import Hosts, Node, Program, Tree, wait_until


class Single:
    """One file from one program to another over loopback. Every way returns seconds from the request to the end, and of
    sender and receiver the processor seconds meanwhile and the most memory (MiB), in all and above idle."""

    port = 46_500

    def __init__(self, arguments, folder):
        self.arguments, self.folder = arguments, folder
        self.source = make_file(folder / "file.bin", arguments.mib)
        self.hosts = Hosts("single")
        self.host = self.hosts.add("host")
        self.program = benchmark_program()
        self.ways = {"Parley": self.parley, "floor": self.floor}
        self.floor_program = compiled(folder, "mediafloor.c", "mediafloor", "-lsodium", "-lcrypto")
        if arguments.peers:
            subprocess.run([ROOT / "Scripts" / "setup", "bench"], check=True)
            self.ways |= {"scp aes128-gcm": self.scp, "nginx, curl over TLS": self.https}
        if arguments.only is not None:
            self.ways = {name: way for name, way in self.ways.items() if name in arguments.only.split(",")}

    def parley(self, folder):
        sides = []
        try:
            for name in ("sender", "receiver"):
                sides.append(Node(self.host, folder, name, self.program, "lo"))
            for side in sides:
                side.ask("members 2")
            sender, receiver = sides
            idle = [side.memory("VmRSS") for side in sides]
            media = sender.ask(f"share {self.source}")["id"]
            before = [side.seconds() for side in sides]
            (folder / "in").mkdir()
            seconds = receiver.ask(f"download {media} {folder / 'in'}")["seconds"]
            took = [side.seconds() - was for side, was in zip(sides, before)]
            peaks = [side.memory("VmHWM") for side in sides]
            check_same(self.source, folder / "in" / self.source.name)
            return self.row(seconds, took, peaks, [peak - was for peak, was in zip(peaks, idle)])
        finally:
            for side in sides:
                side.stop()

    def floor(self, folder):
        Single.port += 1
        threads, target = os.cpu_count(), folder / "target"
        sender = Program(self.host, folder, "sender", [self.floor_program, "send", Single.port, self.source, threads])
        receiver = Program(self.host, folder, "receiver", [
            self.floor_program, "receive", Single.port, target, threads, self.source.stat().st_size])
        sides = [sender, receiver]
        try:
            for side in sides:
                side.line()
            before, idle = [side.seconds() for side in sides], [side.memory("VmRSS") for side in sides]
            for side in sides:
                side.tell("go")
            seconds = float(receiver.line())
            took = [side.seconds() - was for side, was in zip(sides, before)]
            peaks = [side.memory("VmHWM") for side in sides]
            check_same(self.source, target)
            return self.row(seconds, took, peaks, [peak - was for peak, was in zip(peaks, idle)])
        finally:
            for side in sides:
                side.stop()

    @staticmethod
    def row(seconds, took, peaks, above=(None, None)):
        return {"seconds": seconds, "sender": took[0], "receiver": took[1], "sender_peak": peaks[0],
                "receiver_peak": peaks[1], "sender_above": above[0], "receiver_above": above[1]}

    def listens(self, port):
        probe = "import socket, sys; socket.create_connection(('127.0.0.1', int(sys.argv[1]))).close()"
        return subprocess.run(["ip", "netns", "exec", self.host, sys.executable, "-c", probe, str(port)],
                              stderr=subprocess.DEVNULL, check=False).returncode == 0

    def beside(self, folder, server, client, port, target, is_upload):
        """A server that stays and a client that ends with the transfer."""
        server = Program(self.host, folder, "server", server)
        tree = Tree(server.pid)
        try:
            wait_until(lambda: self.listens(port), 10, f"{server.name} does not listen")
            before, start = tree.seconds(), time.monotonic()
            program = Program(self.host, folder, "client", client)
            mine = Tree(program.pid)
            _, status, usage = os.wait4(program.pid, 0)
            seconds = time.monotonic() - start
            program.process.returncode = os.waitstatus_to_exitcode(status)
            own_peak = max(mine.stop(), usage.ru_maxrss / 1024)
            if status != 0:
                raise program.failed("the transfer failed")
            wait_until(lambda: len(tree.members()) <= 2, 5, "the server does not end with its client")
            took = [usage.ru_utime + usage.ru_stime, tree.seconds() - before]
            peaks = [own_peak, tree.stop()]
            check_same(self.source, target)
            order = slice(None) if is_upload else slice(None, None, -1)
            return self.row(seconds, took[order], peaks[order])
        finally:
            tree.stop()
            server.stop()

    def scp(self, folder):
        Single.port += 1
        folder.chmod(0o755)
        pathlib.Path("/run/sshd").mkdir(exist_ok=True)
        for name in ("host", "user"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / name], check=True)
        shutil.copy(folder / "user.pub", folder / "allowed")
        settings = {"ListenAddress": f"127.0.0.1:{Single.port}", "AuthorizedKeysFile": folder / "allowed",
                    "StrictModes": "no", "UsePAM": "no", "PermitRootLogin": "yes", "PidFile": "none",
                    "Subsystem": "sftp internal-sftp"}
        server = ["/usr/sbin/sshd", "-D", "-e", "-f", "/dev/null", "-h", folder / "host"]
        server += [word for key, value in settings.items() for word in ("-o", f"{key}={value}")]
        client = ["scp", "-q", "-c", "aes128-gcm@openssh.com", "-i", folder / "user", "-P", Single.port,
                  "-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null", self.source,
                  f"root@127.0.0.1:{folder / 'target'}"]
        return self.beside(folder, server, client, Single.port, folder / "target", is_upload=True)

    def https(self, folder):
        Single.port += 1
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "9",
             "-subj", "/CN=bench", "-keyout", folder / "key", "-out", folder / "certificate"],
            check=True, stderr=subprocess.DEVNULL)
        (folder / "nginx.conf").write_text(
            f"user root; worker_processes 1; daemon off; pid {folder}/pid; error_log {folder}/errors;\nevents {{}}\n"
            f"http {{ access_log off; sendfile on; client_body_temp_path {folder}/body;\n"
            f"server {{ listen 127.0.0.1:{Single.port} ssl; root {self.source.parent}; ssl_protocols TLSv1.3;\n"
            f"ssl_certificate {folder}/certificate; ssl_certificate_key {folder}/key; }} }}\n")
        client = ["curl", "-ksSf", "-o", folder / "target",
                  f"https://127.0.0.1:{Single.port}/{self.source.name}"]
        server = ["nginx", "-c", folder / "nginx.conf", "-p", folder]
        return self.beside(folder, server, client, Single.port, folder / "target", is_upload=False)

    def measure(self):
        results = {}
        try:
            for run in range(self.arguments.runs):
                for name, way in self.ways.items():
                    with tempfile.TemporaryDirectory(dir=self.folder) as place:
                        row = way(pathlib.Path(place))
                    results.setdefault(name, []).append(row)
                    print(f"run {run + 1}: {name}: {row['seconds']:.2f} s", file=sys.stderr)
        finally:
            self.hosts.close()
            self.source.unlink()
        return results


def report(results, arguments):
    print(f"\n{arguments.mib} MiB over loopback; processor seconds and most memory (above idle) of both sides\n")
    print("| system | seconds | of the floor | sender s | receiver s | sender MiB | receiver MiB |")
    print("|---|---|---|---|---|---|---|")
    floors = results.get("floor", [])
    for name, rows in results.items():
        for row, floor in zip(rows, floors):
            row["ratio"] = floor["seconds"] / row["seconds"]
        above = ["" if rows[0]["sender_above"] is None else f" (+{span(rows, side + '_above', '{:.0f}')})"
                 for side in ("sender", "receiver")]
        print(f"| {name} | {span(rows, 'seconds', '{:.2f}')} | {span(rows, 'ratio', '{:.2f}')} "
              f"| {span(rows, 'sender', '{:.2f}')} | {span(rows, 'receiver', '{:.2f}')} "
              f"| {span(rows, 'sender_peak', '{:.0f}')}{above[0]} "
              f"| {span(rows, 'receiver_peak', '{:.0f}')}{above[1]} |")
    print("\nOf the floor: the floor's rate is 1; each run beside the floor of the same run.")
    if len(results) > 2:
        print("scp checks no hash of the whole; curl neither. Their memory is sampled, 20 times a second.")
