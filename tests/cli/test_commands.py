"""The command line as a newcomer meets it: what it prints, what it refuses, and what is left of what it refused."""

import ast
import json
import os
import re
import shlex
import shutil
import sys
from collections import defaultdict
from importlib.metadata import version
from pathlib import Path

import pytest

from cli import main as cli, traffic
from cli.prompt import parse_injection
from cli.traffic import TrafficError
from judging.run import Run
from running.directory import find
from scenarios import library
from tests.helpers.tracked import files_of, room_of
from topo.fault import FaultError, make_fault
from topo.planfile import PLANS_DIR, load_plan

SIMULATED = ("--world", "simulated", "--plain")
EMBEDDED = "with --world simulated every switch is an embedded one"
LOST = "loss: percent (share of packets lost) must be a number between 0 and 100 (got none)"


def test_without_a_word_all_commands_are_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([]) == 2
    assert "run a scenario, judge it, write a report" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--seed -1", "--seed must be between 0 and 9223372036854775807 (got -1)"),
        ("--time 0", "--time must be a factor above 0"),
        ("--rate 0", "--rate must be between 0.01 and 8000000 Mb/s"),
        ("--set foo", "--set must be NAME=VALUE"),
        ("--set foo=1", "mrclab: --set foo=1: foo is no key here; valid: name, description"),
        ("--setting foo=1", "no setting 'foo'; valid: "),
        ("--setting selection=best", "no path selection 'best'; valid: mrc, "),
        ("--plan nope", "no plan 'nope': shipped are"),
        ("--set fabric.planes=1", "h0"),  # smoke takes h0.p1 down
        *(
            (f"--set {text}", f"--set {text}: {EMBEDDED}")
            for text in ("switches.p0s1=linux", "switch=bmv2", "switch=linux")
        ),
        ("--fault 'link-down p9l0-p0s0 @1'", "p9l0"),
        ("--fault 'link-down p0l0-p0s0 @0.3 for 0.5'", "link-down p0l0-p0s0 is in force already"),  # the timeline's own
        ("--fault 'loss p0l0-p0s1 20 @50'", "phase 'faults' lasts 4.5 s"),
        ("--fault 'loss p0l0-p0s1 @1'", LOST),
        ("--program 'no-such-command -x'", "must name a command that there is (got 'no-such-command'"),
        ("""--program "true 'half" """, "must be words as a shell reads them"),
        ("--program ''", "must be a command"),
        ("--program '{server} true'", "{server} must come behind the command"),
        ("--program 'true {server}'", "in virtual time there is no TCP between hosts"),
        ("--program true --ranks h0", "--ranks must name two hosts or more"),
        ("--program true --ranks h0,h9", "h9"),
        ("--ranks h0,h1", "needs --program"),
        ("--processes 0", "--processes must be between 1 and 256 (got 0)"),
        ("--processes 257", "--processes must be between 1 and 256 (got 257)"),
        ("--plan tiny --processes 3", "plan tiny has 2 such groups: take 1 to 2"),
        ("--processes 2 --view", "--processes 2: not with --view"),
        ("--transport mrc,roce", "race with --world simulated --view"),
        ("--world emulated --view --transport mrc,roce", "race with --world simulated --view"),
        ("--view --transport mrc,mrc", "two different transports"),
        ("--view --transport mrc,roce,roce-8qp", "two different transports"),
        ("--view --transport mrc,tcp", "no transport 'tcp'"),
        ("--view --transport mrc,", "no transport ''"),
        ("--view --transport mrc,roce --setting selection=reps", "no setting 'sel"),
        ("--view --transport mrc,roce --format json", "a race has two"),
    ],
)
def test_a_run_that_cannot_be_is_refused_before_anything_is_written(words, said, tmp_path, refused) -> None:
    world = () if "--world" in words else SIMULATED
    assert said in refused("run", "smoke", *world, *shlex.split(words), "--runs", tmp_path / "runs")
    assert not list(tmp_path.iterdir())


