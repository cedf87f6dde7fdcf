"""Errors planted into topologies: a property of `properties.py` finds each, and the sound one has them all."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import pytest

from tests.topo.topologies.properties import PROPERTIES
from tests.topo.topologies.shapes import SMALL, on
from topo.node import Switch, core, leaf, spine
from topo.topologies import Listed, Pods, Rails, Topology, listed
from topo.topologies.topology import Cable, Way

RAILS = Rails(planes=2, leaves=4, spines=2, hosts_per_leaf=2, rails=2)
FOUND = (AssertionError, KeyError, IndexError, ValueError)
"""An error may show as a comparison that fails, or as a cable or port that is not there."""

LISTS = "every_usid_list_walks_the_graph_to_its_host"
EVS = "every_ev_names_one_path_and_each_pair_has_as_many_in_a_plane"
GRAPH = "ports_cables_and_names_are_one_graph"
FILE = "a_plan_of_any_shape_is_written_and_read_back"
PLAIN = "plain_routes_lead_every_packet_to_its_host_and_none_is_unused"
USIDS = "every_usid_list_is_followed_by_the_tables_alone"
WAYS = "plain_routes_go_where_ways_go"


class OtherCore(Pods):
    """Ways name cores that are wired to another spine."""

    def ways(self, plane: int, source: int, destination: int) -> Iterator[Way]:
        for way in super().ways(plane, source, destination):
            other = [core(plane, self.cores - 1 - one.index) if one.role == "core" else one for one in way.switches]
            yield replace(way, switches=tuple(other))


class OneEv(Pods):
    """All ways between two pods have the EVs of the first."""

    def ways(self, plane: int, source: int, destination: int) -> Iterator[Way]:
        for way in super().ways(plane, source, destination):
            yield replace(way, lows=range(0xC000, 0xC001)) if len(way.switches) == 5 else way


class OtherPod(Pods):
    """Cores send plain packets to the pod beside the right one."""

    def next_ports(self, switch: Switch, destination: int) -> Sequence[int]:
        ports = super().next_ports(switch, destination)
        return [port % self.pods + 1 for port in ports] if switch.role == "core" else ports


class OneWayUp(Pods):
    """Leaves use the first of their spines only, for plain packets."""

    def next_ports(self, switch: Switch, destination: int) -> Sequence[int]:
        return super().next_ports(switch, destination)[:1]


class UnusedCore(Pods):
    """The last core of a plane is on no way."""

    def ways(self, plane: int, source: int, destination: int) -> Iterator[Way]:
        unused = core(plane, self.cores - 1)
        return (way for way in super().ways(plane, source, destination) if unused not in way.switches)


@dataclass(frozen=True)
class OneTooMany(Rails):
    """A plane has one leaf too many, counted nowhere."""

    def switches(self) -> Iterator[Switch]:
        yield from super().switches()
        yield leaf(self.planes - 1, self.leaves)


class LostSpeed(Listed):
    """Its file does not say how slow a cable is."""

    def document(self) -> dict[str, object]:
        told = super().document()
        return {**told, "cables": [row[:2] for row in told["cables"]]}


def as_list(kind: type[Listed], name: str) -> Listed:
    """A small plan's list of cables, as another class."""
    found = SMALL[name].topology
    assert isinstance(found, Listed)
    numbers = (found.planes, found.leaves, found.spines, found.hosts_per_leaf, found.cores)
    return kind(*numbers, found.listing, found.order)


def pods(kind: type[Pods]) -> Pods:
    return kind(2, 2, 4, 4, 1, 4)


def rails(kind: type[Rails]) -> Rails:
    return kind(2, 4, 2, 2, 2)


@pytest.mark.parametrize(
    ("broken", "finder"),
    [
        (pods(OtherCore), LISTS),
        (pods(OneEv), EVS),
        (pods(OtherPod), PLAIN),
        (pods(OneWayUp), WAYS),
        (pods(UnusedCore), USIDS),
        (rails(OneTooMany), GRAPH),
        (as_list(LostSpeed, "uneven"), FILE),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Topology) else value,
)
def test_a_planted_error_is_found(broken: Topology, finder: str) -> None:
    with pytest.raises(FOUND):
        PROPERTIES[finder](on(broken))


@pytest.mark.parametrize("finder", PROPERTIES)
def test_the_same_without_an_error_has_every_property(finder: str) -> None:
    for sound in (pods(Pods), rails(Rails), as_list(Listed, "uneven"), as_list(Listed, "list")):
        PROPERTIES[finder](on(sound))


def test_a_cable_on_no_shortest_way_is_refused_before_it_could_have_an_unused_entry() -> None:
    cables = [*RAILS.cables(), Cable(leaf(0, 0), core(0, 0)), Cable(leaf(0, 1), core(0, 0))]
    assert listed(cables)
    with pytest.raises(ValueError, match=r"p0s0–p0c0 is on none"):
        listed([*cables, Cable(spine(0, 0), core(0, 0))])
