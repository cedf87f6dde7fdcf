"""Incidents in virtual time: the truth is in force, nothing says it before the end, and the commands."""

import contextlib
import io
import json
import os
import signal
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest

from cli.main import main
from operations.incident import solving, text
from operations.incident.client import NoIncidentError, ask, start
from operations.incident.draw import CALLED_S, Oddity, draw
from operations.incident.kind import KINDS, LEVELS, kinds_of
from operations.incident.live_incident import files
from operations.incident.score import components
from operations.incident.session import IncidentSession
from operations.incident.words import parse
from tests.helpers.incidents import drawn_with, hiding, one_of, session
from tests.incidents import solvers
from tests.incidents.survey import leaks

EVERY_TOOL = (
    "counters", "counters p0l0-p0s0 --watch 2", "inspect", "inspect h1", "trace h0 h3", "trace h0 h3 --ev 0x1c001",
    "paths h0 h2", "capture p1l0-p1s1 --seconds 0.1", "prober --all", "log h2 --count 500", "tables p0l1",
    "wait 0.5",
)  # fmt: skip


def asked(opened: IncidentSession, line: str) -> dict[str, Any]:
    return opened.do(*parse(line), line)


@pytest.mark.parametrize(("level", "kind"), [(level, kind.name) for level in LEVELS for kind in kinds_of(level)])
def test_recorded_paths_show_every_kind_at_every_level(level: int, kind: str, tmp_path: Path) -> None:
    """Incidents as they are drawn, with other faults, oddities and the losses that a level allows."""
    incident = drawn_with(kind, level)
    hidden = next(one for one in incident.hidden if one.kind == kind)
    lines = solving.commands(incident.plan, hidden)
    with session(incident, tmp_path, CALLED_S) as opened:
        found = solving.shown_by(incident.plan, incident.tickets, lambda line: asked(opened, line), lines)
    assert kind in {one.kind for one in found if one.component in components(hidden)}, (hidden, found)


def test_programs_of_ones_own_need_real_links(tmp_path: Path) -> None:
    with (
        session(hiding(one_of("dead-cable")), tmp_path) as opened,
        pytest.raises(ValueError, match=r"exec h0: only an incident on real links \(--world emulated\)"),
    ):
        asked(opened, "exec h0 -- true")


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
        assert '"rx_packets"' in text
        assert "drop_loss" not in text, "a drop that is left out is 0"


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


SEED, LEVEL = 3000000019, 2
WORDS = (
    "status", "kinds", "inspect", "counters", "counters p0l0-p0s0 --watch 1", "capture p0l0-p0s0 --seconds 0.05",
    "prober", "prober --all", "paths h0 h2", "trace h0 h2", "log h1", "tables p0l0", "wait 1",
)  # fmt: skip


