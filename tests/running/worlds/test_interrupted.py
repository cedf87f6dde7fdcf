"""A run that is interrupted or killed leaves nothing behind after `down`, and a directory that still opens."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.helpers.interrupts import heeding_interrupts
from topo.emulation import state
from topo.graph import links
from topo.planfile import load_plan

pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root: builds network namespaces"),
    pytest.mark.skipif(state.read_record(state.ROOT) is not None, reason="a lab is running on this machine"),
]

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
    done = subprocess.run(
        [*MRCLAB, "report", "latest", "--runs", str(runs)], capture_output=True, text=True, check=False, timeout=LIMIT_S
    )
    return done.returncode, done.stdout


@pytest.mark.parametrize(
    ("moment", "number"),
    [
        pytest.param("phase reference", signal.SIGINT, marks=pytest.mark.slow),
        pytest.param("link-down", signal.SIGINT, marks=pytest.mark.slow),
        pytest.param("link-down", signal.SIGTERM, marks=pytest.mark.slow),
    ],
)
def test_ctrl_c_takes_the_lab_down_and_the_run_is_unknown(
    lab: None, tmp_path: Path, moment: str, number: signal.Signals
) -> None:
    process = start_smoke(tmp_path)
    until(process, moment)
    process.send_signal(number)
    process.communicate(timeout=LIMIT_S)
    assert process.returncode == 130
    assert left_behind() == set()
    assert not (state.ROOT / "lab.json").exists()
    status, text = reported(tmp_path)
    assert status == 3
    assert "unknown" in text.splitlines()[0]


@pytest.mark.slow
def test_after_kill_9_down_leaves_nothing_and_the_run_still_opens(lab: None, tmp_path: Path) -> None:
    process = start_smoke(tmp_path)
    until(process, "link-down")
    process.kill()
    process.communicate(timeout=LIMIT_S)
    down = subprocess.run([*MRCLAB, "down"], capture_output=True, text=True, check=False, timeout=LIMIT_S)
    assert down.returncode == 0, down.stderr
    assert left_behind() == set()
    ours = subprocess.run(["pgrep", "-f", str(tmp_path)], capture_output=True, text=True, check=False).stdout
    assert ours == ""
    status, text = reported(tmp_path)
    assert status == 3
    assert "unknown" in text.splitlines()[0]


def test_down_during_a_run_ends_it_with_a_word_and_an_unknown_verdict(lab: None, tmp_path: Path) -> None:
    process = start_smoke(tmp_path, stderr=subprocess.PIPE)
    until(process, "phase reference")
    down = subprocess.run([*MRCLAB, "down"], capture_output=True, text=True, check=False, timeout=LIMIT_S)
    assert down.returncode == 0, down.stderr
    _, said = process.communicate(timeout=LIMIT_S)
    assert process.returncode == 2
    assert said.splitlines()[-1] == "mrclab: the lab was taken down during the run; its journal until then is judged"
    assert left_behind() == set()
    status, text = reported(tmp_path)
    assert status == 3
    assert "unknown" in text.splitlines()[0]


@pytest.mark.slow
def test_a_fault_by_hand_during_a_run_is_in_its_report(lab: None, tmp_path: Path) -> None:
    # Early and stretched: two commands start and end before the run does, on an emulated machine too.
    process = start_smoke(tmp_path, "--time", "1.5")
    until(process, "phase reference")
    for words in (["fault", "blackhole", "p1l0-p1s0"], ["undo", "1"]):
        done = subprocess.run([*MRCLAB, *words], capture_output=True, text=True, check=False, timeout=LIMIT_S)
        assert done.returncode == 0, done.stderr
    out, _ = process.communicate(timeout=LIMIT_S)
    assert process.returncode in (0, 1, 3), out
    _, text = reported(tmp_path)
    assert "blackhole p1l0-p1s0 (by hand)" in text
    assert "by hand" in text.splitlines()[1]
