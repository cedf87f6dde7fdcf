"""`./lab run smoke` on real links as a command, for tests that interrupt it, and what it has left behind."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.helpers.waiting import heeding_interrupts, ran
from topo.graph import links
from topo.planfile import load_plan

MRCLAB = [sys.executable, "-m", "cli"]
# Of patience with a command that hangs: an emulated machine needs minutes for what a processor does in seconds.
LIMIT_S = 600


@pytest.fixture
def lab() -> Iterator[None]:
    yield
    subprocess.run([*MRCLAB, "down"], check=False, timeout=LIMIT_S, capture_output=True)


def start_smoke(runs: Path, *more: str, stderr: int | None = None) -> subprocess.Popen[str]:
    words = [*MRCLAB, "run", "smoke", "--plain", "--rate", "4", "--seed", "1", "--runs", str(runs), *more]
    return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=stderr, text=True, preexec_fn=heeding_interrupts)


def until(process: subprocess.Popen[str], words: str) -> None:
    assert process.stdout is not None
    for line in process.stdout:
        if words in line:
            return
    pytest.fail(f"the run ended with {process.wait()} before it said {words!r}")


def left_behind() -> set[str]:
    """Namespaces and links of the plan that ran; others on this machine are not ours to judge."""
    plan = load_plan("tiny")
    names = {str(node) for node in [*plan.hosts(), *plan.switches()]}
    wires = {end.interface for link in links(plan) for end in (link.a, link.b)}
    shown = subprocess.run(["ip", "-j", "link"], capture_output=True, text=True, check=True).stdout
    here = {path.name for path in Path("/run/netns").glob("*")} | {link["ifname"] for link in json.loads(shown)}
    return here & (names | wires)


def reported(runs: Path) -> tuple[int, str]:
    done = ran([*MRCLAB, "report", "latest", "--runs", runs], LIMIT_S)
    return done.returncode, done.stdout
