"""The commands that need a running lab, on real links: up, trace, capture, fault, controller, status, down."""

import json
import subprocess
import sys
from collections.abc import Iterator

import pytest

from topo.emulation import state
from topo.emulation.lab import Lab
from topo.path import paths

pytestmark = pytest.mark.root


def mrclab(*words: str, check: bool = True) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [sys.executable, "-m", "cli", *words], capture_output=True, text=True, check=False, timeout=120
    )
    assert not check or done.returncode == 0, f"{words}: {done.stdout[-1500:]}{done.stderr[-1500:]}"
    return done


@pytest.fixture(scope="module")
def lab() -> Iterator[None]:
    if state.read_record(state.ROOT) is not None:
        pytest.skip("a lab is running on this machine")
    mrclab("up", "tiny")
    yield
    mrclab("down")


def test_trace_uses_the_tables_that_the_switches_hold_now(lab: None) -> None:
    before = json.loads(mrclab("trace", "h0", "h3", "--format", "json").stdout)
    assert before["reached"] == "h3"
    assert len(before["hops"]) == 3
    mrclab("fault", "switch-crash", before["hops"][1]["switch"])
    try:
        after = mrclab("trace", "h0", "h3", "--format", "json", check=False)
        assert after.returncode != 0
    finally:
        mrclab("undo", "all")
    assert json.loads(mrclab("trace", "h0", "h3", "--format", "json").stdout) == before


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        (("link-down", "p0l0-p0s0"), "p0l0>p0s0 is down (fault: link-down p0l0-p0s0)"),
        (("switch-crash", "p0s0"), "p0s0 has crashed"),
    ],
)
def test_trace_and_paths_agree_with_a_ping_along_the_path(lab: None, fault: tuple[str, ...], said: str) -> None:
    def arrives() -> bool:
        command = ["ip", "netns", "exec", "h0", "ping", "-c", "3", "-i", "0.2", "-W", "1", "fd00:1:1::1"]
        return subprocess.run(command, capture_output=True, check=False, timeout=60).returncode == 0

    running = Lab.attach()
    path = next(paths(running.plan, running.plan.host("h0"), running.plan.host("h3")))
    running.steer(path)
    try:
        assert arrives()
        assert mrclab("trace", "h0", "h3").returncode == 0
        mrclab("fault", *fault)
        traced = mrclab("trace", "h0", "h3", check=False)
        listed = mrclab("paths", "h0", "h3").stdout
        assert not arrives()
        assert traced.returncode == 1
        assert said in traced.stdout
        assert traced.stdout.endswith("no host receives it\n")
        assert said in listed
        assert listed.count("DEAD") == 1
        assert "DEAD" not in mrclab("paths", "h0", "h3", "--plan", "tiny").stdout
    finally:
        mrclab("undo", "all")
        running.unsteer(path.source, path.destination)
