"""The room of a fabric for flows: loads worked out by hand, and the scenarios that need it."""

from collections.abc import Callable

import pytest

from scenarios import places
from tests.topo.topologies.shapes import SMALL
from topo.plan import Plan
from topo.planfile import load_plan, parse_document


def even(hosts_per_leaf: int, spines: int, **links: int) -> Plan:
    fabric = {"planes": 2, "leaves": 3, "spines": spines, "hosts_per_leaf": hosts_per_leaf}
    return parse_document({"name": "even", "fabric": fabric, "links": links})


@pytest.mark.parametrize(
    ("plan", "shift", "load", "link"),
    [
        (even(2, 4), 2, 0.5, "p0l0–p0s0"),  # two flows over four spines
        (even(2, 4), 1, 0.25, "p0l0–p0s0"),  # one of two flows leaves the leaf
        (even(4, 2), 4, 2.0, "p0l0–p0s0"),
        (even(4, 2, fabric_rate_bps=40_000_000), 4, 0.5, "p0l0–p0s0"),
        (load_plan("pods"), 2, 1.0, "p0l0–p0s0"),
        (load_plan("pods"), 1, 0.5, "p0l0–p0s0"),
        (SMALL["list"], 2, 2.0, "p0l0–p0l1"),
    ],
)
def test_a_load_is_the_flows_over_the_ways(plan: Plan, shift: int, load: float, link: str) -> None:
    found, where = places.highest(places.Loads(plan, places.shifted(plan, shift), 0).full_loads)
    assert found == pytest.approx(load)
    assert where == link


def test_a_slow_cable_takes_its_share_of_the_flow_and_no_more() -> None:
    """Leaf 2 of plane 0: cables of 0.5, 1, 1 and 1, so that none of them is fuller than another."""
    plan = SMALL["uneven"]
    loads = places.Loads(plan, {(1, 2): 7}, 0).full_loads
    down = {str(one): load for (one, other), load in loads.items() if str(other) == "p0l2"}
    assert down == {f"p0s{number}": pytest.approx(2.0) for number in range(4)}


@pytest.mark.parametrize(
    ("plan", "part", "load"),
    [
        (even(2, 4), {"p0l0", "p0s0"}, 1 / 3),
        (even(2, 4), {"p0s0"}, 1 / 3),
        (even(2, 2), {"p0s1", "p0l2"}, 1.0),
        (load_plan("pods"), {"p0s0", "p0c0"}, 2 / 3),  # three ways are left, two of them over spine 1
        (load_plan("pods"), {"p0c3"}, 2 / 3),
        (SMALL["rails"], {"p0s0"}, 2.0),
        (SMALL["list"], {"p0l1", "p0l0"}, float("inf")),
    ],
)
def test_without_a_part_the_others_carry_more(plan: Plan, part: set[str], load: float) -> None:
    loads = places.Loads(plan, places.shifted(plan, 1), 0)
    assert loads.without(frozenset(part))[0] == pytest.approx(load)


def test_a_part_that_no_flow_crosses_is_not_missed() -> None:
    loads = places.Loads(SMALL["list"], places.shifted(SMALL["list"], 1), 0)
    assert loads.without(frozenset({"p0l0", "p0l2"})) == (0.0, "")


@pytest.mark.parametrize(
    ("refuse", "said"),
    [
        (
            lambda plan: places.check_room(plan, places.shifted(plan, 4), "x"),
            "x needs room .* would carry 2 times its rate",
        ),
        (lambda plan: places.check_spare(plan, ["p1l0-p1s0"], "x"), None),  # of even planes the first stands for all
        (lambda plan: places.check_spare(plan, ["p0l0-p0s0"], "x"), None),
    ],
)
def test_a_fabric_without_room_is_refused_by_the_link(refuse: Callable[[Plan], None], said: str | None) -> None:
    plan = even(4, 2)
    if said is None:
        refuse(plan)
        return
    with pytest.raises(ValueError, match=said):
        refuse(plan)
