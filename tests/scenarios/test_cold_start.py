"""The dead links of a cold start: which there are, and which paths cross them."""

from itertools import pairwise

import pytest

from judging.measures.paths import PathKey
from scenarios import cold_start, places
from scenarios.scenario import Setting
from tests.topo.topologies.shapes import SMALL
from topo.graph import links
from topo.node import Host
from topo.path import paths
from topo.plan import Plan


def setting_of(plan: Plan, seed: int) -> Setting:
    return Setting(plan, "mrc", seed, {phase.name: phase.seconds for phase in cold_start.SCENARIO.phases})


@pytest.mark.parametrize("name", SMALL)
def test_every_leaf_has_a_dead_link_and_no_link_is_dead_twice(name: str) -> None:
    plan = SMALL[name]
    cables = {frozenset((link.a.node.name, link.b.node.name)) for link in links(plan)}
    for seed in range(1, 9):
        dead = [frozenset(fault.target.split("-")) for fault in cold_start.timeline(setting_of(plan, seed))]
        assert len(set(dead)) == len(dead)
        assert set(dead) <= cables
        assert {switch.name for switch in plan.switches() if switch.role == "leaf"} <= {
            end for one in dead for end in one
        }


@pytest.mark.parametrize("name", SMALL)
def test_a_path_of_the_journal_crosses_the_links_that_it_has_in_the_plan(name: str) -> None:
    """Also where two leaves are wired to each other, and where a core lies between two spines."""
    plan = SMALL[name]
    setting = setting_of(plan, 1)
    for other in plan.hosts():
        for path in paths(plan, Host(0), other) if other.index else ():
            key = PathKey("h0", other.name, path.plane, path.via or "local", path.ev, 1)
            names = [switch.name for switch in path.switches]
            assert places.crossed(setting, key) == names[1:-1]
            assert places.crossed_links(setting, key) == [frozenset(ends) for ends in pairwise(names)]
