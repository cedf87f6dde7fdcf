"""What is shown, counted and drawn of a plan, in every format of pictures."""

import json
import re
import subprocess
from dataclasses import replace
from itertools import pairwise
from shutil import which
from xml.etree import ElementTree

import pytest
from hypothesis import given, strategies as st

from cli.main import main
from tests.topo.topologies.shapes import LEAF_SPINES, SMALL, on, plans as topologies
from topo.cli import draw_text
from topo.count import count_parts
from topo.fault import make_fault
from topo.graph import links, ports
from topo.node import Host, Node, leaf, spine
from topo.path import paths
from topo.pictures.fabric import picture
from topo.pictures.graph import BAD, BUSY, IDLE, GraphError, blend, dot, graph_of, mermaid
from topo.pictures.part import part_of
from topo.pictures.positions import positions
from topo.plan import Plan
from topo.planfile import load_plan
from topo.show import show_plan, switch_kinds, switch_words
from topo.topologies import listed
from topo.topologies.topology import Cable


def test_the_paper_needs_three_fifths_of_the_switches_and_two_thirds_of_the_optics():
    count = count_parts(load_plan("paper"))
    assert count.nics == 131_072
    assert count.switches == 6_144
    assert count.switch_ratio == pytest.approx(3 / 5, abs=1e-12)
    assert count.optic_ratio == pytest.approx(2 / 3, abs=1e-12)
    assert (count.longest_path_switches, count.oversubscription, count.paths_across) == (3, 1.0, 2_048)
    assert count.nics_in_one_hop == 256
    assert count.fabric_link_loss_share == pytest.approx(0.004, abs=1e-4)
    assert count.nic_port_loss_share == pytest.approx(0.125)


@given(LEAF_SPINES)
def test_the_closed_forms_agree_with_counting(plan):
    count = count_parts(plan)
    listed = list(links(plan))
    assert count.links_edge == sum(link.kind == "edge" for link in listed)
    assert count.links_fabric == sum(link.kind == "fabric" for link in listed)
    assert count.switches == len(list(plan.switches()))
    assert count.leaf_ports == len(list(ports(plan, leaf(0, 0))))
    assert count.spine_ports == len(list(ports(plan, spine(0, 0))))
    assert count.paths_same_leaf == len(list(paths(plan, Host(0), Host(0))))
    if plan.leaves > 1:
        assert count.paths_across == len(list(paths(plan, Host(0), Host(plan.host_count - 1))))


@given(LEAF_SPINES)
def test_drawings_show_every_node_and_cable_of_a_small_plan(plan):
    chosen = list(paths(plan, Host(0), Host(plan.host_count - 1)))
    part, whole = part_of(plan, chosen), graph_of(plan)
    planes = {place.name: place.plane for place in whole.places}
    cables = [one for one in whole.cables if planes[one.b] < 4]
    assert {place.name for place in part.places} == {place.name for place in whole.places if place.plane < 4}
    assert {replace(one, bold=False) for one in part.cables} == set(cables)
    assert len(part.cables) == len(cables)
    ways: list[list[Node]] = [[path.source, *path.switches, path.destination] for path in chosen]
    bold = {frozenset((a.name, b.name)) for way in ways for a, b in pairwise(way)}
    drawn = {frozenset((one.a, one.b)) for one in cables}
    assert {frozenset((one.a, one.b)) for one in part.cables if one.bold} == bold & drawn
    assert all(switch.name in draw_text(plan) for switch in plan.switches() if switch.plane < 4)


@given(topologies.filter(lambda plan: max(plan.leaves, plan.spines, plan.topology.cores) <= 8))
def test_text_says_of_every_switch_what_it_is_wired_to(plan):
    """Beyond two even tiers: a cross stands for a whole tier, else each switch names its neighbours, as "l0 l2-4"."""
    lines = draw_text(plan).splitlines()
    told = set()
    for number, line in enumerate(lines):
        if (row := re.findall(r"p\d+[lsc]\d+", line)) and "T" in line:
            following, plane = lines[number + 1], row[0].partition(row[0].lstrip("p0123456789"))[0]
            if "×" in following:
                below = re.findall(r"p\d+[lsc]\d+", lines[number + 2])
                told |= {frozenset((one, other)) for one in row for other in below}
            elif following.strip().startswith("to"):
                cells = re.split(r"\s{2,}", following.strip().removeprefix("to").strip())
                for name, words in zip(row, cells, strict=True):
                    told |= {frozenset((name, plane + other)) for other in expanded(words)}
    assert told == {
        frozenset((link.a.node.name, link.b.node.name)) for link in links(plan) if not isinstance(link.a.node, Host)
    }


