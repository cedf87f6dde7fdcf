"""Both engines get the same program, entries, settings, packets and times, at random: they must do the same."""

from collections.abc import Callable

import pytest

from p4c.model import Program
from tests.helpers.engines.scenario import PROGRAMS, Scenario

SEEDS = range(6)
STEPS = 120


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_random_packets_entries_and_times_give_the_same(
    name: str, seed: int, compiled: Callable[[str], Program]
) -> None:
    Scenario(compiled(name), seed).run(STEPS)
