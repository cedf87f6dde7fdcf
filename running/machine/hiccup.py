"""The hiccup meter: a separate process with one thread per processor, which notes how late its own timer fires.

The causes that delay such a thread delay every process: a hypervisor that took the processor away, a frozen lab, a
process of higher priority. With real-time priority (where the kernel allows it) the lab's own load does not delay the
meter, so a delay is the machine's doing. The meter is a separate process, because a thread of the runner would wait for
the runner's interpreter lock and report the runner's own work.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

from common.interpreter import python
from common.journal import Journal

PERIOD_NS = 10_000_000
"""A stall that begins in a thread's sleep is noted from the sleep's end on: as up to a period shorter than it was."""
STALL_NS = 2_000_000
"""Lateness from which on a line is written; judging compares it with a round trip."""
PRIORITY = 10  # above ordinary real-time work at 1, below the kernel's own threads at 50


class HiccupMeter:
    """Runs the meter's process while it is entered; it ends by itself when this process does, however that is."""

    def __init__(self, journal: Path, period_ns: int = PERIOD_NS, *, ordinary: bool = False) -> None:
        """`ordinary`: as late as any other process is, without real-time priority."""
        self._journal = journal
        self._further = ["--period-ns", str(period_ns), *(["--ordinary"] if ordinary else [])]
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> HiccupMeter:
        words = python("-m", "running.machine.hiccup", "--journal", str(self._journal), *self._further)
        self._process = subprocess.Popen(words, stdin=subprocess.PIPE)
        return self

    @property
    def pid(self) -> int:
        """The process id of the meter, while it is entered."""
        assert self._process is not None
        return self._process.pid

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            assert self._process.stdin is not None
            self._process.stdin.close()
            self._process.wait()
            self._process = None


def measure(processor: int, journal: Journal, period_ns: int, ordinary: bool, ended: threading.Event) -> None:
    """One thread: sleeps for a period on its processor, notes how late it woke; sums go into `hiccup` lines."""
    os.sched_setaffinity(0, {processor})
    node = f"cpu{processor}"
    due_ns = time.monotonic_ns()
    journal.write("hiccup", t_ns=due_ns, node=node, realtime=not ordinary and be_realtime())
    while not ended.is_set():
        due_ns += period_ns
        now_ns = time.monotonic_ns()
        if due_ns > now_ns:
            time.sleep((due_ns - now_ns) / 1e9)
        now_ns = time.monotonic_ns()
        if now_ns - due_ns >= STALL_NS:
            journal.write("stall", t_ns=now_ns, node=node, late_ns=now_ns - due_ns)
            due_ns = now_ns


def be_realtime() -> bool:
    """Ask for real-time priority for this thread; return whether the kernel has granted it."""
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(PRIORITY))
    except OSError:
        return False
    return True


def main() -> int:
    """Measure on every processor that this process may use, until standard input ends with the parent."""
    parser = argparse.ArgumentParser(prog="python -m running.machine.hiccup")
    parser.add_argument("--journal", type=Path, required=True)
    parser.add_argument("--period-ns", type=int, default=PERIOD_NS)
    parser.add_argument("--ordinary", action="store_true")
    arguments = parser.parse_args()
    journal = Journal(arguments.journal, "meter")
    journal.write_process("meter")
    started_ns = time.monotonic_ns()
    ended = threading.Event()
    threads = [
        threading.Thread(
            target=measure, args=(processor, journal, arguments.period_ns, arguments.ordinary, ended), daemon=True
        )
        for processor in sorted(os.sched_getaffinity(0))
    ]
    for thread in threads:
        thread.start()
    try:
        while os.read(0, 4096):
            pass
    except KeyboardInterrupt:
        pass  # Ctrl-C goes to the whole group; the runner ends in its own way, and then so does standard input
    ended.set()
    for thread in threads:
        thread.join()
    journal.write("cpu", process_ns=time.process_time_ns(), wall_ns=time.monotonic_ns() - started_ns)
    journal.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
