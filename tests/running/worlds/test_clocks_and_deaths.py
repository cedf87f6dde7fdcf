"""A wall clock that is set under a run changes no result; a process that is killed in a run is named by it.

The table in docs/security.md names the test of each kind of process.
"""

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from running.worlds.emulated import EmulatedWorld
from tests.helpers.descendants import descendants
from tests.helpers.mpi_run import words
from tests.helpers.ranks_in_memory import contents
from tests.helpers.set_clock import SetClock, needs_a_compiler
from tests.helpers.smoke_on_links import LIMIT_S, MRCLAB, lab, left_behind, reported, start_smoke, until
from topo.emulation import state
from topo.emulation.lab import Lab
from topo.emulation.labname import LabName
from topo.emulation.state import LabError
from topo.planfile import load_plan

__all__ = ["lab"]
ROOT = Path(__file__).parents[3]
on_real_links = [
    pytest.mark.root,
    pytest.mark.slow,
    pytest.mark.skipif(state.read_record(state.ROOT) is not None, reason="a lab is running on this machine"),
]


def rooted(test: Callable[..., None]) -> Callable[..., None]:
    for mark in on_real_links:
        test = mark(test)
    return test


def seconds_of(environment: dict[str, str]) -> float:
    """The wall clock as a process with this environment reads it, against the true one."""
    command = [sys.executable, "-c", "import time; print(time.time())"]
    told = subprocess.run(command, env={**os.environ, **environment}, capture_output=True, text=True, check=True)
    return float(told.stdout) - time.time()


@needs_a_compiler
@pytest.mark.slow
@pytest.mark.parametrize("step_s", [30, -30])
def test_a_step_of_the_clock_changes_no_run_in_virtual_time(step_s: int, tmp_path: Path) -> None:
    clock = SetClock(tmp_path)
    folders = [tmp_path / "usual", tmp_path / "stepped"]
    for folder in folders:
        environment = {**os.environ, **clock.environment, "MRCLAB_COMPILED": "off"}
        run = subprocess.Popen(
            words(folder), cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        until(run, "phase reference")
        if folder.name == "stepped":
            clock.step(step_s)
            assert abs(seconds_of(clock.environment) - step_s) < 5
        output, _ = run.communicate(timeout=120)
        assert run.returncode == 0, output
    one, other = (folder / "latest" for folder in folders)
    assert contents(one) == contents(other)
    assert (one / "verdict.json").read_bytes() == (other / "verdict.json").read_bytes()


@needs_a_compiler
@rooted
@pytest.mark.parametrize("step_s", [30, -30])
@pytest.mark.usefixtures("lab")
def test_a_step_of_the_clock_is_no_stall_and_ends_no_run_on_real_links(step_s: int, tmp_path, monkeypatch) -> None:
    clock = SetClock(tmp_path)
    for name, value in clock.environment.items():
        monkeypatch.setenv(name, value)
    run = start_smoke(tmp_path / "runs", stderr=subprocess.STDOUT)
    until(run, "phase reference")
    clock.step(step_s)
    output, _ = run.communicate(timeout=LIMIT_S)
    folder = tmp_path / "runs" / "latest"
    verdict = json.loads((folder / "verdict.json").read_text())["verdict"]
    assert (run.returncode, verdict) == (0, "true"), output
    lines = [line for file in folder.glob("journal/h*.jsonl") for line in file.read_text().splitlines()]
    late_ns = [json.loads(line).get("late_ns", 0) for line in lines if '"late"' in line or '"hiccup"' in line]
    assert max(late_ns, default=0) < 20_000_000_000
    assert left_behind() == set()


def test_a_waiting_run_ends_when_the_process_of_its_switches_has_ended(tmp_path: Path) -> None:
    switches = subprocess.Popen(["sleep", "60"])
    record = state.new_record(load_plan("tiny"), "token", LabName("dead"), "smoke", sealed=False)
    record.details["embedded"] = {"pid": switches.pid, "control": "unix:/none", "grpc": "unix:/none"}
    world = EmulatedWorld.__new__(EmulatedWorld)
    world._pause, world.lab = threading.Event(), Lab(record)
    world.is_up = lambda settled=False: True  # type: ignore[method-assign]
    world.wait_until(world.now_ns() + 1_000_000)
    switches.kill()
    switches.wait()
    began_s = time.monotonic()
    with pytest.raises(LabError, match=f"process {switches.pid} holds the embedded switches, and it has ended"):
        world.wait_until(world.now_ns() + 60_000_000_000)
    assert time.monotonic() - began_s < 10


def processes(run: subprocess.Popen[str], *named: str) -> list[int]:
    """The processes of a run whose command line has each of these names in one of its words."""
    words = {pid: Path(f"/proc/{pid}/cmdline").read_bytes().decode().split("\0") for pid in descendants(run.pid)}
    return [pid for pid in words if all(any(name in word for word in words[pid]) for name in named)]


@rooted
@pytest.mark.parametrize(
    ("named", "said"), [(("endpoint", "agent", "h1"), ".sock is gone"), (("switch", "serve"), "switch")]
)
@pytest.mark.usefixtures("lab")
def test_an_agent_or_switch_process_that_is_killed_in_a_phase_ends_the_run_and_is_named(named, said, tmp_path) -> None:
    run = start_smoke(tmp_path, stderr=subprocess.STDOUT)
    until(run, "phase reference")
    (pid, *_) = processes(run, *named)
    os.kill(pid, signal.SIGKILL)
    output, _ = run.communicate(timeout=LIMIT_S)
    assert run.returncode == 2, output
    assert said in output
    assert left_behind() == set()
    status, text = reported(tmp_path)
    assert status in (1, 3), "a run that was broken off is never true"
    assert re.search(rf"complete +(runner failed|the run was interrupted in phase 'reference'): .*{said}", text), text


@rooted
@pytest.mark.usefixtures("lab")
def test_a_shell_that_is_killed_leaves_the_lab_as_it_was(tmp_path: Path) -> None:
    up = subprocess.run([*MRCLAB, "up", "tiny"], capture_output=True, text=True, check=False, timeout=LIMIT_S)
    assert up.returncode == 0, up.stderr
    shell = subprocess.Popen([*MRCLAB, "shell"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert shell.stdin is not None
    shell.stdin.write("status\n")
    shell.stdin.flush()
    assert shell.stdout is not None
    assert shell.stdout.read(1)
    shell.kill()
    shell.communicate(timeout=LIMIT_S)
    told = subprocess.run([*MRCLAB, "status"], capture_output=True, text=True, check=False, timeout=LIMIT_S)
    assert told.returncode == 0, told.stdout + told.stderr
    assert "running" in told.stdout
    down = subprocess.run([*MRCLAB, "down"], capture_output=True, text=True, check=False, timeout=LIMIT_S)
    assert down.returncode == 0, down.stderr
    assert left_behind() == set()