def test_a_plan_that_is_too_small_for_the_scenario_is_refused(refused) -> None:
    assert "plan 'tiny' has too few" in refused("run", "incast", "--plan", "tiny", *SIMULATED)


def test_a_mixed_plan_in_virtual_time_is_said_to_be_all_embedded(tmp_path, capsys) -> None:
    plan = tmp_path / "mixed.toml"
    plan.write_text((PLANS_DIR / "tiny.toml").read_text() + '\n[switches]\np0s1 = "linux"\n')
    quick = ("run", "smoke", *SIMULATED, "--runs", str(tmp_path / "runs"), "--time", "0.2", "--seed", "1")
    cli.main([*quick, "--plan", str(plan)])
    said = capsys.readouterr().out
    assert "in virtual time every switch is an embedded one: so are p0s1 (linux) of plan tiny" in said
    options = json.loads((find(tmp_path / "runs", "latest") / "options.json").read_text())
    assert options["switch_kind"] == "embedded"


def test_a_setting_stands_in_the_header_of_summary_report_and_comparison(tmp_path, capsys) -> None:
    runs = ("--runs", str(tmp_path))
    quick = ("run", "smoke", *SIMULATED, *runs, "--seed", "3", "--time", "0.2")
    cli.main([*quick])
    cli.main([*quick, "--setting", "selection=oblivious"])
    header = "smoke · plan tiny · mrc · seed 3 · selection=oblivious · virtual time"
    path = find(tmp_path, "latest")
    assert header in (path / "summary.txt").read_text()
    assert header in (path / "report.html").read_text()
    assert cli.main(["compare", *runs]) == 0
    page = (path / "compare.html").read_text()
    assert header in page
    assert "smoke · plan tiny · mrc · seed 3 · virtual time" in page
    assert "mrc (selection=oblivious)" in capsys.readouterr().out


def test_every_title_is_a_claim_that_a_verdict_can_answer() -> None:
    # A claim has a verb in the present tense: "Training does not notice flapping links: true".
    verbs = re.compile(r"\b(does|do|is|are|works|finds|lives|outlives|cost|costs|notices?)\b")
    for scenario in library.scenarios():
        assert verbs.search(scenario.title), scenario.title


@pytest.mark.parametrize("words", ["up tiny", "down", "shell", "fault link-down p0l0-p0s0", "undo", "run smoke"])
def test_what_needs_root_asks_sudo_for_the_same_words_or_says_so(words: str, monkeypatch, refused) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(sys, "argv", ["mrclab", *words.split()])
    monkeypatch.setattr(shutil, "which", lambda name: None)
    told = refused(*words.split())
    assert "which needs root: run this as root (sudo is not installed)" in told
    assert "--world simulated does the same in virtual time" in told

    def execv(path: str, arguments: list[str]) -> None:
        raise OSError(" ".join(arguments))  # which does not return

    monkeypatch.setattr(shutil, "which", lambda name: f"/usr/bin/{name}")
    monkeypatch.setattr(os, "execv", execv)
    said = refused(*words.split())
    assert "asking for root with sudo" in said
    assert said.rstrip().endswith(f"-m cli {words}")


def test_up_refuses_a_rate_that_no_port_has(refused, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert "--rate must be between 0.01 and 8000000 Mb/s (got 0)" in refused("up", "tiny", "--rate", "0")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("x = 1\n", "a scenario file must hold SCENARIO"),
        ("x = (\n", "mine.py:1: SyntaxError"),
        ("\n\nfrom scenarios import nothing_here\n", "mine.py:3: ImportError"),
        ("import sys\nsys.exit(0)\n", "mine.py:2: SystemExit: 0"),
        ("raise SystemExit('bye')\n", "mine.py:1: SystemExit: bye"),
    ],
)
def test_a_file_that_is_no_scenario_is_refused_by_its_line(text: str, said: str, tmp_path, refused) -> None:
    file = tmp_path / "mine.py"
    file.write_text(text)
    assert said in refused("run", file, *SIMULATED)


