"""The native engine and the reference interpreter, given the same random life, agree to the bit."""

from collections.abc import Callable
from pathlib import Path

import pytest

from p4c.model import Program
from tests.helpers.engines.differential import Life
from tests.helpers.engines.leaf_traffic import usid_address
from tests.helpers.engines.life_inputs import DSCPS, FRAMES, OWN, PROGRAMS, fabric_frames, populate_fabric


@pytest.mark.parametrize("name", ["leaf", "spine"])
def test_the_fabric_programs_agree_under_load(name: str, request: pytest.FixtureRequest) -> None:
    program: Program = request.getfixturevalue(name)
    values = [usid_address(OWN), usid_address(0x2001), usid_address(OWN, 0x2002), *DSCPS, 5, 6, 7]
    lives = [Life(program, seed, fabric_frames(), values) for seed in range(12)]
    assert sum(life.live(250, populate_fabric) for life in lives) > 500


@pytest.mark.parametrize("name", sorted(FRAMES))
def test_programs_made_of_every_construct_agree(name: str, compiled: Callable[[Path], Program]) -> None:
    program = compiled(PROGRAMS / f"{name}.p4")
    lives = [Life(program, seed, FRAMES[name], [16, 17, 100, 255]) for seed in range(25)]
    assert sum(life.live(80) for life in lives) > 200