def lab(runs: Path, *words: str) -> CompletedProcess[str]:
    """A command of `./lab incident`, carried out in this process."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = main(["incident", *words, "--runs", str(runs)])
    return CompletedProcess(words, status, out.getvalue(), err.getvalue())


def keeper(folder: Path) -> int:
    """The process that keeps an incident: the one that has its journals open."""
    for place in Path("/proc").glob("[0-9]*"):
        try:
            if any(os.readlink(link).startswith(str(folder)) for link in (place / "fd").iterdir()):
                return int(place.name)
        except OSError:
            continue
    raise AssertionError("no process keeps the incident")


@pytest.fixture
def begun(tmp_path: Path) -> Iterator[Path]:
    folder = start(tmp_path, SEED, LEVEL).path
    yield folder
    with contextlib.suppress(NoIncidentError):
        ask(folder, "end")


def test_no_command_file_or_process_gives_the_answer_away(begun: Path, tmp_path: Path) -> None:
    incident = draw(SEED, LEVEL)
    said = []
    for line in WORDS:
        for form in ((), ("--json",)):
            done = lab(tmp_path, *line.split(), *form)
            assert done.returncode == 0, done.stderr
            said.append(done.stdout + done.stderr if line != "kinds" else "")
    process = Path("/proc") / str(keeper(begun))
    said += [(process / name).read_bytes().decode(errors="replace") for name in ("cmdline", "environ", "comm")]
    said += [str(begun), *(os.readlink(link) for link in (process / "fd").iterdir()), *files(begun)]
    assert leaks(incident, said) == ()
    page = tmp_path / "page.html"
    assert lab(tmp_path, "view", "--export", str(page)).returncode == 0
    # The page's own program has words such as `hidden`, so only what a run adds to it is looked at.
    assert leaks(incident, [page.read_text().replace("hidden", "").replace("truth", "")]) == ()
    assert (begun / "lab.sock").stat().st_mode & 0o077 == 0
    assert incident.hidden  # there was something to say


def test_the_answer_ends_it_with_the_truth_a_page_and_a_replay(begun: Path, tmp_path: Path) -> None:
    (hidden,) = draw(SEED, LEVEL).hidden
    wrong = lab(tmp_path, "answer", hidden.component, "bad-luck")
    assert (wrong.returncode, "valid are dead-cable" in wrong.stderr) == (2, True)
    done = lab(tmp_path, "answer", hidden.component, hidden.kind, "--because", "it <b>shows</b>", "--json")
    document = json.loads(done.stdout)
    assert (done.returncode, document["verdict"], document["seed"]) == (0, "right", SEED)
    assert document["evidence"][0]["shows"]
    page = (begun / "incident.html").read_text()
    assert hidden.kind in page
    assert "it &lt;b&gt;shows" in page
    faults = [json.loads(line) for line in (begun / "journal" / "runner.jsonl").read_text().splitlines()]
    assert hidden.component in {line.get("target") for line in faults}
    assert (begun / "replay.html").stat().st_size > 10_000
    assert not (begun / "lab.sock").exists()
    over = lab(tmp_path, "status")
    assert (over.returncode, "no incident is under way" in over.stderr) == (2, True)


@pytest.mark.slow
def test_an_incident_whose_process_was_killed_says_so_and_makes_room(begun: Path, tmp_path: Path) -> None:
    os.kill(keeper(begun), signal.SIGKILL)
    said = lab(tmp_path, "inspect").stderr  # its socket may take one more connection
    assert "is over, or its process was killed" in said
    assert "no incident is under way" in lab(tmp_path, "inspect").stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--level", "9"), "--level must be between 1 and 5 (got 9)"),
        (("--seed", "-1"), "--seed must be between 0 and"),
        (("inspect",), "no incident is under way"),
    ],
)
def test_wrong_words_are_refused_before_anything_is_made(words: tuple[str, ...], said: str, tmp_path: Path) -> None:
    done = lab(tmp_path, *words)
    assert done.returncode == 2
    assert said in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_the_kinds_of_a_level_need_no_incident(tmp_path: Path) -> None:
    done = lab(tmp_path, "kinds", "--level", "3")
    assert done.returncode == 0, done.stderr
    assert "denied-path" in done.stdout
    assert "swapped-cables" not in done.stdout
    done = lab(tmp_path, "kinds", "--level", "6")
    assert done.returncode != 0
    assert "--level must be between 1 and 5 (got 6)" in done.stderr
    assert "no incident is under way" in lab(tmp_path, "kinds").stderr


def answered(folder: Path, number: int, points: float, net: float) -> None:
    run = folder / "incident" / f"2026010{number}-000000-{number}"
    run.mkdir(parents=True)
    (run / "options.json").write_text("{}")
    (run / "answer.json").write_text(json.dumps({"points": points, "net": net, "commands": 4, "lab_s": 10.0 * number}))


def test_the_score_of_a_group_is_the_sum_of_its_answers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    answered(tmp_path / "anna", 1, 1.0, 1.0)
    answered(tmp_path / "anna", 2, 0.5, -0.5)
    answered(tmp_path / "ben", 1, 0.0, 0.0)
    assert main(["incident", "scores", str(tmp_path / "anna"), str(tmp_path / "ben")]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "anna: 1.5 of 2 points, net score +0.5, 30 s of lab time, 8 commands",
        "ben: 0 of 1 points, net score +0, 10 s of lab time, 4 commands",
        "together: 1.5 of 3 points, net score +0.5, 40 s of lab time, 12 commands",
    ]


def test_a_person_without_an_answer_is_named(tmp_path: Path, refused) -> None:
    (tmp_path / "carl").mkdir()
    assert "carl must hold an incident that was answered" in refused("incident", "scores", str(tmp_path / "carl"))
