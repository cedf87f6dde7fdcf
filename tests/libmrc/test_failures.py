"""Programs in C whose calls fail: which error, which request was bad, and that nothing stays behind."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from benchmarks.rig.uverbs_rig import rig
from common import uverbs
from tests.libmrc.compiled import SANITIZERS, compiled
from tests.libmrc.requirements import REQUIREMENTS

pytestmark = REQUIREMENTS


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> str:
    return compiled(Path(__file__).with_name("failures.c"), tmp_path_factory.mktemp("failures"), *SANITIZERS)


def run(program: str, case: str, **limits: int) -> None:
    with rig(limits=uverbs.ProgramLimits(**limits)) as made:
        command = [program, case, *(f"mrc_{name}" for name in made.names)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=240)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("messages", [1, 2])
def test_the_first_request_that_a_dead_agent_has_not_got_is_the_bad_one(
    messages: int, program: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if messages == 2:
        monkeypatch.setenv("WHOLE_MESSAGE", "1")
    run(program, "gone")


def test_built_requests_are_posted_together_or_not_at_all(program: str) -> None:
    run(program, "whole")


def test_a_region_or_channel_whose_descriptor_is_lost_is_given_back(program: str) -> None:
    run(program, "descriptors")


def test_a_limit_of_the_agent_is_enomem(program: str) -> None:
    run(program, "limits", regions=8, cqs=8, channels=4, hints=4)