def test_the_log_of_a_run_shows_the_same_clock_as_its_report(tmp_path, capsys) -> None:
    cli.main(["run", "smoke", "--world", "simulated", "--plain", "--seed", "1", "--runs", str(tmp_path)])
    log = capsys.readouterr().out
    run = Run.open(find(tmp_path, "latest"))
    told = dict(re.findall(r"^ *([\d.]+) s  ((?:link-down|port-down|switch-crash) \S+)$", log, re.MULTILINE))
    stamped = {what: float(at_s) for at_s, what in told.items()}
    assert stamped == {fault.title: pytest.approx(run.seconds(fault.start_ns), abs=0.01) for fault in run.faults}
    assert re.search(r"^ +simulating 8 switches", log, re.MULTILINE)  # before the first phase the clock shows nothing


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["p0l0-p0s0", "abc"], "loss: percent (share of packets lost) must be a number between 0 and 100 (got 'abc')"),
        (["p0l0", "p0s0", "much"], "(got 'much')"),
        (["p0l0", "p0s0"], LOST),
    ],
)
def test_a_number_that_is_none_or_missing_is_named(words: list[str], said: str) -> None:
    with pytest.raises(FaultError, match=re.escape(said)):
        make_fault(load_plan("tiny"), "loss", *parse_injection(words, "loss"))


@pytest.mark.parametrize(
    ("kind", "ranks", "said"),
    [
        ("write_bw", ["h0"], "write_bw must be given 2 hosts (got 1)"),
        ("write_bw", ["h0", "h1", "h2"], "write_bw must be given 2 hosts (got 3)"),
        ("all_reduce", ["h0"], "all_reduce must be given 2 to 4096 hosts (got 1)"),
        ("write_bw", ["h0", "h0"], "write_bw must be given each host once (got h0 h0)"),
    ],
)
def test_a_workload_says_how_many_hosts_it_must_be_given(kind: str, ranks: list[str], said: str) -> None:
    with pytest.raises(TrafficError, match=re.escape(said)):
        traffic.check(kind, ranks, {})


def test_a_drawing_is_never_svg_under_another_name(tmp_path: Path, refused) -> None:
    assert "`topo draw` writes .svg; `./lab graph` writes .png" in refused(
        "topo", "draw", "lab", "-o", str(tmp_path / "lab.png")
    )
    assert list(tmp_path.iterdir()) == []


def test_the_version_is_told_by_itself_and_guessed_as_a_word(capsys, refused) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(["--version"])
    assert ended.value.code == 0
    assert capsys.readouterr().out == f"mrclab {version('mrclab')}\n"
    assert "did you mean ./lab --version?" in refused("version")


ROOT = Path(__file__).parents[2]
SENTENCE = 16  # characters: shorter ones ("a host") may be said again
KEYWORDS = ("help", "description", "summary")
OTHERS = ("tests", "benchmarks", "docs", "mrclab", "endpoint", "switch")  # commands of their own, not of `./lab`


def sentences(path: Path) -> list[str]:
    """The constants that a file hands to argparse as help or description."""
    found = []
    text = path.read_text()
    for node in ast.walk(ast.parse(text if any(word in text for word in (*KEYWORDS, "CommandEntry")) else "")):
        if isinstance(node, ast.Call):
            if getattr(node.func, "id", "") == "CommandEntry" and isinstance(node.args[0], ast.Constant):
                found.append(str(node.args[0].value))
            for keyword in node.keywords:
                if keyword.arg in KEYWORDS and isinstance(keyword.value, ast.Constant):
                    found.append(str(keyword.value.value))
    return found


@pytest.mark.smoke
def test_no_sentence_of_the_help_stands_twice() -> None:
    places: dict[str, list[str]] = defaultdict(list)
    for path in files_of(ROOT):
        if path.suffix == ".py" and room_of(path.relative_to(ROOT)) not in OTHERS:
            for sentence in sentences(path):
                if len(sentence) >= SENTENCE:
                    places[sentence].append(str(path.relative_to(ROOT)))
    assert len(places) > 100
    assert {sentence: where for sentence, where in places.items() if len(where) > 1} == {}