def expanded(words):
    """ "l0 l2-4" as l0, l2, l3, l4."""
    for word in words.split():
        first, _, last = word.partition("-")
        yield from (f"{word[0]}{n}" for n in range(int(first[1:]), int(last or first[1:]) + 1))


def test_a_mesh_has_no_bisection_of_tiers_and_an_uneven_fabric_is_told_by_what_differs():
    """Four leaves wired to each other: half of all cables is not what joins two halves of the hosts."""
    shown = show_plan(SMALL["list"])
    assert "8: 8 T0 of 5 ports, 2 planes" in shown
    assert "between switches of" in shown
    assert "unknown where a tier is wired to itself" in shown
    assert "T0–T0: 40.0% of a leaf's uplinks" in shown  # a leaf with 1, 1 and 0.5 of a cable's rate
    assert count_parts(SMALL["list"]).bisection_bps is None
    shown = show_plan(SMALL["uneven"])
    for words in ("8 T0 of up to 6 ports, 7 T1 of up to 4 ports", "2 to 3 per leaf", "of 5 Mb/s to 10 Mb/s"):
        assert words in shown


def test_show_prints_the_ratios_and_the_single_plane_as_its_own(capsys):
    status, out, _ = run(capsys, "topo", "show", "lab", "--single-plane")
    assert status == 0
    assert "lab-single-plane: the single-plane equivalent of lab" in out
    assert "1 plane;" in out
    status, out, _ = run(capsys, "topo", "show", "paper")
    assert status == 0
    for words in (
        "131,072",
        "6,144",
        "0.600 = 3/5",
        "0.667 = 2/3",
        "65,536 NICs and 5,120 switches",
        "256 NICs in one",
        "T0–T1 of",
    ):
        assert words in out


def test_a_large_plan_is_drawn_in_part_and_says_so():
    plan = load_plan("paper")
    part = part_of(plan)
    shown = "shown: 4 of 8 planes, 8 of 512 leaves per plane, 8 of 256 spines per plane, 4 of 256 hosts"
    assert part.note.startswith(shown)
    assert part.note in picture(part, "svg").decode()
    assert "504 more" in draw_text(plan)
    assert "4 more planes alike" in draw_text(plan)


def run(capsys, *words):
    status = main(words)
    captured = capsys.readouterr()
    return status, captured.out, captured.err


def test_paths_decode_the_list_hop_by_hop_and_as_json_list_every_ev(capsys):
    status, out, _ = run(capsys, "topo", "paths", "h1", "h5", "--plan", "lab", "--ev", "0x1c003")
    assert status == 0
    assert out.splitlines() == [
        "EV 0x0001c003  plane 1  p1s3         fcbb:bbbb:1200:2103:1202:3001::",
        "    p1l0     in 2   takes 1200, out 6   fcbb:bbbb:2103:1202:3001::",
        "    p1s3     in 1   takes 2103, out 3   fcbb:bbbb:1202:3001::",
        "    p1l2     in 6   takes 1202, out 2   fcbb:bbbb:3001::",
        "    h5       in 2   decapsulates",
    ]
    _, out, _ = run(capsys, "topo", "paths", "h1", "h5", "--plan", "lab", "--format", "json")
    rows = json.loads(out)
    assert len({row["ev"] for row in rows}) == 16
    assert [hop["switch"] for hop in rows[0]["hops"]] == ["p0l0", "p0s0", "p0l2"]


def test_a_mixed_plan_is_announced_as_what_it_is():
    plain, mixed = load_plan("tiny"), load_plan("tiny", {"switches.p0s1": "linux", "switches.p1l0": "linux"})
    assert switch_words(plain) == "8 embedded switches"
    assert switch_words(mixed) == "8 switches (6 embedded and 2 linux)"
    assert switch_kinds(mixed) == "6 embedded and 2 linux"


PLAN = load_plan("tiny")
FAULTS = [
    make_fault(PLAN, "loss", "p0l0>p0s0", 20.0),
    make_fault(PLAN, "port-down", "h3.p1"),
    make_fault(PLAN, "switch-crash", "p1s0"),
]
LOAD = {frozenset(("p0l1", "p0s1")): 0.5}


