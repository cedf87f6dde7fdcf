"""docs/guide/hangs.md: one time-out with three causes, and the commands that tell them apart."""

import os
import re
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.helpers.living_lab import MRCLAB, mrclab, tiny
from tests.helpers.pytorch.world import require_torch
from tests.helpers.waiting import eventually
from topo.emulation.lab import Lab

pytestmark = [pytest.mark.root, pytest.mark.slow]
PAGE = Path(__file__).parents[2] / "docs" / "guide" / "hangs.md"
PROCESSES = re.search(r"sh -c '(ps .*)'", PAGE.read_text())
CAUSES = {
    "network": ("down", r"\sS\S*\s+futex"),
    "host": ("up", r"\sT\S*\s+do_signal_stop"),
    "program": ("up", r"\sS\S*\s+hrtimer_nanosleep"),
}


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    require_torch()
    with tiny() as running:
        yield running


@pytest.mark.parametrize("cause", CAUSES)
def test_the_commands_of_the_chapter_tell_three_causes_of_one_time_out_apart(cause: str, lab: Lab) -> None:
    words = [*MRCLAB, "launch", "--ranks", "h0,h1", "--", "/usr/bin/python3", "docs/programs/hang.py"]
    with tempfile.TemporaryFile("w+") as log:

        def said() -> str:
            log.seek(0)
            return log.read()

        launched = subprocess.Popen([*words, *(["1"] if cause == "program" else [])], stdout=log, stderr=log)
        try:
            eventually(lambda: "h1: step 10" in said(), "it steps", 120)
            assert PROCESSES is not None
            listed = ["exec", "h1", "--", "sh", "-c", PROCESSES[1]]
            stopped = int(mrclab(*listed).splitlines()[-1].split()[0])
            if cause == "network":
                for port in ("h1-p0l0", "h1-p1l0"):
                    mrclab("fault", "link-down", port)
            elif cause == "host":
                os.kill(stopped, signal.SIGSTOP)
            else:
                eventually(lambda: "h1: step 19" in said(), "it steps", 60)
            ports, state = CAUSES[cause]
            eventually(lambda: re.search(state, mrclab(*listed)) is not None, f"the rank is in {state}", 20)
            rows = [row for row in mrclab("inspect", "h1").splitlines() if row.startswith("h1-p")]
            assert [row.split()[2] for row in rows] == [ports, ports]
            launched.wait(200)
        finally:
            launched.kill()
            launched.wait()
            mrclab("undo", "all")
        assert re.search(
            r"h0: .*all-reduce has not ended within its timeout \(call \d+ of its group waits for rank 1", said()
        )
