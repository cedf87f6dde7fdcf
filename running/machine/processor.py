"""How busy the machine is: a thread of the runner that samples it into the journal."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path

from common.journal import Journal

INTERVAL_S = 0.5


def jiffies() -> tuple[int, int]:
    """(busy, all) since boot over all CPUs, from /proc/stat.

    Time stolen by a hypervisor counts as busy, because it was not ours. Time of processes at low priority ("nice")
    counts as free: they give way to ours, if not at once; agents journal how long they wait (`judging/evidence.py`).
    """
    _, nice, _, idle, waiting, *_ = fields = [int(word) for word in first_line("/proc/stat").split()[1:9]]
    return sum(fields) - nice - idle - waiting, sum(fields)


def stolen() -> int:
    """Jiffies since boot, over all CPUs, that a hypervisor gave to others while ours had work to do."""
    return int(first_line("/proc/stat").split()[8])


def first_line(path: str) -> str:
    return Path(path).read_text().split("\n", 1)[0]


def share(before: tuple[int, int], after: tuple[int, int]) -> float:
    """Busy share between two readings, 0 to 1."""
    total = after[1] - before[1]
    return (after[0] - before[0]) / total if total else 0.0


class ProcessorSampler:
    """Journals a `cpu` line each interval while it is entered."""

    def __init__(self, journal: Journal, read: Callable[[], tuple[int, int]] = jiffies) -> None:
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
