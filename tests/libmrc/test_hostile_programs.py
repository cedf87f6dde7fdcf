"""Programs in C that mean harm: the agent lives, other programs do not notice, nothing is left of them."""

import gc
import os
import random
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from benchmarks.rig.uverbs_rig import Rig, rig
from tests.helpers.waiting import eventually
from tests.libmrc.compiled import REQUIREMENTS, SANITIZERS, compiled

pytestmark = REQUIREMENTS
SOURCE = Path(__file__).with_name("hostile.c")
STATES = 10
"""Of the mode `state` in the program."""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> str:
    return compiled(SOURCE, tmp_path_factory.mktemp("hostile"), "-O1")


@pytest.fixture(scope="module")
def sanitized(tmp_path_factory: pytest.TempPathFactory) -> str:
    return compiled(SOURCE, tmp_path_factory.mktemp("sanitized"), *SANITIZERS)


def start(program: str, made: Rig, mode: str, number: int) -> subprocess.Popen[str]:
    devices = [f"mrc_{name}" for name in made.names]
    return subprocess.Popen(
        [program, mode, *devices, str(number)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**os.environ, "MRC_LOG_LEVEL": "ERROR"},
    )


def run(program: str, made: Rig, mode: str, number: int) -> subprocess.CompletedProcess[str]:
    devices = [f"mrc_{name}" for name in made.names]
    command = [program, mode, *devices, str(number)]
    environment = {**os.environ, "MRC_LOG_LEVEL": "ERROR"}
    return subprocess.run(command, capture_output=True, text=True, env=environment, check=False, timeout=120)


def ready(process: subprocess.Popen[str]) -> None:
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"


def kill(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.communicate()


def programs_of(made: Rig) -> int:
    return sum(len(server._programs) for server in made.servers)


def descriptors() -> int:
    gc.collect()
    return len(os.listdir("/proc/self/fd"))


def regions_of(made: Rig) -> int:
    """Regions of memory that the NICs know."""
    return sum(len(nic.memory._regions) for nic in made.nics)


@contextmanager
def unharmed(program: str) -> Iterator[Rig]:
    """A rig in which a program writes and compares all the while, and in which nothing may be left at the end."""
    with rig() as made:
        quiet = descriptors(), regions_of(made)
        neighbour = start(program, made, "neighbour", 0)
        try:
            ready(neighbour)
            yield made
            # Two sessions are the neighbour's own, one per NIC; children of a fork may end a moment later.
            eventually(lambda: programs_of(made) == 2, "the programs' sessions are over", 30)
            said, _ = neighbour.communicate("", timeout=60)
        finally:
            kill(neighbour)
        assert neighbour.returncode == 0, said
        assert int(said) > 0
        eventually(lambda: programs_of(made) == 0, "the neighbour's sessions are over", 30)
        assert [server.qps() for server in made.servers] == [[], []]
        eventually(lambda: (descriptors(), regions_of(made)) == quiet, "descriptors and memory are given back", 30)


@pytest.mark.slow
def test_hundreds_of_programs_of_random_calls_cost_only_themselves(program: str) -> None:
    """Also on handles that are gone; some are killed on their way."""
    chance = random.Random(1000)
    statuses = []
    with unharmed(program) as made:
        for seed in range(1000, 1300):
            process = start(program, made, "random", seed)
            with suppress(subprocess.TimeoutExpired):
                process.wait(chance.uniform(0.02, 0.5) if seed % 3 == 0 else 2)
            kill(process)
            statuses.append(process.returncode)
    assert any(status < 0 for status in statuses)  # some did themselves harm


@pytest.mark.parametrize("seeds", [range(2), pytest.param(range(1000, 1300), marks=pytest.mark.slow)])
def test_random_calls_on_living_handles_do_a_program_no_harm(seeds: range, sanitized: str) -> None:
    with unharmed(sanitized) as made:
        for seed in seeds:
            done = run(sanitized, made, "careful", seed)
            assert done.returncode == 0, (seed, done.stderr)


@pytest.mark.parametrize(
    ("mode", "number"), [("pairs", 64), ("posts", 1000), pytest.param("posts", 200_000, marks=pytest.mark.slow)]
)
def test_queue_pairs_and_writes_of_a_program_are_many_at_once(mode: str, number: int, program: str) -> None:
    with unharmed(program) as made:
        process = start(program, made, mode, number)
        process.communicate(timeout=1200)
        assert process.returncode == 0


def test_a_program_is_killed_in_every_state_and_nothing_of_it_is_left(program: str) -> None:
    with unharmed(program) as made:
        for state in range(STATES):
            process = start(program, made, "state", state)
            ready(process)
            kill(process)


@pytest.mark.slow
def test_a_million_writes_of_a_killed_program_are_forgotten(program: str) -> None:
    with unharmed(program) as made:
        for after_s in (0.2, 1.0, 3.0):
            process = start(program, made, "posts", 1_000_000)
            eventually(lambda: programs_of(made) == 4, "it has begun", 30)
            time.sleep(after_s)  # no condition is waited for: the moment is to be any
            kill(process)
