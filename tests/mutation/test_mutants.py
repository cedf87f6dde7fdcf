"""The tool that plants mutants: what it changes, and which tests it takes."""

import ast
from pathlib import Path

import pytest

from tests.mutation.mutants import mutants_of
from tests.mutation.rooms import ROOMS

ROOT = Path(__file__).parents[2]
MODULE = '''"""A module."""
from dataclasses import dataclass

LIMIT: int = 3


@dataclass(frozen=True)
class Pair:
    left: int = 1

    def below(self, right: "int | None") -> bool:
        """Whether it is below 5."""
        if right is None:
            raise ValueError(f"{1 + 1} is not {2}")
        return self.left < right and not right == 7
'''
CHANGES = {
    "3 -> 4", "1 -> 2", "right is None -> (right is not None)", "right is None -> (not right is None)",
    "self.left < right and not right == 7 -> (self.left < right or not right == 7)",
    "self.left < right -> (self.left <= right)", "self.left < right -> (self.left >= right)",
    "not right == 7 -> (right == 7)", "right == 7 -> (right != 7)", "7 -> 8",
}  # fmt: skip


def test_each_change_is_one_that_a_test_of_behaviour_can_see(tmp_path: Path) -> None:
    (tmp_path / "pair.py").write_text(MODULE)
    made = list(mutants_of(tmp_path / "pair.py", tmp_path))
    assert {mutant.name.split(": ", 1)[1] for mutant in made} == CHANGES
    for mutant in made:
        assert ast.dump(ast.parse(mutant.applied(MODULE.encode()))) != ast.dump(ast.parse(MODULE))


@pytest.mark.parametrize("name", ROOMS)
def test_the_map_names_modules_and_tests_that_exist(name: str) -> None:
    room = ROOMS[name]
    assert all((ROOT / path).exists() for path in (*room.tests, *room.without))
    for pattern in room.modules:
        assert list(ROOT.glob(pattern)), pattern
    sample = room.sample(ROOT, room.count, seed=1)
    assert len(sample) == room.count
    assert sample == room.sample(ROOT, room.count, seed=1)
    assert sample != room.sample(ROOT, room.count, seed=2)
