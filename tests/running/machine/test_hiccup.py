"""The hiccup meter sees a processor that was away, and goes away itself with whoever started it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from random import Random

import pytest

from running.calibration import PERIOD_NS as LOOK_PERIOD_NS
from running.machine.hiccup import PERIOD_NS, HiccupMeter
from tests.helpers.waiting import eventually

Line = dict[str, object]


def lines(path: Path) -> list[Line]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def stalls(path: Path, since_ns: int) -> list[int]:
    """How late the first processor's thread was, each time that a stall was noted since then, in ns."""
    noted = [line for line in lines(path) if line["kind"] == "stall" and line["node"] == "cpu0"]
    return [int(str(line["late_ns"])) for line in noted if int(str(line["t_ns"])) >= since_ns]


def nodes(path: Path) -> set[object]:
    return {line["node"] for line in lines(path) if line["kind"] == "hiccup"}


def test_a_frozen_meter_says_since_when_and_how_long_on_every_processor(tmp_path: Path) -> None:
    path = tmp_path / "meter.jsonl"
    every = {f"cpu{number}" for number in os.sched_getaffinity(0)}
    with HiccupMeter(path) as meter:
        eventually(lambda: nodes(path) == every, "all threads measure")
        froze: list[tuple[int, int]] = []

        def seen() -> set[object]:
            """Who has journalled the last freeze."""
            frozen_ns, thawed_ns = froze[-1]
            return {
                line["node"]
                for line in lines(path)
                if line["kind"] == "stall"
                and int(str(line["late_ns"])) > 150_000_000
                and int(str(line["t_ns"])) >= thawed_ns
                and int(str(line["t_ns"])) - int(str(line["late_ns"])) <= frozen_ns + 2 * PERIOD_NS
            }

        def seen_in_time() -> bool:
            os.kill(meter.pid, signal.SIGSTOP)
            frozen_ns = time.monotonic_ns()
            time.sleep(0.2)
            froze.append((frozen_ns, time.monotonic_ns()))
            os.kill(meter.pid, signal.SIGCONT)
            deadline_s = time.monotonic() + 2
            while seen() != every and time.monotonic() < deadline_s:
                time.sleep(0.01)
            return seen() == every

        # Whoever else freezes and thaws processes on this machine may have let the meter go on too early.
        eventually(seen_in_time, "the stall is journalled")


@pytest.mark.parametrize("period_ns", [PERIOD_NS, LOOK_PERIOD_NS])
def test_a_stall_is_noted_to_within_a_period(tmp_path: Path, period_ns: int) -> None:
    """Stops at random instants: what is noted is no shorter than a stop by more than a period."""
    path = tmp_path / "meter.jsonl"
    rng = Random(1)
    missed_ns: list[int] = []
    with HiccupMeter(path, period_ns) as meter:
        eventually(lambda: "cpu0" in nodes(path), "it measures")

        def stopped_twenty_times() -> bool:
            time.sleep(rng.uniform(0.02, 0.05))
            os.kill(meter.pid, signal.SIGSTOP)
            stopped_ns = time.monotonic_ns()
            time.sleep(0.02)
            thawed_ns = time.monotonic_ns()
            os.kill(meter.pid, signal.SIGCONT)
            deadline_s = time.monotonic() + 0.5
            while not stalls(path, thawed_ns) and time.monotonic() < deadline_s:
                time.sleep(0.001)
            # None: whoever else freezes and thaws processes on this machine has let the meter go on too early.
            missed_ns.extend(thawed_ns - stopped_ns - late_ns for late_ns in stalls(path, thawed_ns)[:1])
            return len(missed_ns) == 20

        eventually(stopped_twenty_times, "twenty stops are journalled")
    missed_ns.sort()
    # A stop begins a little after its signal is sent, and later where another process has the meter's processor.
    assert missed_ns[12] <= period_ns + 1_000_000


def test_the_meter_ends_when_its_parent_is_killed(tmp_path: Path) -> None:
    path = tmp_path / "meter.jsonl"
    program = (
        "import sys, time; from pathlib import Path; from running.machine.hiccup import HiccupMeter\n"
        f"with HiccupMeter(Path({str(path)!r})) as meter:\n    print(meter.pid, flush=True); time.sleep(60)\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    pid = int(parent.stdout.readline())
    eventually(lambda: bool(lines(path)), "the meter has begun")
    parent.kill()
    parent.wait()
    parent.stdout.close()

    def gone() -> bool:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
        except FileNotFoundError:
            return True
        return state == "Z"  # nobody is left to wait for it but init

    eventually(gone, "the meter is gone")
