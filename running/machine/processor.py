"""How busy the machine is: a thread of the runner that samples it into the journal."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

from common.journal import Journal
from running.directory import RunDirectory
from running.machine.hiccup import HiccupMeter

INTERVAL_S = 0.5


def ticks() -> list[int]:
    """The fields of /proc/stat, in jiffies since boot, over all CPUs that this process may use."""
    ours = {f"cpu{number}" for number in os.sched_getaffinity(0)}
    rows = [line.split() for line in Path("/proc/stat").read_text().splitlines()]
    return [sum(column) for column in zip(*([int(w) for w in row[1:9]] for row in rows if row[0] in ours), strict=True)]


def jiffies() -> tuple[float, float]:
    """(busy, all) since boot, of what this process may have of the machine.

    Time stolen by a hypervisor counts as busy, because it was not ours. Time of processes at low priority ("nice")
    counts as free: they give way to ours, if not at once; agents journal how long they wait (`judging/evidence.py`).
    """
    _, nice, _, idle, waiting, *_ = fields = ticks()
    return sum(fields) - nice - idle - waiting, sum(fields) * capacity() / len(os.sched_getaffinity(0))


@cache
def capacity() -> float:
    """How many processors this process may use at once: those of its affinity, or the quota of its control groups."""
    found = float(len(os.sched_getaffinity(0)))
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, controllers, place = line.split(":", 2)
        second, root = not controllers, Path("/sys/fs/cgroup", controllers)
        if not second and "cpu" not in controllers.split(","):
            continue
        for folder in (root / place.strip("/"), *(root / place.strip("/")).parents):
            with suppress(OSError, ValueError):
                if second:
                    quota, period = (folder / "cpu.max").read_text().split()
                else:
                    quota, period = ((folder / f"cpu.cfs_{name}_us").read_text() for name in ("quota", "period"))
                found = min(found, int(quota) / int(period)) if int(quota) > 0 else found
    return found


def stolen() -> int:
    """Jiffies since boot that a hypervisor gave to others while our CPUs had work to do."""
    return ticks()[7]


def share(before: tuple[float, float], after: tuple[float, float]) -> float:
    """Busy share between two readings, 0 to 1."""
    total = after[1] - before[1]
    return (after[0] - before[0]) / total if total else 0.0


class ProcessorSampler:
    """Journals a `cpu` line each interval while it is entered."""

    def __init__(self, journal: Journal, read: Callable[[], tuple[float, float]] = jiffies) -> None:
        self._journal = journal
        self._read = read
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="processor", daemon=True)

    def __enter__(self) -> ProcessorSampler:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _run(self) -> None:
        before, wall_ns, process_ns = self._read(), time.monotonic_ns(), time.process_time_ns()
        stolen_before = stolen()
        while not self._ended.wait(INTERVAL_S):
            after, wall_now_ns, process_now_ns = self._read(), time.monotonic_ns(), time.process_time_ns()
            stolen_after = stolen()
            self._journal.write(
                "cpu",
                process_ns=process_now_ns - process_ns,
                wall_ns=wall_now_ns - wall_ns,
                host_busy=round(share(before, after), 4),
                steal=round((stolen_after - stolen_before) / max(1, after[1] - before[1]), 4),
            )
            stolen_before = stolen_after
            before, wall_ns, process_ns = after, wall_now_ns, process_now_ns


@contextmanager
def watched(directory: RunDirectory, journal: Journal) -> Iterator[None]:
    """The machine is watched while it is entered: `cpu` lines in the runner's journal, `stall` and `hiccup` lines in
    another."""
    with HiccupMeter(directory.journal("meter")), ProcessorSampler(journal):
        yield
