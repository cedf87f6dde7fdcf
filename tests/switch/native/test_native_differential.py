"""Both engines, given the same random calls, agree to the bit; here, so that the sanitizers see them."""

from collections.abc import Callable
from pathlib import Path

import pytest

from p4c.model import Program
from tests.helpers.engines.life_inputs import PROGRAMS
from tests.helpers.engines.scenario import Scenario


@pytest.mark.parametrize("path", sorted(PROGRAMS.glob("*.p4")), ids=lambda path: path.stem)
def test_programs_made_of_every_construct_agree(path: Path, compiled: Callable[[Path], Program]) -> None:
    for seed in range(10):
        Scenario(compiled(path), seed).run(60)
