"""Noise planted on purpose: effects of a hypervisor, a busy neighbour or a closed laptop, at will and seeded.

    python -m benchmarks.planted freeze -- ./lab run link-flap --short
    python -m benchmarks.planted mild --seed 3 -- ./lab test

Six kinds, beside none: `freeze` stops all processes of the command for 50 to 800 ms at random instants, `mild` for 5
to 20 ms (under half of the lab's base round trip), `hogs` lets processes of real-time priority take half of one
processor, `both` is freeze and hogs, `core` leaves the command one processor, `part` six tenths of one, and `loops` has
a busy loop of the same priority beside it for each processor. `hogs` and `part` need root. A command that is killed or
ends takes its noise with it.
"""

import argparse
import ctypes
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from random import Random

KINDS = ("none", "core", "part", "loops", "mild", "freeze", "hogs", "both")
PART = 0.6  # of a processor
PERIOD_US = 100_000
FREEZE_MS = {"freeze": (50.0, 800.0), "both": (50.0, 800.0), "mild": (5.0, 20.0)}
PAUSE_S = {"freeze": (1.0, 5.0), "both": (1.0, 5.0), "mild": (0.1, 1.0)}
HOG_MS = (5.0, 100.0)
HOG_PRIORITY = 20  # real-time: above every process of the lab
PR_SET_PDEATHSIG = 1


def family(root: int) -> list[int]:
    """A process and all its descendants, oldest first."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rsplit(")", 1)[1].split()
            except OSError:
                continue  # it has ended since
            children.setdefault(int(fields[1]), []).append(int(entry.name))
    found = [root]
    for pid in found:
        found += children.get(pid, [])
    return found


def tell(pids: Sequence[int], number: int) -> None:
    """Send a signal to those processes that are still there."""
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, number)


def freeze(root: int, rng: Random, kind: str, ended: threading.Event, note: Callable[[float], None]) -> None:
    """Stops the family of a process again and again, until `ended`; no process stays stopped."""
    while not ended.wait(rng.uniform(*PAUSE_S[kind])):
        length_s = rng.uniform(*FREEZE_MS[kind]) / 1000
        stopped = family(root)
        tell(stopped, signal.SIGSTOP)
        try:
            ended.wait(length_s)
        finally:
            tell(stopped, signal.SIGCONT)
        note(length_s)


def hog(seed: int, processor: int) -> int:
    """Takes half of a processor, in pieces of random length, at real-time priority, for as long as its parent lives."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    os.sched_setaffinity(0, {processor})
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(HOG_PRIORITY))
    rng = Random(seed)
    parent = os.getppid()
    while os.getppid() == parent:
        length_s = rng.uniform(*HOG_MS) / 1000
        until = time.monotonic() + length_s
        while time.monotonic() < until:
            pass
        time.sleep(length_s)
    return 0


def loop() -> int:
    """Keeps a processor busy at ordinary priority, for as long as its parent lives."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    parent = os.getppid()
    while os.getppid() == parent:
        for _ in range(100_000):
            pass
    return 0


@contextmanager
def confined(root: int) -> Iterator[None]:
    """A process and all that it starts get PART of a processor while it is entered (control groups, either version)."""
    second = Path("/sys/fs/cgroup/cgroup.controllers").exists()
    group = Path("/sys/fs/cgroup" if second else "/sys/fs/cgroup/cpu") / f"mrclab-planted-{root}"
    group.mkdir()
    quota_us = int(PART * PERIOD_US)
    limits = {"cpu.max": f"{quota_us} {PERIOD_US}"} if second else {"cpu.cfs_quota_us": str(quota_us)}
    for name, value in {**limits, "cgroup.procs": str(root)}.items():
        (group / name).write_text(value)
    try:
        yield
    finally:
        for pid in (group / "cgroup.procs").read_text().split():  # what the command has left behind
            (group.parent / "cgroup.procs").write_text(pid)
        group.rmdir()


@contextmanager
def planted(kind: str, root: int, seed: int) -> Iterator[list[float]]:
    """Noise of a kind for the family of a process while it is entered; yields the freezes so far, in s."""
    rng = Random(seed)
    frozen: list[float] = []
    with ExitStack() as stack:
        beside: list[list[str]] = []
        if kind in ("hogs", "both"):
            processor = rng.choice(sorted(os.sched_getaffinity(0)))
            beside = [["hog", str(rng.randrange(1 << 30)), str(processor)]]
        if kind == "loops":
            beside = [["loop"] for _ in os.sched_getaffinity(0)]
        for words in beside:
            process = subprocess.Popen([sys.executable, __file__, *words])
            stack.callback(process.wait)
            stack.callback(process.kill)
        if kind == "core":
            os.sched_setaffinity(root, {rng.choice(sorted(os.sched_getaffinity(0)))})
        if kind == "part":
            stack.enter_context(confined(root))
        if kind in FREEZE_MS:
            ended = threading.Event()
            thread = threading.Thread(target=freeze, args=(root, rng, kind, ended, frozen.append))
            thread.start()
            stack.callback(thread.join)
            stack.callback(ended.set)
        yield frozen


def main(arguments: Sequence[str]) -> int:
    """Run the command under noise; its own exit status. The noise is told on standard error."""
    if arguments and arguments[0] == "hog":
        return hog(int(arguments[1]), int(arguments[2]))
    if arguments and arguments[0] == "loop":
        return loop()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kind", choices=KINDS)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("command", nargs="+", help="after --")
    chosen = parser.parse_args(arguments)
    command = subprocess.Popen(chosen.command)
    with planted(chosen.kind, command.pid, chosen.seed) as frozen:
        try:
            status = command.wait()
        except KeyboardInterrupt:
            status = command.wait()
    sys.stderr.write(f"planted: {chosen.kind}, {len(frozen)} freezes, {sum(frozen):.1f} s of them\n")
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
