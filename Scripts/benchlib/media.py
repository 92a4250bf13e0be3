"""Scripts/bench media: files between nodes, beside the floor and other programs."""
import json
import os
import pathlib
import platform
import subprocess
import time

import chat
import many
import single
from common import Stopped, machine_busy_seconds
from hosts import Hosts


def congestion_control():
    hosts = Hosts("look")
    try:
        return Hosts.congestion_control(hosts.add("host"))
    finally:
        hosts.close()


def measure(arguments, folder):
    kind = subprocess.run(["stat", "-f", "-c", "%T", folder], check=True, stdout=subprocess.PIPE, text=True).stdout
    if kind.strip() not in ("tmpfs", "ramfs"):
        raise Stopped(f"{folder} is not in memory ({kind.strip()}): name a folder that is, with --home")
    parts = arguments.parts.split(",")
    if not set(parts) <= {"single", "many", "chat"}:
        raise Stopped("--parts takes single, many and chat")
    Hosts.tcp = arguments.tcp
    print(f"{platform.machine()}, {os.cpu_count()} cores, Linux {platform.release()}, TCP {congestion_control()}; "
          f"everything on {kind.strip()}; load {os.getloadavg()[0]:.1f} at the start", flush=True)
    start, busy, results = time.monotonic(), machine_busy_seconds(), {}
    if "single" in parts:
        results["single"] = single.Single(arguments, folder).measure()
        single.report(results["single"], arguments)
    if "many" in parts:
        results["many"] = many.measure(arguments, folder)
        many.report(results["many"])
    if "chat" in parts:
        results["chat"] = chat.measure(arguments, folder)
        chat.report(results["chat"], arguments)
    if arguments.json:
        pathlib.Path(arguments.json).write_text(json.dumps(results))
    took = time.monotonic() - start
    print(f"\n{arguments.runs} runs in {took:.0f} s, in which the machine was busy for "
          f"{(machine_busy_seconds() - busy) / took:.1f} of {os.cpu_count()} cores.")
