"""The tool that plants mutants: what it changes, and what counts as killed."""

import ast
import subprocess
from pathlib import Path

import pytest

from tests.mutation.bench import Bench, Fate
from tests.mutation.mutants import Mutant, mutants_of
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
    "3 -> 4",
    "1 -> 2",
    "right is None -> (right is not None)",
    "right is None -> (not right is None)",
    "self.left < right and not right == 7 -> (self.left < right or not right == 7)",
    "self.left < right -> (self.left <= right)",
    "self.left < right -> (self.left >= right)",
    "not right == 7 -> (right == 7)",
    "right == 7 -> (right != 7)",
    "7 -> 8",
}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A project of one module and its tests, in a git repository."""
    root = tmp_path / "tree"
    (root / "tests").mkdir(parents=True)
    (root / "pair.py").write_text(MODULE)
    (root / "tests/test_pair.py").write_text(
        "from pair import Pair\n\ndef test_below():\n    assert Pair().below(2)\n    assert not Pair().below(1)\n"
    )
    for words in (["init", "-q"], ["add", "-A"]):
        subprocess.run(["git", *words], cwd=root, check=True)
    return root


def test_each_change_is_one_that_a_test_of_behaviour_can_see(tree: Path) -> None:
    made = list(mutants_of(tree / "pair.py", tree))
    assert {mutant.name.split(": ", 1)[1] for mutant in made} == CHANGES
    source = (tree / "pair.py").read_bytes()
    for mutant in made:
        assert ast.dump(ast.parse(mutant.applied(source))) != ast.dump(ast.parse(source))


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


def planted(tree: Path, before: str, after: str) -> Mutant:
    begin = MODULE.index(before)
    return Mutant("pair.py", 1, begin, begin + len(before), before, after)


@pytest.mark.parametrize(
    ("before", "after", "fate"),
    [
        ("self.left < right", "self.left >= right", Fate.KILLED),
        ("7", "8", Fate.SURVIVED),
        ("LIMIT: int = 3", "LIMIT: int = 3 // 0", Fate.BROKEN),  # nothing was tested
        pytest.param(
            "return self.left", "while True: pass\n        return self.left", Fate.TIMED_OUT, marks=pytest.mark.slow
        ),
    ],
)
def test_a_mutant_is_killed_by_a_test_that_fails_and_by_nothing_else(
    tree: Path, tmp_path: Path, before: str, after: str, fate: Fate
) -> None:
    place = tmp_path / "place"
    place.mkdir()
    bench = Bench(tree, place, [ROOT])
    tests = ["tests/test_pair.py"]
    assert bench.run(tests, [], 300) is Fate.SURVIVED, bench.log.read_text()
    limit_s = 15 if fate is Fate.TIMED_OUT else 300
    assert bench.judge(planted(tree, before, after), tests, [], limit_s) is fate, bench.log.read_text()
    assert (place / "pair.py").read_text() == MODULE
