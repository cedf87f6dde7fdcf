"""Pictures of a fabric: every node and link is in each format, faults and load are told from what is well."""

import re
import subprocess
from dataclasses import replace
from pathlib import Path
from shutil import which
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cli import main as cli
from tests.topo.topologies.shapes import SMALL, on
from topo.fault import make_fault
from topo.graph import links
from topo.node import Host, leaf
from topo.pictures.fabric import picture
from topo.pictures.graph import BAD, BUSY, IDLE, GraphError, blend, dot, graph_of, mermaid
from topo.pictures.positions import positions
from topo.plan import Plan
from topo.planfile import load_plan
from topo.topologies import listed
from topo.topologies.topology import Cable

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


def test_the_pictures_are_what_their_names_say_and_show_names_and_faults(tmp_path: Path) -> None:
    graph = graph_of(PLAN, FAULTS, LOAD)
    assert picture(graph, "png").startswith(b"\x89PNG\r\n\x1a\n")
    root = ElementTree.fromstring(picture(graph, "svg"))
    text = " ".join("".join(element.itertext()) for element in root.iter("{http://www.w3.org/2000/svg}text"))
    for node in PLAN.nodes():
        assert node.name in text
    assert "loss p0l0>p0s0 20 percent" in text
    assert "50%" in text


def test_the_title_of_a_plan_is_no_formula() -> None:
    graph = replace(graph_of(PLAN), title=r"plan $\bad{$")
    assert rb"plan $\bad{$" in picture(graph, "svg")


def test_no_two_nodes_are_drawn_in_one_place() -> None:
    for plan in (*map(load_plan, ("tiny", "lab", "rack", "wide")), *SMALL.values()):
        at = positions(graph_of(plan))
        assert len(set(at.values())) == len(at)


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


def test_colours_go_from_idle_to_busy() -> None:
    assert (blend(0.0), blend(1.0), blend(7.0)) == (IDLE, BUSY, BUSY)


def test_a_fabric_that_is_too_large_and_a_name_that_is_no_picture_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(GraphError, match="137,216 nodes; 600 are the most"):
        graph_of(load_plan("paper"))
    assert cli.main(["graph", "tiny", "-o", str(tmp_path / "lab.jpg")]) == 2
    assert "no picture of that name: valid are .svg, .png" in capsys.readouterr().err
    assert cli.main(["graph", "tiny", "-o", str(tmp_path / "lab.mmd")]) == 0
    assert (tmp_path / "lab.mmd").read_text().startswith("graph TD\n")


def test_a_format_that_contradicts_the_name_of_the_picture_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    picture = tmp_path / "lab.png"
    assert cli.main(["graph", "tiny", "--format", "svg", "-o", str(picture)]) == 2
    assert f"--format must be left out with -o {picture}, which is png (got svg)" in capsys.readouterr().err
    assert not picture.exists()
    assert cli.main(["graph", "tiny", "--format", "dot", "-o", str(tmp_path / "lab.gv")]) == 0


def test_a_word_that_nobody_could_mean_is_refused_with_all_there_are(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["xyzzy"]) == 2
    assert "no command 'xyzzy': valid are run, list, " in capsys.readouterr().err
