"""The commands that need a running lab, on real links: up, trace, capture, fault, controller, status, down."""

import json
import subprocess
from collections.abc import Iterator

import pytest

from tests.helpers.living_lab import mrclab, tiny
from topo.emulation.lab import Lab
from topo.path import paths

pytestmark = pytest.mark.root


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    with tiny() as running:
        yield running


def test_trace_uses_the_tables_that_the_switches_hold_now(lab: Lab) -> None:
    before = json.loads(mrclab("trace", "h0", "h3", "--format", "json"))
    assert before["reached"] == "h3"
    assert len(before["hops"]) == 3
    mrclab("fault", "switch-crash", before["hops"][1]["switch"])
    try:
        mrclab("trace", "h0", "h3", "--format", "json", status=1)
    finally:
        mrclab("undo", "all")
    assert json.loads(mrclab("trace", "h0", "h3", "--format", "json")) == before


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        (("link-down", "p0l0-p0s0"), "p0l0>p0s0 is down (fault: link-down p0l0-p0s0)"),
        (("switch-crash", "p0s0"), "p0s0 has crashed"),
    ],
)
def test_trace_and_paths_agree_with_a_ping_along_the_path(lab: Lab, fault: tuple[str, ...], said: str) -> None:
    def arrives() -> bool:
        command = ["ip", "netns", "exec", "h0", "ping", "-c", "3", "-i", "0.2", "-W", "1", "fd00:1:1::1"]
        return subprocess.run(command, capture_output=True, check=False, timeout=60).returncode == 0

    path = next(paths(lab.plan, lab.plan.host("h0"), lab.plan.host("h3")))
    lab.steer(path)
    try:
        assert arrives()
        mrclab("trace", "h0", "h3")
        mrclab("fault", *fault)
        traced = mrclab("trace", "h0", "h3", status=1)
        listed = mrclab("paths", "h0", "h3")
        assert not arrives()
        assert said in traced
        assert traced.endswith("no host receives it\n")
        assert said in listed
        assert listed.count("DEAD") == 1
        assert "DEAD" not in mrclab("paths", "h0", "h3", "--plan", "tiny")
    finally:
        mrclab("undo", "all")
        lab.unsteer(path.source, path.destination)