def test_text_formats_hold_every_link_once_and_name_the_faults() -> None:
    graph = graph_of(PLAN, FAULTS, LOAD)
    expected = {(link.a.node.name, link.b.node.name) for link in links(PLAN)}
    assert set(re.findall(r'"(\w+)" -- "(\w+)"', dot(graph))) == expected
    assert {(a, b) for b, a in re.findall(r"^  (\w+) -[-.].*- (\w+)$", mermaid(graph), re.MULTILINE)} == expected
    for text in (dot(graph), mermaid(graph)):
        for said in ("loss p0l0>p0s0 20 percent", "port-down h3.p1", "switch-crash p1s0", "50%"):
            assert said in text
    (lossy,) = [line for line in dot(graph).splitlines() if '"p0l0" -- "p0s0"' in line]
    (busy,) = [line for line in dot(graph).splitlines() if '"p0l1" -- "p0s1"' in line]
    assert BAD in lossy
    assert "dashed" in lossy
    assert blend(0.5) in busy
    assert BAD not in dot(graph_of(PLAN))


@pytest.mark.skipif(which("dot") is None, reason="graphviz is not installed")
def test_graphviz_reads_it() -> None:
    subprocess.run(["dot", "-Tcanon"], input=dot(graph_of(PLAN, FAULTS)), text=True, check=True, capture_output=True)


def test_the_pictures_are_what_their_names_say_and_show_names_and_faults_and_no_formula(tmp_path) -> None:
    graph = graph_of(PLAN, FAULTS, LOAD)
    assert picture(graph, "png").startswith(b"\x89PNG\r\n\x1a\n")
    root = ElementTree.fromstring(picture(graph, "svg"))
    text = " ".join("".join(element.itertext()) for element in root.iter("{http://www.w3.org/2000/svg}text"))
    for node in PLAN.nodes():
        assert node.name in text
    assert "loss p0l0>p0s0 20 percent" in text
    assert "50%" in text
    graph = replace(graph_of(PLAN), title=r"plan $\bad{$")
    assert rb"plan $\bad{$" in picture(graph, "svg")


def test_no_two_nodes_are_drawn_in_one_place_and_colours_go_from_idle_to_busy() -> None:
    for plan in (*map(load_plan, ("tiny", "lab", "rack", "wide")), *SMALL.values()):
        at = positions(graph_of(plan))
        assert len(set(at.values())) == len(at)
    assert (blend(0.0), blend(1.0), blend(7.0)) == (IDLE, BUSY, BUSY)


def ring(leaves: int) -> Plan:
    """Leaves that are wired to each other, every one to every other, with a host under each."""
    hosts = [Cable(Host(index), leaf(0, index)) for index in range(leaves)]
    pairs = [(one, other) for one in range(leaves) for other in range(one + 1, leaves)]
    return on(listed([*hosts, *(Cable(leaf(0, one), leaf(0, other)) for one, other in pairs)]))


@given(st.integers(3, 20))
def test_no_cable_between_nodes_of_a_row_is_drawn_over_another_node(leaves: int) -> None:
    plan = ring(leaves)
    at = positions(graph_of(plan))
    for link in links(plan):
        (x1, y1), (x2, y2) = at[link.a.node.name], at[link.b.node.name]
        for name in {node.name for node in plan.switches()} - {link.a.node.name, link.b.node.name}:
            x, y = at[name]
            assert abs((x2 - x1) * (y - y1) - (y2 - y1) * (x - x1)) > 1e-3
    assert all(y == 1 or 0.7 < y < 1 for name, (_, y) in at.items() if name.startswith("p"))


def test_a_fabric_that_is_too_large_and_a_name_that_is_no_picture_are_refused(tmp_path, refused) -> None:
    with pytest.raises(GraphError, match="137,216 nodes; 600 are the most"):
        graph_of(load_plan("paper"))
    said = refused("graph", "tiny", "-o", tmp_path / "lab.jpg")
    assert "no picture of that name: valid are .svg, .png" in said
    said = refused("graph", "tiny", "--format", "svg", "-o", tmp_path / "lab.png")
    assert f"--format must be left out with -o {tmp_path / 'lab.png'}, which is png (got svg)" in said
    assert not list(tmp_path.iterdir())
    assert main(["graph", "tiny", "-o", str(tmp_path / "lab.mmd")]) == 0
    assert (tmp_path / "lab.mmd").read_text().startswith("graph TD\n")
    assert main(["graph", "tiny", "--format", "dot", "-o", str(tmp_path / "lab.gv")]) == 0
