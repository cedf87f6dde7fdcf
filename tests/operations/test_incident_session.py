"""Incidents in virtual time: the truth is in force and can be shown, and nothing says it before the end."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from operations.incident import solving, text
from operations.incident.draw import CALLED_S, Oddity
from operations.incident.kind import KINDS, LEVELS, kinds_of
from operations.incident.score import components
from operations.incident.session import IncidentSession
from operations.incident.words import parse
from tests.helpers.incidents import drawn_with, hiding, one_of, session
from tests.incidents import solvers

EVERY_TOOL = (
    "counters", "counters p0l0-p0s0 --watch 2", "inspect", "inspect h1", "trace h0 h3", "trace h0 h3 --ev 0x1c001",
    "paths h0 h2", "capture p1l0-p1s1 --seconds 0.1", "prober --all", "log h2 --count 500", "tables p0l1",
    "wait 0.5",
)  # fmt: skip


def asked(opened: IncidentSession, line: str) -> dict[str, Any]:
    return opened.do(*parse(line), line)


QUICK = ("dead-cable", "one-way-loss", "missing-entry")
"""Kinds whose recorded path is run each time; all of them are run at every level by the slow tests."""


@pytest.mark.parametrize("kind", QUICK)
def test_the_recorded_path_of_a_kind_shows_it(kind: str, tmp_path: Path) -> None:
    with session(hiding(one_of(kind)), tmp_path) as opened:
        shows(opened, kind)


@pytest.mark.parametrize(("level", "kind"), [(level, kind.name) for level in LEVELS for kind in kinds_of(level)])
def test_recorded_paths_show_every_kind_at_every_level(level: int, kind: str, tmp_path: Path) -> None:
    """Incidents as they are drawn, with other faults, oddities and the losses that a level allows."""
    incident = drawn_with(kind, level)
    with session(incident, tmp_path, CALLED_S) as opened:
        shows(opened, kind)


def test_programs_of_ones_own_need_real_links(tmp_path: Path) -> None:
    with (
        session(hiding(one_of("dead-cable")), tmp_path) as opened,
        pytest.raises(ValueError, match=r"exec h0: only an incident on real links \(--world emulated\)"),
    ):
        asked(opened, "exec h0 -- true")


def shows(opened: IncidentSession, kind: str) -> None:
    """Run the recorded commands of the hidden fault of this kind, and look for it in their answers."""
    incident = opened.incident
    hidden = next(one for one in incident.hidden if one.kind == kind)
    lines = solving.commands(incident.plan, hidden)
    found = solving.shown_by(incident.plan, incident.tickets, lambda line: asked(opened, line), lines)
    assert kind in {one.kind for one in found if one.component in components(hidden)}, (hidden, found)


def test_what_has_not_begun_changes_no_answer_and_no_file(tmp_path: Path) -> None:
    """Faults that begin after the last look, against none: equal answers, times and files, byte by byte."""
    later = [replace(one_of(kind), onset_s=1e6) for kind in KINDS if kind != "swapped-cables"]
    seen = []
    for name, incident in (("with", hiding(*later)), ("without", hiding())):
        with session(incident, tmp_path / name) as opened:
            answers = [asked(opened, line) for line in EVERY_TOOL]
            status, folder = opened.status(), opened.directory.path
            files = {path.name: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}
        seen.append((answers, status, files))
    assert seen[0] == seen[1]


def test_each_command_takes_the_same_lab_time_whatever_is_wrong(tmp_path: Path) -> None:
    times = []
    for name, hidden in (("none", ()), ("crash", (one_of("rebooting-switch"),)), ("late", (one_of("late-host"),))):
        with session(hiding(*hidden), tmp_path / name) as opened:
            for line in EVERY_TOOL:
                asked(opened, line)
            times.append([one.at_s for one in opened.asked])
    assert times[0] == times[1] == times[2]


@pytest.mark.smoke
def test_each_command_answers_in_words(shared: IncidentSession) -> None:
    shown = ["\n".join(text.SHOW[line.split()[0]](asked(shared, line))) for line in EVERY_TOOL[2:]]
    heads = (
        "NODE", "h1  host", "h0 → h3 by EV 0x0000c000", "h0 → h3 by EV 0x0001c001", "EV ", "", "LINK", " ", "TABLE",
        "0.5 s of lab time have passed",
    )  # fmt: skip
    assert [said.startswith(head) for said, head in zip(shown, heads, strict=True)] == [True] * len(heads), shown
    assert shown[2].endswith("h3 receives it")
    assert shown[5].endswith("packets at the end of p1l0")


def test_counters_do_not_know_what_a_cable_loses_and_journals_neither(tmp_path: Path) -> None:
    hidden = one_of("one-way-loss", level=1)
    with session(hiding(hidden), tmp_path) as opened:
        assert not any("loss" in row["DROPS"] for row in asked(opened, "counters --watch 5")["ports"])
        text = opened.directory.journal("switches").read_text()
        assert '"drop_loss":0' in text
        assert all(port["drop_loss"] == 0 for line in text.splitlines() for port in json.loads(line)["ports"])


def test_a_slow_port_reports_the_rate_of_the_plan_and_a_wrong_one_its_own(tmp_path: Path) -> None:
    for kind, told in (("slow-port", 10_000_000), ("wrong-rate", None)):
        hidden = one_of(kind)
        with session(hiding(hidden), tmp_path / kind) as opened:
            near, far = hidden.component.replace(">", "-").split("-")
            (node,) = asked(opened, f"inspect {near}")["nodes"]
            (row,) = [one for one in node["interfaces"] if one["peer"].startswith(f"{far}-")]
            assert row["rate_bps"] == (told or round(hidden.numbers["mbps"] * 1e6))


def test_a_swapped_cable_leads_a_traced_packet_to_the_other_spine(tmp_path: Path) -> None:
    hidden = one_of("swapped-cables")
    with session(hiding(hidden), tmp_path) as opened:
        line = solving.commands(opened.incident.plan, hidden)[-1]
        answer = asked(opened, line)
        assert answer["reached"] is None
        assert answer["hops"][1]["switch"] == hidden.names["other"].split("-")[1]


def test_oddities_are_there_and_are_no_faults(tmp_path: Path) -> None:
    odd = (
        Oddity("old-flap", "p0l0-p0s0", 1.0),
        Oddity("old-loss", "p0l1>p0s1", 1.0, 30.0),
        Oddity("drained", "p1s0", 0.5),
        Oddity("long-cable", "p1l0-p1s1", 0.5, 7.0),
    )
    with session(replace(hiding(), oddities=odd), tmp_path) as opened:
        assert opened.status()["tickets"] == ["p1s0 is drained for planned work: NICs deny every path across it"]
        totals = {row["IFACE"]: row for row in asked(opened, "counters")["ports"]}
        assert totals["p0l0-eth3"]["DROPS"]["port_down"] > 0
        assert totals["p0l1-eth4"]["TX_OK"] - totals["p0s1-eth2"]["RX_OK"] > 20
        states = {one["via"]: one["state"] for one in asked(opened, "paths h0 h2")["paths"]}
        assert states["p1s0"] == "denied"
        found = solvers.solve(opened.incident.plan, opened.incident.tickets, lambda line: asked(opened, line))
        assert found == []


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("counters p9l9", "p9l9"),
        ("counters p0s0-p0s1", "no link p0s0–p0s1"),
        ("counters --watch 1e9", "watch is 1000000000.0; it must be"),
        ("trace h0 h0", "two hosts"),
        ("trace h0 h3 --ev 0x99", "EV 0x00000099 names no path h0 → h3"),
        ("tables h0", "h0 is a host"),
        ("tables p0l0 routes", "no table 'routes': valid are .*ipv6_route"),
        ("capture p0l0", "two neighbours"),
        ("log p0l0", "p0l0 is a switch; the name must be a host"),
        ("wait 0", "seconds is 0.0; it must be"),
    ],
)
def test_a_wrong_command_says_what_is_valid_and_costs_nothing(shared: IncidentSession, line: str, said: str) -> None:
    before = shared.used_s, len(shared.asked)
    with pytest.raises(ValueError, match=said):
        asked(shared, line)
    assert (shared.used_s, len(shared.asked)) == before


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with session(hiding(), tmp_path_factory.mktemp("shared")) as opened:
        yield opened
