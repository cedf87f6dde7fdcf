"""Pictures of a fabric: every node and link is in each format, faults and load are told from what is well."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from shutil import which
from xml.etree import ElementTree

import pytest

from cli import main as cli
from topo.fault import make_fault
from topo.graph import links
from topo.pictures.fabric import picture
from topo.pictures.graph import BAD, BUSY, IDLE, GraphError, blend, dot, graph_of, mermaid
from topo.pictures.positions import positions
from topo.planfile import load_plan

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


def test_no_two_nodes_are_drawn_in_one_place() -> None:
    for name in ("tiny", "lab", "rack", "wide"):
        at = positions(graph_of(load_plan(name)))
        assert len(set(at.values())) == len(at)


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


@pytest.mark.parametrize(
    ("word", "meant"),
    [("deploy", "up"), ("destroy", "down"), ("lclean", "down"), ("linfo", "inspect"), ("satus", "status")],
)
def test_words_of_other_labs_are_guessed(word: str, meant: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([word, "whatever"]) == 2
    assert capsys.readouterr().err == f"mrclab: no command {word!r}: did you mean ./lab {meant}?\n"


def test_a_word_that_nobody_could_mean_is_refused_with_all_there_are(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["xyzzy"]) == 2
    assert "no command 'xyzzy': valid are run, list, " in capsys.readouterr().err
