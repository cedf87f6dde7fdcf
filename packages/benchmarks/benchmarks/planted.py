"""Noise planted on purpose: effects of a hypervisor, a busy neighbour or a closed laptop, at will and seeded.

    python -m benchmarks.planted freeze -- ./lab run link-flap --short
    python -m benchmarks.planted mild --seed 3 -- ./lab test

Five kinds, beside none: `freeze` stops all processes of the command for 50 to 800 ms at random instants, `mild` for 5
to 20 ms (under half of the lab's base round trip), `core` leaves the command one processor, `part` six tenths of one,
which needs root, and `loops` has a busy loop of the same priority beside it for each processor. A command that is
killed or ends takes its noise with it.
"""

import argparse
import ctypes
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from random import Random

KINDS = ("none", "core", "part", "loops", "mild", "freeze")
PART = 0.6  # of a processor
PERIOD_US = 100_000
FREEZE_MS = {"freeze": (50.0, 800.0), "mild": (5.0, 20.0)}
PAUSE_S = {"freeze": (1.0, 5.0), "mild": (0.1, 1.0)}
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
        if kind == "loops":
            for _ in os.sched_getaffinity(0):
                looping = subprocess.Popen([sys.executable, __file__, "loop"])
                stack.callback(looping.wait)
                stack.callback(looping.kill)
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
