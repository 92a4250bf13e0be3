"""What the measurements of Scripts/bench have in common."""
import ctypes
import filecmp
import os
import pathlib
import shutil
import signal
import statistics
import subprocess
import sys
import time

MIB = 1 << 20
ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


class Stopped(Exception):
    pass


def processor_seconds(pid):
    """The processor time of a process so far, by its own clock (clock_getcpuclockid(3): ~pid << 3 | 2 on Linux)."""
    return time.clock_gettime((~pid << 3) | 2)


def machine_busy_seconds():
    with open("/proc/stat", encoding="ascii") as file:
        values = [int(value) for value in file.readline().split()[1:]]
    return (sum(values[:8]) - values[3] - values[4]) / os.sysconf("SC_CLK_TCK")


def die_with_parent():
    """Runs in the child: however this script ends, what it started ends with it (PR_SET_PDEATHSIG)."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)


def compiled(folder, source, name, *options):
    out = folder / name
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        raise Stopped("there is no C compiler: run Scripts/setup")
    subprocess.run([compiler, "-O2", "-o", out, ROOT / "Peers" / "Bench" / source, *options], check=True)
    return out


def make_file(path, mib):
    with open(path, "wb") as file:
        for _ in range(mib):
            file.write(os.urandom(MIB))
    return path


def check_same(source, target):
    if not filecmp.cmp(source, target, shallow=False):
        raise Stopped(f"{target} has other bytes than {source}")


def benchmark_program():
    program = os.environ.get("PARLEY_BENCHMARK")
    if program is None:
        subprocess.run([ROOT / "Scripts" / "setup"], check=True)
        build = ["swift", "build", "-c", "release", "--static-swift-stdlib", "--product", "ParleyBenchmark"]
        subprocess.run(build, check=True, cwd=ROOT, stdout=sys.stderr)
        program = ROOT / ".build" / "release" / "ParleyBenchmark"
    return str(program)


def span(rows, key, form):
    values = [row[key] for row in rows if row.get(key) is not None]
    if not values:
        return "—"
    text = form.format(statistics.median(values))
    return text if len(values) == 1 else text + f" [{form.format(min(values))}-{form.format(max(values))}]"
