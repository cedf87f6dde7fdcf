"""A wall clock that is set under a program: no wait of the library ends early or lasts longer."""

import subprocess
from pathlib import Path

from benchmarks.rig.uverbs_rig import rig
from tests.libmrc.compiled import compiled
from tests.libmrc.requirements import REQUIREMENTS

pytestmark = REQUIREMENTS


def test_a_wall_clock_that_is_set_forward_does_not_end_a_programs_nic(tmp_path: Path) -> None:
    program = compiled(Path(__file__).with_name("clock.c"), tmp_path)
    with rig() as made:
        command = [program, *(f"mrc_{name}" for name in made.names)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
