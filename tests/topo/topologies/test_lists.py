"""Every property holds on every topology; lists of cables become fabrics, or the cable that is wrong is named."""

import shutil
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

from page.scene import scene
from tests.topo.topologies.properties import PROPERTIES
from tests.topo.topologies.shapes import KINDS
from topo.graph import PortRef, link_between, peer
from topo.node import Host, core, leaf, spine
from topo.path import paths
from topo.plan import Plan
from topo.planfile import PlanError, load_plan, parse_plan
from topo.topologies import Rails, listed
from topo.topologies.topology import Cable

HEAD = 'name = "listed"\n[fabric]\ntopology = "list"\ncables = '
TWO = '[["h0","p0l0"],["h1","p0l1"],["p0l0","p0s0"],["p0l1","p0s0"]]'
MESH = Path(__file__).parents[3] / "docs" / "templates" / "mesh.toml"


def plan(cables: str, more: str = "") -> Plan:
    return parse_plan(f"{HEAD}{cables}\n{more}")


@pytest.mark.parametrize(
    ("cables", "why"),
    [
        ("[]", "hosts must be numbered from 0 without gaps; 0 is missing"),
        ('[["h0"]]', r'cables\[0\]: must be \["NODE", "NODE"\]'),
        ('[["h0","x9"]]', r"cables\[0\]: a node must be a host h0.*got 'x9'"),
        ('[["h0","h1"]]', r"cables\[0\]: a host must be wired to a leaf"),
        ('[["h0","p0s0"]]', r"cables\[0\]: a host must be wired to a leaf \(got h0 and p0s0\)"),
        ('[["p0l0","p1s0"]]', r"cables\[0\]: planes must stay apart"),
        ('[["p0l0","p0l0"]]', "must join two nodes"),
        ('[["p0l0","p0s0"],["p0s0","p0l0"]]', r"cables\[1\]: two nodes must have one cable at most"),
        ('[["p0l0","p0s0", 0]]', r"the speed must be from 0.001 to 16 \(got 0\)"),
        ('[["p0l0:0","p0s0"]]', "a port must be a number from 1 to 999"),
        (TWO.replace("p0l1", "p0l2"), "leaves of plane 0 must be numbered from 0 without gaps; 1 is missing"),
        (TWO.replace("h1", "h0"), "h0 must have one cable in plane 0"),
        (TWO.replace("]]", '],["h0","p1l0"]]'), "h1 must have a cable in every plane; it has none in plane 1"),
        (TWO.replace("]]", '],["h0","p1l1"],["h1","p1l0"]]'), "leaves of one index in all planes .got p0l0 and p1l1"),
        ('[["h0","p0l0"],["h1","p0l1"]]', "p0l0 and p0l1 are not"),
        ('[["h0","p0l0"],["p0l0","p0s0"]]', "at least two leaves"),
        (TWO.replace("]]", '],["p0l0","p0s1"]]'), "p0l0–p0s1 is on none"),
        (TWO.replace("]]", '],["p0l2","p0s0"]]'), "every leaf must have a host; p0l2 has none"),
        (
            TWO.replace('"p0l0","p0s0"', '"p0l0:1","p0s0"').replace('"h0","p0l0"', '"h0","p0l0:1"'),
            "p0l0:1 has those to",
        ),
        (TWO.replace('"p0l0","p0s0"', '"p0l0:3","p0s0"'), "ports of p0l0 must be 1 to 2, all or none named"),
        (TWO.replace('"h0"', '"h0:2"'), "port 1 of a host must be in plane 0, 2 in plane 1"),
        (TWO.replace("p0s0", "p0s600"), "spines must be numbered below 512"),
    ],
)
def test_a_list_that_is_no_fabric_is_refused_by_the_cable_and_the_rule(cables: str, why: str) -> None:
    with pytest.raises(PlanError, match=f"fabric.*{why}"):
        plan(cables)


def test_a_path_of_more_switches_than_usids_fit_and_a_cable_on_no_shortest_way_are_refused() -> None:
    """Seven leaves in a row: six lie between the ends of five hops, and their uSIDs with the NIC's are seven."""
    row = [f'["h{n}","p0l{n}"]' for n in range(6)] + [f'["p0l{n}","p0l{n + 1}"]' for n in range(5)]
    with pytest.raises(PlanError, match=r"must cross at most 5 switches.*6 lie between|got 6 between"):
        plan(f"[{','.join(row)}]")
    cables = [
        *Rails(planes=2, leaves=4, spines=2, hosts_per_leaf=2, rails=2).cables(),
        Cable(leaf(0, 0), core(0, 0)),
        Cable(leaf(0, 1), core(0, 0)),
    ]
    assert listed(cables)
    with pytest.raises(ValueError, match=r"p0s0–p0c0 is on none"):
        listed([*cables, Cable(spine(0, 0), core(0, 0))])


def test_nodes_that_are_told_must_be_those_of_the_cables() -> None:
    assert plan(TWO, 'nodes = ["h0", "h1", "p0l0", "p0l1", "p0s0"]').host_count == 2
    with pytest.raises(PlanError, match="nodes: must name each end of a cable; p0s0 is missing"):
        plan(TWO, 'nodes = ["h0", "h1", "p0l0", "p0l1"]')
    with pytest.raises(PlanError, match="nodes: each must be at the end of a cable; p0s1 is not"):
        plan(TWO, 'nodes = ["h0", "h1", "p0l0", "p0l1", "p0s0", "p0s1"]')


