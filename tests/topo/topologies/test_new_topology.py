"""A topology is added by one class and its row: here a ring of leaves, with all properties, taken by commands."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import ClassVar, Self

import pytest
from hypothesis import given, settings, strategies as st

from cli import main as cli
from common.terminal.counted import counted
from running.options import Choices
from running.runner import prepare
from running.spec import RunSpec
from running.transport_choice import transport
from scenarios import library
from tests.topo.topologies.properties import PROPERTIES
from tests.topo.topologies.shapes import on
from topo.node import Switch, leaf
from topo.planfile import load_plan
from topo.topologies import TOPOLOGIES
from topo.topologies.topology import EV_BASE, Cable, Topology, Way


@dataclass(frozen=True)
class Ring(Topology):
    """Ports of a leaf: hosts first, then the two neighbours in the order of their numbers' cables."""

    NAME: ClassVar[str] = "ring"
    RANGES: ClassVar[Mapping[str, tuple[int, int]]] = {"planes": (1, 8), "leaves": (3, 9), "hosts_per_leaf": (1, 256)}

    planes: int
    leaves: int
    hosts_per_leaf: int
    spines: int = 0

    def switches(self) -> Iterator[Switch]:
        return (leaf(plane, index) for plane in range(self.planes) for index in range(self.leaves))

    def cables(self) -> Iterator[Cable]:
        for plane in range(self.planes):
            for index in range(self.leaves):
                own = leaf(plane, index)
                yield from (Cable(self.host_at(index, place), own) for place in range(self.hosts_per_leaf))
            for index in range(self.leaves):
                first, second = sorted((index, (index + 1) % self.leaves))
                yield Cable(leaf(plane, first), leaf(plane, second))

    def ways(self, plane: int, source: int, destination: int) -> Iterator[Way]:
        if source == destination:
            yield self.local_way(plane, source)
            return
        for number, step in enumerate(self._steps(source, destination)):
            hops = (destination - source) * step % self.leaves
            found = tuple(leaf(plane, (source + step * hop) % self.leaves) for hop in range(hops + 1))
            yield Way(found, range(EV_BASE + number, EV_BASE + number + 1))

    def next_ports(self, switch: Switch, destination: int) -> Sequence[int]:
        if switch.index == destination:
            return ()
        steps = self._steps(switch.index, destination)
        following = (leaf(switch.plane, (switch.index + step) % self.leaves) for step in steps)
        return sorted(self.port_towards(switch, one) for one in following)

    def describe(self) -> str:
        return f"{counted(self.planes, 'plane')} × a ring of {self.leaves} leaves"

    def single_plane(self) -> Self:
        return replace(self, planes=1)

    @cached_property
    def paths_across(self) -> int:
        return self.planes * (1 if self.leaves % 2 else 2)

    @cached_property
    def longest_path_switches(self) -> int:
        return self.leaves // 2 + 1

    def _steps(self, source: int, destination: int) -> tuple[int, ...]:
        """The directions of the shortest ways: 1, -1 or both."""
        up, down = (destination - source) % self.leaves, (source - destination) % self.leaves
        return (1,) * (up <= down) + (-1,) * (down <= up)


READ_BACK = "a_plan_of_any_shape_is_written_and_read_back"
"""Needs the row."""
FILE = """name = "ring"
[fabric]
topology = "ring"
planes = 2
leaves = 5
hosts_per_leaf = 2
"""


@pytest.fixture
def file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A plan of the new topology, which has its row."""
    assert isinstance(TOPOLOGIES, dict)
    monkeypatch.setitem(TOPOLOGIES, Ring.NAME, Ring)
    path = tmp_path / "ring.toml"
    path.write_text(FILE)
    return path


@pytest.mark.parametrize("name", sorted(PROPERTIES.keys() - {READ_BACK}))
@settings(max_examples=6)
@given(data=st.data())
def test_a_ring_has_every_property_of_a_topology(name: str, data: st.DataObject) -> None:
    PROPERTIES[name](on(Ring(*(data.draw(st.integers(*limits)) for limits in ((1, 2), (3, 9), (1, 2))))))


def test_commands_take_its_file(file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plan = load_plan(str(file))
    PROPERTIES[READ_BACK](plan)
    assert cli.main(["topo", "draw", str(file)]) == 0
    assert "to   l1 l4   l0 l2   l1 l3   l2 l4   l0 l3" in capsys.readouterr().out
    assert cli.main(["trace", "h0", "h5", "--plan", str(file), "--format", "json"]) == 0
    assert [hop["switch"] for hop in json.loads(capsys.readouterr().out)["hops"]] == ["p0l0", "p0l1", "p0l2"]
    for words in (["graph", str(file), "-o", str(tmp_path / "ring.svg")], ["export", "json", str(file)]):
        assert cli.main(words) == 0
    scenario = library.find("nic-port")
    assert prepare(RunSpec(scenario, Choices(transport("mrc"), plan, seed=7, world="simulated"))).needed.memory_bytes
