"""Every command on every topology beyond two even tiers: its output, or its refusal, without a run.

Runs are in `test_runs.py`, packets on real links in `tests/topo/emulation/test_fabric_paths.py`.
"""

import json
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from cli import main as cli
from controller.tables import tables
from running.options import Choices
from running.runner import prepare
from running.spec import RunSpec
from running.transport_choice import transport
from scenarios import library
from tests.topo.topologies.shapes import SMALL, TEXTS
from topo.address import switch_usid, usid_prefix
from topo.cli import draw_text
from topo.fault import VERBS, make_fault, targets
from topo.graph import links
from topo.node import leaf, spine
from topo.path import path_of_ev, paths
from topo.pictures.graph import dot, graph_of
from topo.plan import Plan
from topo.planfile import parse_document
from topo.show import paths_json
from topo.topologies.topology import runs

SVG = "{http://www.w3.org/2000/svg}"
Capture = pytest.CaptureFixture[str]


@pytest.fixture(params=SMALL)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def plan(name: str) -> Plan:
    return SMALL[name]


@pytest.fixture
def file(name: str, tmp_path: Path) -> str:
    """A file outside of the tree."""
    path = tmp_path / f"{name}.toml"
    path.write_text(TEXTS[name], encoding="utf-8")
    return str(path)


def names(plan: Plan) -> set[str]:
    return {node.name for node in plan.nodes()}


def show(plan: Plan, out: str) -> None:
    for count in (plan.switch_count, plan.host_count, len(list(links(plan))) - plan.planes * plan.host_count):
        assert re.search(rf"\b{count}\b", out), count
    assert ": 0 T" not in out


def show_json(plan: Plan, out: str) -> None:
    told = json.loads(out)
    assert parse_document(told["plan"]) == plan
    assert told["counts"]["switches"] == plan.switch_count


def drawn(plan: Plan, out: str) -> None:
    assert all(re.search(rf"\b{name}\b", out) for name in names(plan))


def all_paths(plan: Plan, out: str) -> None:
    found = list(paths(plan, plan.host("h0"), plan.host("h7")))
    assert json.loads(out) == paths_json(plan, found)


def path_lines(plan: Plan, out: str) -> None:
    crossed = re.findall(r"^ {4}(p\d\w+) ", out, re.MULTILINE)
    assert crossed == [one.name for path in paths(plan, plan.host("h0"), plan.host("h7")) for one in path.switches]


def traced(plan: Plan, out: str) -> None:
    told, path = json.loads(out), next(iter(paths(plan, plan.host("h0"), plan.host("h7"))))
    assert told["reached"] == "h7"
    assert [hop["switch"] for hop in told["hops"]] == [switch.name for switch in path.switches]


def dot_edges(plan: Plan, out: str) -> None:
    assert out.count(" -- ") == len(list(links(plan)))


def mermaid_edges(plan: Plan, out: str) -> None:
    assert out.count(" --- ") == len(list(links(plan)))


def exported(plan: Plan, out: str) -> None:
    told = json.loads(out)
    assert out == json.dumps(told, indent=1, ensure_ascii=False) + "\n", "in pieces as in one"
    assert parse_document(told["plan"]) == plan
    assert {node["name"] for node in told["nodes"]} == names(plan)
    assert len(told["links"]) == len(list(links(plan)))
    own = str(usid_prefix(plan, switch_usid(leaf(0, 0))))
    assert any(own in row["key"] for row in told["entries"]["p0l0"])
    assert {switch: len(rows) for switch, rows in told["entries"].items()} == {
        switch.name: len(tables(plan, switch)) for switch in plan.switches()
    }


def planned(plan: Plan, out: str) -> None:
    assert len(out.splitlines()) == len(tables(plan, plan.switch_node("p1l0")))


def frr(plan: Plan, out: str) -> None:
    assert out.count("hostname p1l1") == 1


def sonic(plan: Plan, out: str) -> None:
    assert json.loads(out)["STATIC_ROUTE"]


@pytest.mark.parametrize(
    ("words", "check"),
    [
        ("topo show {}", show),
        ("topo show {} --format json", show_json),
        ("topo draw {}", drawn),
        ("topo paths h0 h7 --plan {}", path_lines),
        ("paths h0 h7 --plan {} --format json", all_paths),
        ("trace h0 h7 --plan {} --format json", traced),
        ("graph {} --format dot", dot_edges),
        ("graph {} --format mermaid", mermaid_edges),
        ("export json {}", exported),
        ("export frr {} --switch p1l1", frr),
        ("export sonic {} --switch p1l1", sonic),
        ("controller show p1l0 --planned --plan {}", planned),
    ],
)
def test_a_command_prints_what_is_there(words: str, check, plan: Plan, file: str, capsys: Capture) -> None:
    assert cli.main([word.format(file) for word in words.split()]) == 0
    check(plan, capsys.readouterr().out)


@pytest.mark.parametrize("words", ["topo draw {} -o {} --path h0 h7", "graph {} -o {}"])
def test_a_picture_has_every_node(words: str, plan: Plan, file: str, tmp_path: Path, capsys: Capture) -> None:
    picture = tmp_path / "picture.svg"
    assert cli.main(words.format(file, picture).split()) == 0
    texts = {"".join(one.itertext()) for one in ElementTree.parse(picture).iter(f"{SVG}text")}
    assert names(plan) <= texts