def test_cables_name_ports_and_share_of_the_rate() -> None:
    told = '[["h0","p0l0:2"],["h1","p0l1"],["p0l0:1","p0s0"],["p0l1","p0s0", 0.5]]'
    found = plan(told)
    assert peer(found, PortRef(leaf(0, 0), 1)).node == spine(0, 0)
    assert peer(found, PortRef(leaf(0, 0), 2)).node == Host(0)
    assert link_between(found, leaf(0, 1), spine(0, 0)).rate_bps == found.links.fabric_rate_bps // 2
    assert link_between(found, leaf(0, 0), spine(0, 0)).rate_bps == found.links.fabric_rate_bps


def test_a_file_outside_the_tree_is_a_plan_and_is_drawn_on_the_page(tmp_path: Path) -> None:
    """The template of `docs/reference/topologies.md`, of fewer than 100 lines."""
    copied = shutil.copy(MESH, tmp_path / "own.toml")
    assert len(MESH.read_text().splitlines()) < 100
    found = load_plan(copied)
    assert [len(path.switches) for path in paths(found, Host(0), Host(7))] == [2, 2]
    told = scene(found)
    assert len(told["nodes"]) == found.host_count + found.switch_count == 16
    slow = next(row for row in told["cables"] if row[:2] == ["p1l2", "p1l3"])
    assert slow[4] == found.links.fabric_rate_bps // 2


UNEVEN = """name = "uneven"
[fabric]
topology = "uneven"
planes = 2
leaves = 3
spines = 3
hosts_per_leaf = 2
"""


def test_an_uneven_fabric_lacks_what_it_says_and_has_the_rest() -> None:
    told = 'without = ["p1s2", "p0l0-p0s1"]\nspeeds = { "p0l2-p0s0" = 0.5 }\nmore_hosts = { l1 = 1 }\n'
    found = parse_plan(UNEVEN + told)
    other_ends = told.replace("p0l0-p0s1", "p0s1-p0l0").replace("p0l2-p0s0", "p0s0-p0l2")
    assert parse_plan(UNEVEN + other_ends) == found, "a link may be named from either end"
    assert found.host_count == 7
    assert [found.leaf_of(host) for host in found.hosts()] == [0, 0, 1, 1, 1, 2, 2]
    assert [path.via for path in paths(found, Host(0), Host(6))] == ["p0s0", "p0s2", "p1s0", "p1s1"]
    assert [path.via for path in paths(found, Host(2), Host(6))] == ["p0s0", "p0s1", "p0s2", "p1s0", "p1s1"]
    assert link_between(found, leaf(0, 2), spine(0, 0)).rate_bps == found.links.fabric_rate_bps // 2
    with pytest.raises(ValueError, match="has no p1s2: its spines are p0s0 to p0s2, p1s0 to p1s1"):
        found.switch_node("p1s2")
    with pytest.raises(PlanError, match="plane 1 must be wired as plane 0, or no single plane stands for all"):
        found.single_plane()


@pytest.mark.parametrize(
    ("told", "why"),
    [
        ('without = ["p0l1"]', "without: each must be a spine or a link that is there, such as .*got 'p0l1'"),
        ('without = ["p0s7"]', "got 'p0s7'"),
        ('without = ["p0s1", "p0s1"]', "got 'p0s1'"),
        ('speeds = { "p0l0-p0s9" = 0.5 }', "speeds: each must be of a link"),
        ('speeds = { "h0-p0l0" = 0.5 }', "between a leaf and a spine that is there, such as p0l0-p0s0 .got 'h0-p0l0'"),
        ("more_hosts = { l7 = 1 }", "l7 is no key here; valid: l0, l1, l2"),
        ('without = ["p0s0", "p0s1", "p0s2"]', "fabric.without: every two hosts must be connected in each plane"),
        ('without = ["h0-p0l0"]', "got 'h0-p0l0'"),
        ("without = [7]", "got 7"),
    ],
)
def test_what_an_uneven_fabric_cannot_lack_is_refused(told: str, why: str) -> None:
    with pytest.raises(PlanError, match=why):
        parse_plan(f"{UNEVEN}{told}\n")


def test_rails_put_the_nics_of_a_node_on_different_leaves() -> None:
    found = load_plan("lab", {"fabric.topology": "rails", "fabric.rails": "2"})
    assert [found.leaf_of(host) for host in found.hosts()] == [0, 1, 0, 1, 2, 3, 2, 3]
    with pytest.raises(PlanError, match="leaves: must be a multiple of rails, 3"):
        load_plan("lab", {"fabric.topology": "rails", "fabric.rails": "3"})


@pytest.mark.parametrize(
    ("key", "value", "why"),
    [
        ("leaves", "3", "leaves: must be a multiple of pods, 2"),
        ("cores", "3", "cores: must be a multiple of the spines of a pod, 2"),
        ("pods", "1", "pods is 1; it must be an integer from 2 to 256"),
        ("topology", "torus", "must be one of 'leaf-spine', 'pods', 'rails', 'uneven', 'list'"),
        ("rails", "2", "fabric.rails is no key here"),
    ],
)
def test_numbers_that_make_no_pods_are_refused(key: str, value: str, why: str) -> None:
    with pytest.raises(PlanError, match=why):
        load_plan("pods", {f"fabric.{key}": value})


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", PROPERTIES)
@settings(max_examples=6)
@given(data=st.data())
def test_a_topology_of_any_size_has_the_property(name: str, kind: str, data: st.DataObject) -> None:
    PROPERTIES[name](data.draw(KINDS[kind]))
