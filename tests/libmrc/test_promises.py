"""The promises of verbs when something fails, by a program in C over two NICs in memory, under either transport."""

import subprocess
from pathlib import Path

import pytest

from benchmarks.rig.uverbs_rig import rig
from tests.libmrc.compiled import SANITIZERS, compiled
from tests.libmrc.requirements import REQUIREMENTS

pytestmark = REQUIREMENTS


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> str:
    return compiled(Path(__file__).with_name("promises.c"), tmp_path_factory.mktemp("promises"), *SANITIZERS)


@pytest.mark.parametrize("transport", ["mrc", "roce"])
@pytest.mark.parametrize(
    "case", ["inlined", "wrong", "retries", "signals", "events", "drained", "withdrawn", "loopback", "limits"]
)
def test_a_program_finds_what_verbs_promise(case: str, transport: str, program: str) -> None:
    with rig(transport, timeout_rtts=2) as made:
        command = [program, case, *(f"mrc_{name}" for name in made.names)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=240)
    assert done.returncode == 0, done.stderr
