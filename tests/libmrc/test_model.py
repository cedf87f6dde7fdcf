"""Random programs of verbs against a model of what verbs promise: faults, losses, signals and kills, under sanitizers.

The budget is that of the fuzzers' campaign; a failure names its seed.
"""

import os
import random
import subprocess
from contextlib import suppress
from pathlib import Path

import pytest

from benchmarks.rig.uverbs_rig import rig
from tests.helpers.fuzzing import seeds
from tests.helpers.waiting import eventually
from tests.libmrc.compiled import REQUIREMENTS, SANITIZERS, compiled

pytestmark = REQUIREMENTS
LIMIT_S = 300
"""Of one program, each of whose waits has a bound of a minute."""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> str:
    return compiled(Path(__file__).with_name("model.c"), tmp_path_factory.mktemp("model"), *SANITIZERS)


def run(program: str, seed: int, operations: int, *, killed: bool = False) -> None:
    """One program over a rig whose transport and losses follow from the seed; nothing of it is left afterwards."""
    chance = random.Random(seed)
    with rig(transport := chance.choice(["mrc", "roce"]), timeout_rtts=2) as made:
        made.lose_every = chance.choice([0, 0, 30, 200])
        quiet = [len(nic.memory._regions) for nic in made.nics]
        nak_lossy = transport == "roce" and made.lose_every > 0
        words = [program, str(seed), str(operations), *(f"mrc_{name}" for name in made.names), str(int(nak_lossy))]
        environment = {**os.environ, "MRC_LOG_LEVEL": "ERROR"}
        process = subprocess.Popen(words, env=environment, stderr=subprocess.PIPE, text=True)
        if killed:
            with suppress(subprocess.TimeoutExpired):
                process.wait(chance.uniform(0.05, 2))
            process.kill()
        try:
            said = process.communicate(timeout=LIMIT_S)[1]
        finally:
            process.kill()
        assert killed or process.returncode == 0, f"seed {seed}, {operations} operations: {said}"
        eventually(lambda: not any(server._programs for server in made.servers), "the sessions are over", 30)
        assert [server.qps() for server in made.servers] == [[], []]
        assert [len(nic.memory._regions) for nic in made.nics] == quiet


@pytest.mark.parametrize("seed", [1])
def test_a_random_program_finds_what_verbs_promise(seed: int, program: str) -> None:
    run(program, seed, 150)


@pytest.mark.slow
def test_random_programs_find_what_verbs_promise_until_the_time_is_over(program: str) -> None:
    for seed in seeds():
        run(program, seed, 600, killed=seed % 4 == 3)
