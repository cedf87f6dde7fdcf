"""Processes by token, and the age of a lab while the clock is set: found, ended, and never mistaken for another."""

import array
import fcntl
import os
import signal
import socket
import struct
import subprocess
import sys
import time

import pytest

from benchmarks.rig.namespaces import namespaces, remove_leftovers
from tests.helpers.waiting import eventually
from topo.emulation import process, state
from topo.emulation.bmv2 import Bmv2Driver
from topo.emulation.driver import LabSite
from topo.emulation.namespace import entered, exists, offloads_off
from topo.emulation.process import start_ticks
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


@pytest.mark.root
def test_a_device_goes_before_programs_and_a_program_does_not(tmp_path):
    """Beside a busy loop of an ordinary process, on one processor, also where each session is a group to itself."""
    first = min(os.sched_getaffinity(0))
    argv = ["taskset", "-c", str(first), sys.executable, "-c", "while True: pass"]
    log = tmp_path / "log"
    device, *others = (process.spawn(argv, token="busy", log=log, device=kind) for kind in (True, False, False))
    try:
        while sum(map(processor_ticks, (device, *others))) < 150:
            assert device.poll() is None
            time.sleep(0.05)
        assert processor_ticks(device) > 2 * sum(map(processor_ticks, others))
    finally:
        process.end([device.pid, *(other.pid for other in others)])
        for one in (device, *others):
            one.wait()


def processor_ticks(started: subprocess.Popen[bytes]) -> int:
    """Processor time of a process, in clock ticks."""
    with open(f"/proc/{started.pid}/stat") as stat:
        return sum(map(int, stat.read().rpartition(")")[2].split()[11:13]))


def test_a_pid_with_another_start_time_is_another_process_and_a_zombie_is_not_alive():
    ticks = process.start_ticks(os.getpid())
    assert ticks is not None
    assert process.alive(os.getpid(), ticks)
    assert not process.alive(os.getpid(), ticks + 1)
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


STEPS_S = (30, -30)


@pytest.mark.parametrize("step_s", STEPS_S)
def test_the_age_of_a_lab_does_not_follow_the_wall_clock(monkeypatch: pytest.MonkeyPatch, step_s: int) -> None:
    true = time.time_ns
    record = state.new_record(load_plan("tiny"), "token")
    monkeypatch.setattr(time, "time_ns", lambda: true() + step_s * 1_000_000_000)
    assert 0 <= record.age_s < 20
    assert "brought up 0." in record.describe()


LIMIT_S = 60
MAKER = """
import subprocess, sys
from benchmarks.rig.namespaces import namespaces
from topo.emulation.namespace import entered
with namespaces(2) as names:
    with entered(names[0]):
        child = subprocess.Popen(["sleep", "1000"], stdout=subprocess.DEVNULL)
    print(*names, child.pid, flush=True)
    sys.stdin.read()
"""


@pytest.mark.root
def test_namespaces_of_a_process_that_was_killed_go_with_what_runs_in_them() -> None:
    maker = subprocess.Popen([sys.executable, "-c", MAKER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert maker.stdout
    *names, inside = maker.stdout.readline().split()
    remove_leftovers()
    assert all(exists(name) for name in names)  # their maker lives
    maker.kill()
    maker.communicate()
    remove_leftovers()
    assert not any(exists(name) for name in names)
    eventually(lambda: start_ticks(int(inside)) is None, "the process inside is gone", LIMIT_S)


@pytest.mark.root
def test_namespaces_go_at_the_end_and_one_that_is_gone_already_is_no_error() -> None:
    with namespaces(2) as names:
        assert all(name.startswith(f"mrcbench{os.getpid()}-") for name in names)
        subprocess.run(["ip", "netns", "del", names[1]], check=True)
    assert not any(exists(name) for name in names)


def offloads(interface: str) -> dict[str, int]:
    """By the commands of linux/ethtool.h that read them."""
    known = {}
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        for name, command in {"tx checksum": 0x16, "TSO": 0x1E, "GSO": 0x23, "GRO": 0x2B}.items():
            value = array.array("I", [command, 0])
            fcntl.ioctl(control, 0x8946, struct.pack("16sP16x", interface.encode(), value.buffer_info()[0]))
            known[name] = value[1]
    return known


@pytest.mark.root
def test_an_interface_whose_offloads_are_off_has_none_on() -> None:
    with namespaces(1) as (name,), entered(name):
        subprocess.run(["ip", "link", "add", "one", "type", "veth", "peer", "two"], check=True)
        assert offloads("one")["TSO"] == 1
        offloads_off(["one", "two"])
        assert offloads("one") == offloads("two") == {"tx checksum": 0, "TSO": 0, "GSO": 0, "GRO": 0}
