"""`smoke` on real links: true when it ends, and nothing left behind when it is interrupted or killed."""

import json
import os
import select
import signal
import subprocess
import sys

import pytest

from tests.helpers.descendants import descendants
from tests.helpers.smoke_on_links import LIMIT_S, MRCLAB, lab, left_behind, reported, start_smoke, until
from tests.helpers.waiting import ran
from topo.emulation import state

__all__ = ["lab"]
pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(state.read_record(state.ROOT) is not None, reason="a lab is running on this machine"),
]


@pytest.mark.parametrize(
    ("moment", "number"),
    [
        pytest.param("phase reference", signal.SIGINT, marks=pytest.mark.slow),
        pytest.param("link-down", signal.SIGINT, marks=pytest.mark.slow),
        pytest.param("link-down", signal.SIGTERM, marks=pytest.mark.slow),
        pytest.param("phase reference", signal.SIGHUP, marks=pytest.mark.slow),
        pytest.param("phase reference", signal.SIGQUIT, marks=pytest.mark.slow),
    ],
)
def test_ctrl_c_takes_the_lab_down_and_the_run_is_unknown(lab: None, tmp_path, moment, number: signal.Signals) -> None:
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
def test_after_kill_9_its_processes_end_down_leaves_nothing_and_the_run_still_opens(lab: None, tmp_path) -> None:
    process = start_smoke(tmp_path)
    until(process, "link-down")
    begun = [os.pidfd_open(pid) for pid in descendants(process.pid)]
    assert len(begun) > 1, "the switches and an agent"
    process.kill()
    process.communicate(timeout=LIMIT_S)
    for pidfd in begun:
        assert select.select([pidfd], [], [], LIMIT_S)[0], "its journals would grow"
        os.close(pidfd)
    down = subprocess.run([*MRCLAB, "down"], capture_output=True, text=True, check=False, timeout=LIMIT_S)
    assert down.returncode == 0, down.stderr
    assert left_behind() == set()
    ours = subprocess.run(["pgrep", "-f", str(tmp_path)], capture_output=True, text=True, check=False).stdout
    assert ours == ""
    status, text = reported(tmp_path)
    assert status == 3
    assert "unknown" in text.splitlines()[0]


def test_down_during_a_run_ends_it_with_a_word_and_an_unknown_verdict(lab: None, tmp_path) -> None:
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


def test_a_fault_by_hand_during_a_run_is_in_its_report(lab: None, tmp_path) -> None:
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


SMOKE = [sys.executable, "-m", "cli", "run", "smoke", "--plain", "--rate", "4", "--seed", "1"]
SMOKE_S = 180


@pytest.mark.smoke
def test_smoke_ends_true_on_embedded_switches(tmp_path) -> None:
    done = ran([*SMOKE, "--runs", str(tmp_path)], timeout=SMOKE_S)
    assert done.returncode in (0, 3), done.stdout + done.stderr
    run = (tmp_path / "latest").resolve()
    findings = {f["check"]: f for f in json.loads((run / "verdict.json").read_text())["findings"]}
    machine = findings["machine"]
    if done.returncode == 3 and machine["figures"]["stalls_taken_s"]:
        pytest.skip(f"this machine has no time for it: {machine['reason']}")
    assert done.returncode == 0, (run / "summary.txt").read_text()
    options = json.loads((run / "options.json").read_text())
    assert (options["world"], options["switch_kind"]) == ("emulated", "embedded")
    assert {file.stem for file in (run / "journal").glob("*.jsonl")} >= {"runner", "controller", "h0", "h3"}
    assert state.read_record(state.ROOT) is None
