"""`./lab launch` on real links: each rank in its host, a script that trains, and a lab that is as before afterwards."""

import signal
import subprocess
from collections.abc import Iterator

import pytest

from tests.helpers.interrupts import heeding_interrupts
from tests.helpers.living_lab import MRCLAB, mrclab, tiny
from tests.helpers.pytorch.world import EXAMPLES, require_torch
from tests.helpers.waiting import eventually
from topo.emulation.lab import Lab

pytestmark = pytest.mark.root


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    with tiny() as running:
        yield running


def test_each_rank_is_in_its_host_and_may_import_mrclab_and_nothing_else_of_the_lab(lab: Lab) -> None:
    code = (
        "import os, mrclab, importlib.util as find; print(os.environ['RANK'], os.environ['WORLD_SIZE'],"
        " os.environ['MASTER_ADDR'], mrclab.get_device_list(), find.find_spec('topo'))"
    )
    told = mrclab("launch", "--ranks", "h2,h0", "--", "/usr/bin/python3", "-P", "-c", code)
    assert sorted(told.splitlines()) == [
        f"h0: 1 2 {_address(lab, 'h2')} ['h0'] None",
        f"h2: 0 2 {_address(lab, 'h2')} ['h2'] None",
    ]


def _address(lab: Lab, host: str) -> str:
    told = mrclab("exec", host, "--", "echo", host).strip()
    assert told != host  # names of hosts stand for addresses
    return told


@pytest.mark.slow
def test_a_script_trains_on_real_links(lab: Lab) -> None:
    python = require_torch()
    told = mrclab("launch", "--ranks", "h0..h3", "--", python, str(EXAMPLES / "ddp.py"), "--steps", "4")
    losses = [float(line.split()[-1]) for line in told.splitlines() if line.startswith("h0: step")]
    assert len(losses) == 4
    assert losses[-1] < losses[0]


def test_what_cannot_be_started_is_told_and_ctrl_c_ends_all(lab: Lab) -> None:
    assert "no command 'nosuchthing'" in mrclab("launch", "--ranks", "h0", "--", "nosuchthing", status=2)
    assert "must be followed by a command" in mrclab("launch", "--ranks", "h0", status=2)
    assert "h99" in mrclab("launch", "--ranks", "h99", "--", "true", status=2)
    process = subprocess.Popen(
        [*MRCLAB, "launch", "--ranks", "h0..h1", "--", "sh", "-c", "echo here; exec sleep 1000"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=heeding_interrupts,
    )
    assert process.stdout is not None
    assert {process.stdout.readline(), process.stdout.readline()} == {"h0: here\n", "h1: here\n"}
    process.send_signal(signal.SIGINT)
    assert process.wait(60) == 130
    sleeping = ["pgrep", "-f", "sleep 1000"]
    eventually(lambda: subprocess.run(sleeping, check=False, capture_output=True).returncode == 1, "all have ended")
