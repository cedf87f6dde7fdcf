"""The simulated world over the native fabric and over one instant after the other: the same journals to the byte.

Random plans, rates, workloads, transports and faults. The slow side is `SteppedFabric` over native engines,
and in some runs over the reference interpreter.
"""

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from running.worlds.virtual_time import MakeFabric
from switch.engine import Engine
from switch.native.engine import NativeEngine
from switch.native.fabric import NativeFabric
from switch.reference.engine import ReferenceEngine
from tests.helpers.engines.stepped_fabric import SteppedFabric
from tests.helpers.fuzzing import seeds
from tests.helpers.random_run import RandomRun


def stepped(make: Callable[[int], Engine]) -> MakeFabric:
    def fabric(seeds: Sequence[int], hosts: int, host_ports: int) -> SteppedFabric:
        return SteppedFabric([make(seed) for seed in seeds], hosts, host_ports)

    return fabric


OVER_NATIVE = stepped(lambda seed: NativeEngine(seed=seed))
OVER_REFERENCE = stepped(lambda seed: ReferenceEngine(seed=seed))


def compare(seed: int, directory: Path, slow: MakeFabric) -> int:
    """Returns the bytes of journal that are the same."""
    run = RandomRun(seed)
    expected = run.journals(directory / "slow", slow)
    got = run.journals(directory / "fast", NativeFabric)
    assert got.keys() == expected.keys()
    for name, lines in expected.items():
        for place, line in enumerate(lines):
            assert got[name][place : place + 1] == [line], f"seed {seed}: {name}, line {place + 1}"
        assert len(got[name]) == len(lines), f"seed {seed}: {name} goes on"
    return sum(map(len, (line for lines in expected.values() for line in lines)))


@pytest.mark.parametrize("seed", [*range(2), *(pytest.param(seed, marks=pytest.mark.slow) for seed in (3, 5))])
def test_a_random_run_is_the_same_as_one_instant_after_the_other(seed: int, tmp_path: Path) -> None:
    assert compare(seed, tmp_path, OVER_NATIVE) > 0


@pytest.mark.parametrize("seed", [1, 4])
def test_a_run_whose_packets_are_recorded_is_the_same_run(seed: int, tmp_path: Path) -> None:
    run = RandomRun(seed)
    recorded = run.journals(tmp_path / "recorded", NativeFabric)
    plain = run.journals(tmp_path / "plain", NativeFabric, record=False)
    assert len(recorded.pop("packets")) > 100
    assert plain.pop("packets") == []
    assert without_samples(recorded) == without_samples(plain) == plain


def without_samples(journals: dict[str, list[str]]) -> dict[str, list[str]]:
    """What both runs journal: one whose packets are recorded also tells where receivers put some of them."""
    return {
        name: [line for line in lines if json.loads(line)["kind"] not in ("sampled", "memory")]
        for name, lines in journals.items()
    }


@pytest.mark.slow
def test_the_commits_random_runs_are_the_same_as_one_instant_after_the_other(tmp_path: Path) -> None:
    assert sum(compare(seed, tmp_path / str(seed), OVER_NATIVE) for seed in seeds()) > 0


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1000, 1006))
def test_a_random_run_is_the_same_on_the_interpreter(seed: int, tmp_path: Path) -> None:
    assert compare(seed, tmp_path, OVER_REFERENCE) > 0
