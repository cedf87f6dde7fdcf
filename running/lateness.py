"""How late the timers of a lab's devices fire on this machine: those of a process that goes before others as they do.

A process without that priority also waits for the devices themselves. The process is this file, run as a program.
"""

from __future__ import annotations

import os
import select
import statistics
import subprocess
import threading
import time
from array import array
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from judging import Span

__all__ = ["Lateness"]

PERIOD_S = 0.002  # of timers whose lateness is watched
PART_S = 0.3  # parts of a span, of which half may have later wake-ups than the lab's timers allow for


class Lateness:
    """Watches, while it is entered, how late timers fire, with one thread on each processor."""

    def __init__(self) -> None:
        self.wakes: list[tuple[int, int]] = []  # instant and lateness, ns

    def __enter__(self) -> Lateness:
        from common.interpreter import python
        from topo.emulation import process

        self._watch = subprocess.Popen(
            python(__file__), stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
        )
        process.go_before_others(self._watch.pid)
        assert self._watch.stdout is not None
        self._watch.stdout.read(1)  # its threads run
        return self

    def __exit__(self, *_: object) -> None:
        told = array("q")
        output = self._watch.communicate()[0]
        told.frombytes(output[: len(output) // 16 * 16])
        self.wakes = list(zip(told[::2], told[1::2], strict=True))

    def usual(self, span: Span) -> int:
        """The worst lateness of a part of a span, ns: the median of all parts.

        On two processors a part has about 300 wake-ups, so about one in 400 is later. A machine that freezes for a
        moment delays every wake-up of the moment, and that is one event: a share of all wake-ups would make of one
        freeze in two seconds the usual lateness.
        """
        count = max(1, round(span.length_ns / 1e9 / PART_S))
        worst = [0] * count
        for t_ns, late_ns in self.wakes:
            if span.contains(t_ns):
                part = min(count - 1, (t_ns - span.start_ns) * count // span.length_ns)
                worst[part] = max(worst[part], late_ns)
        return int(statistics.median_low(worst))


def watch(processor: int, wakes: list[int], ended: threading.Event) -> None:
    """Sleep for a period again and again on one processor; note when each sleep ended, and how late."""
    os.sched_setaffinity(0, {processor})  # of this thread
    while not ended.is_set():
        due_ns = time.monotonic_ns() + round(PERIOD_S * 1e9)
        time.sleep(PERIOD_S)
        now_ns = time.monotonic_ns()
        wakes += (now_ns, now_ns - due_ns)


def main() -> None:
    """Watch until the input ends, which it also does with the process that started this one."""
    ended, seen = threading.Event(), [list[int]() for _ in os.sched_getaffinity(0)]
    pairs = zip(os.sched_getaffinity(0), seen, strict=True)
    threads = [threading.Thread(target=watch, args=(processor, wakes, ended)) for processor, wakes in pairs]
    for thread in threads:
        thread.start()
    os.write(1, b".")
    select.select([0], [], [])
    ended.set()
    for thread in threads:
        thread.join()
    with os.fdopen(1, "wb") as output:
        output.write(array("q", [number for wakes in seen for number in wakes]).tobytes())


if __name__ == "__main__":
    main()
