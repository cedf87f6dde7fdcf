"""Programs in C whose calls fail: which error, which request was bad, and that nothing stays behind."""

import re
import resource
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from benchmarks.rig.uverbs_rig import rig
from common import uverbs
from endpoint.uverbs.refusal import ERRNOS
from running import sdk
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
def test_the_first_request_that_a_dead_agent_has_not_got_is_the_bad_one(messages, program, monkeypatch) -> None:
    if messages == 2:
        monkeypatch.setenv("WHOLE_MESSAGE", "1")
    run(program, "gone")


def test_built_requests_are_posted_together_or_not_at_all(program: str) -> None:
    run(program, "whole")


def test_a_region_or_channel_whose_descriptor_is_lost_is_given_back(program: str) -> None:
    run(program, "descriptors")


def test_a_limit_of_the_agent_is_enomem(program: str) -> None:
    run(program, "limits", regions=8, cqs=8, channels=4, hints=4)


@contextmanager
def largest_file(length: int) -> Iterator[None]:
    """The kernel lets this process, where the agent is, make no file that is longer."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (length, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_an_error_of_the_agents_kernel_keeps_its_errno(program: str) -> None:
    with largest_file((64 << 20) - 1):
        run(program, "kernel")


def test_the_library_knows_each_errno_that_the_agent_names() -> None:
    known = re.findall(r'{"\((E[A-Z]+)\)", (E[A-Z]+)}', (sdk.SOURCE / "uverbs.c").read_text())
    assert sorted(known) == sorted((name, name) for name in ERRNOS)