@pytest.mark.parametrize("form", ["frr", "sonic"])
def test_an_export_writes_a_file_per_switch(form: str, plan: Plan, file: str, tmp_path: Path, capsys: Capture) -> None:
    assert cli.main(["export", form, file, "-o", str(tmp_path / form)]) == 0
    assert {one.name.partition(".")[0] for one in (tmp_path / form).iterdir()} == {s.name for s in plan.switches()}


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ("topo paths h0 h99 --plan {}", "has no h99: its hosts are h0 to h"),
        ("topo paths h0 h7 --plan {} --ev 0x1", "EV 0x00000001 names no path h0 → h7"),
        ("trace h0 p0l0 --plan {}", "p0l0 is a switch; the name must be a host"),
        ("controller show p9l0 --planned --plan {}", "has no p9l0: its leaves are p0l0 to p1l3"),
        ("run nic-port --world simulated --plan {} --fault switch-stop+p0c9+@1", "has no p0c9: "),
        ("view {} --export x.html", "--export writes the replay of runs, and this is a plan"),
    ],
)
def test_a_wrong_name_is_refused_by_what_there_is(words: str, why: str, file: str, capsys: Capture) -> None:
    assert cli.main([word.format(file).replace("+", " ") for word in words.split()]) == 2
    assert why in capsys.readouterr().err


def test_slow_cables_and_missing_switches_are_told() -> None:
    plan = SMALL["uneven"]
    assert draw_text(plan).endswith("\n\n  rates   p0l2–p0s0 × 0.5")
    assert [cable.label for cable in graph_of(plan).cables if cable.label] == ["rate × 0.5"]
    assert 'label="rate × 0.5"' in dot(graph_of(plan))
    with pytest.raises(ValueError, match=r"has no p1s3: its spines are p0s0 to p0s3, p1s0 to p1s2$"):
        plan.node("p1s3")
    with pytest.raises(ValueError, match=r"has no p2l0: its leaves are p0l0 to p1l3 \(2 planes of 4, counted from 0\)"):
        plan.node("p2l0")
    assert runs([]) == []
    assert runs([spine(0, 0), spine(0, 2), spine(0, 3), spine(1, 4)]) == ["p0s0", "p0s2 to p0s3", "p1s4"]


def test_an_ev_that_there_is_not_is_told_with_the_one_that_there_is() -> None:
    plan = SMALL["list"]
    with pytest.raises(ValueError, match=r"0 to 1, the low half 0xc000$"):
        path_of_ev(plan, plan.host("h0"), plan.host("h7"), 0xC001)


def test_every_verb_has_a_target_on_each_kind_of_cable_and_switch(plan: Plan) -> None:
    kinds = {"-".join(sorted(re.sub(r"\d", "", str(end.node)) for end in (link.a, link.b))) for link in links(plan)}
    for verb in VERBS.values():
        found = list(targets(plan, verb.name))
        value = verb.argument.high if verb.argument else None
        assert all(make_fault(plan, verb.name, target, value).target == target for target in found)
        if verb.target == "switch":
            assert found == [switch.name for switch in plan.switches()]
        elif verb.target == "nic port":
            assert len(found) == plan.planes * plan.host_count
        elif verb.target == "nic":
            assert found == [host.name for host in plan.hosts()]
        else:
            assert {"-".join(sorted(re.split("[->]", re.sub(r"\d", "", one)))) for one in found} == kinds


NO_SPINES = "plan 'mesh' has no p[01]s[01]: it has no spines"
FEW = "incast needs 2 hosts per leaf and 8 elsewhere"
REFUSED: dict[tuple[str, str], str] = {
    ("smoke", "list"): NO_SPINES,
    ("grey-link", "list"): NO_SPINES,
    ("switch-reboot", "list"): "the scenario crashes spines, and plan 'mesh' has none in plane 0",
    ("job", "list"): "the scenario crashes spines, and plan 'mesh' has none in plane 0",
    ("maintenance", "list"): "the scenario drains spines, and plan 'mesh' has none in plane 0",
    ("link-flap", "list"): "link-flap needs room .* in plan 'mesh' p1l2–p1l3 would carry 2 times its rate",
    ("link-flap", "rails"): "'rails', without p0l0-p0s0, p0l0–p0s1 would carry 2 times its rate",
    ("switch-reboot", "rails"): "'rails', without p0s0, p0l0–p0s1 would carry 2 times its rate",
    ("collision", "list"): "collision needs room .* in plan 'mesh' p0l0–p0l1 would carry 2 times its rate",
    **{("incast", name): FEW for name in SMALL},
}
"""By scenario and topology; all others are carried out."""
BASELINE = "cables: plane 1 must be wired as plane 0, or no single plane stands for all"


def prepared(scenario_name: str, plan: Plan, transport_name: str, seed: int) -> Any:
    scenario = library.find(scenario_name)
    chosen = transport(transport_name, scenario.settings)
    return prepare(RunSpec(scenario, Choices(chosen, plan, seed=seed, world="simulated")))


@pytest.mark.parametrize("scenario", [*library.NAMES, "job", "job-port"])
def test_a_scenario_can_be_carried_out_or_says_what_it_lacks(scenario: str, name: str, plan: Plan) -> None:
    """With the baseline as well: faults of all planes, of cores too, become faults of its single plane."""
    for seed in range(1, 9):
        if why := REFUSED.get((scenario, name)):
            with pytest.raises(ValueError, match=why):
                prepared(scenario, plan, "mrc", seed)
        else:
            assert prepared(scenario, plan, "mrc", seed).needed.memory_bytes > 0
        if name in ("uneven", "list"):
            with pytest.raises(ValueError, match=f"{BASELINE}|{why}" if why else BASELINE):
                prepared(scenario, plan, "roce", seed)
        elif (scenario, name) not in REFUSED:
            faults = prepared(scenario, plan, "roce", seed).spec.faults()
            assert all(fault.target.startswith(("p0", "h")) for fault in faults)
