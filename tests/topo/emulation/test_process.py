"""Processes by token: found, ended, and never mistaken for another."""

import os
import signal
import subprocess
import sys

import pytest

from topo.emulation import process
from topo.emulation.bmv2 import Bmv2Driver
from topo.emulation.driver import LabSite
from topo.emulation.state import LabError
from topo.planfile import load_plan


def test_a_process_is_found_by_its_token_and_ended(tmp_path):
    mine = process.spawn(["sleep", "1000"], token="token-a", log=tmp_path / "log")
    other = process.spawn(["sleep", "1000"], token="token-b", log=tmp_path / "log")
    try:
        assert process.find("token-a") == [mine.pid]
        assert process.end([mine.pid]) == []
        assert mine.wait() == -signal.SIGTERM
        assert process.find("token-a") == []
        assert other.poll() is None
    finally:
        process.end([other.pid])
        other.wait()


def test_a_pid_with_another_start_time_is_another_process():
    ticks = process.start_ticks(os.getpid())
    assert ticks is not None
    assert process.alive(os.getpid(), ticks)
    assert not process.alive(os.getpid(), ticks + 1)


def test_a_zombie_is_not_alive():
    child = subprocess.Popen([sys.executable, "-c", ""])
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert process.start_ticks(child.pid) is None
    child.wait()


def test_whoever_asks_is_among_its_own_ancestry():
    assert {os.getpid(), os.getppid()} <= process.ancestry(os.getpid())


def test_bmv2_that_is_not_installed_is_said_so(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", "/nonexistent")
    plan = load_plan("tiny")
    with pytest.raises(LabError, match="simple_switch_grpc is not on PATH"):
        Bmv2Driver(LabSite(plan, tmp_path, "token", {})).start(list(plan.switches()), lambda *_: None)
