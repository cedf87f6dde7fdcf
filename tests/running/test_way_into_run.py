"""The one way into a run: every command takes it, it is short, and what is wrong is said before anything is built."""

import argparse
import ast
import inspect
import os
import re
import shutil
import sys
from itertools import groupby
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import controller
import controller.pipelines
from cli.commands.seeds.sweep import make_engine, register
from cli.main import main
from common.journal import Journal
from common.terminal.console import LastingConsole
from controller.provisioning import ProvisionError
from paper import catalogue, perform as figures
from running import estimate
from running.estimate import TooLargeError, runs_at_once
from running.runner import Runner, make_run, prepare
from studies.hunting.attempt import attempt
from studies.hunting.draw import draw
from tests.helpers.chosen import chosen
from tests.helpers.quick_sweep import quick_subjects, write_quick
from tests.helpers.tracked import python_files
from topo.emulation.lab import Lab

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/decisions/one-way-into-a-run.md"
MODULES_MAX = 10
ENTERED_MAX = 25
ROOMS = ("cli", "judging", "mrclab", "page", "paper", "running", "scenarios", "studies")


def by_run(folder: Path) -> None:
    status = main(["run", str(write_quick(folder)), "--world", "simulated", "--plain", "--runs", str(folder / "runs")])
    assert status == 2
    raise ValueError  # the command has printed the error


def by_race(folder: Path) -> None:
    words = ["--world", "simulated", "--view", "--transport", "mrc,roce", "--runs", str(folder / "runs")]
    assert main(["run", str(write_quick(folder)), *words]) == 2
    raise ValueError


def by_sweep(folder: Path) -> None:
    words = ["--seeds", "2", "--plain", "--runs", str(folder / "runs")]
    assert main(["sweep", str(write_quick(folder)), *words]) == 2
    raise ValueError


def by_worker_of_a_sweep(folder: Path) -> None:
    make_run(chosen([str(write_quick(folder)), "--world", "simulated"]), folder / "runs")


def by_figure(folder: Path) -> None:
    figure = catalogue.find("9a")
    part = figure.parts(True)[0]
    make_run(figures.spec(figure.name, part, True), folder / "runs")


WAYS = (by_run, by_race, by_sweep, by_worker_of_a_sweep, by_figure)
NO_TABLE = "p4/leaf.p4 lacks what the controller fills: no table route"


def lacking(plan: Any) -> None:
    raise ProvisionError(NO_TABLE)


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
@pytest.mark.parametrize(
    ("module", "name", "faked", "word"),
    [
        (estimate, "available_memory", lambda: 10**7, "of memory, and this machine has 10 MB to spare"),
        (controller, "check", lacking, NO_TABLE),
    ],
    ids=["memory", "table"],
)
def test_every_way_refuses_a_run_that_cannot_be(way, module, name, faked, word, tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.setattr(module, name, faked)
    with pytest.raises((ValueError, ProvisionError)) as refused:
        way(tmp_path)
    assert word in str(refused.value) + capsys.readouterr().err
    assert not list(tmp_path.rglob("options.json"))


def test_a_hunt_is_ended_by_too_little_memory_and_does_not_take_it_for_a_finding(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(estimate, "available_memory", lambda: 10**7)
    with pytest.raises(TooLargeError, match="this machine has 10 MB to spare"):
        attempt(draw(1), tmp_path)


def makers(source: str) -> list[int]:
    """The lines of a module that make a runner."""
    tree = ast.parse(source if "Runner" in source else "")
    calls = [one for one in ast.walk(tree) if isinstance(one, ast.Call)]
    return [one.lineno for one in calls if isinstance(one.func, ast.Name) and one.func.id == "Runner"]


def test_only_the_preparation_makes_a_runner() -> None:
    found = {path.relative_to(ROOT).as_posix() for path in python_files() if makers(path.read_text())}
    assert found == {"running/runner.py"}
    assert makers("runner = Runner(spec, directory, tell)") == [1]


def test_from_command_line_to_first_event_is_at_most_ten_modules_each_entered_once(tmp_path, monkeypatch) -> None:
    """The rooms' modules on the stack when the first phase is journalled, `common` left out; one runner is made."""
    way: list[str] = []
    runners: list[Runner] = []
    write, make = Journal.write, Runner.__init__

    def watched(journal: Journal, kind: str, **fields: Any) -> None:
        if kind == "phase" and not way:
            frame = sys._getframe(1)
            while frame is not None:
                file = Path(frame.f_code.co_filename)
                if file.is_relative_to(ROOT) and file.relative_to(ROOT).parts[0] in ROOMS:
                    way.insert(0, file.relative_to(ROOT).as_posix())
                frame = frame.f_back  # type: ignore[assignment]
        write(journal, kind, **fields)

    def counted(runner: Runner, *arguments: Any) -> None:
        runners.append(runner)
        make(runner, *arguments)

    monkeypatch.setattr(Journal, "write", watched)
    monkeypatch.setattr(Runner, "__init__", counted)
    words = ["run", str(write_quick(tmp_path)), "--world", "simulated", "--plain", "--runs", str(tmp_path / "runs")]
    main([*words, "--seed", "1"])
    modules = [module for module, _ in groupby(way)]
    assert modules[0] == "cli/main.py"
    assert modules[-1] == "running/runner.py"
    assert len(modules) <= MODULES_MAX, modules
    assert len(set(modules)) == len(modules), modules
    assert len(runners) == 1
    rows = re.findall(r"^\|[^|]*\|[^|]*\| `(\S+)` \|$", PAGE.read_text(), re.MULTILINE)
    assert modules == rows, f"{PAGE.name} has another list"


@pytest.mark.smoke
def test_from_the_command_line_to_the_first_event_of_link_flap_few_modules_are_entered(tmp_path, monkeypatch) -> None:
    """Functions of the rooms' modules that are called, those that an import calls left out."""
    entered: dict[str, str] = {}
    own, write = sys._getframe(), Journal.write

    def watched(journal: Journal, kind: str, **fields: Any) -> None:
        if kind == "phase":
            sys.setprofile(None)
        write(journal, kind, **fields)

    def entering(frame: FrameType, event: str, argument: object) -> None:
        module = frame.f_code.co_filename.removeprefix(f"{ROOT}/")
        if event != "call" or module in entered or module.partition("/")[0] not in ROOMS:
            return
        caller: FrameType | None = frame
        while caller is not None and caller is not own:
            if not caller.f_code.co_flags & inspect.CO_OPTIMIZED:  # the body of a class or a module
                return
            caller = caller.f_back
        entered[module] = frame.f_code.co_name

    monkeypatch.setattr(Journal, "write", watched)
    words = ["run", "link-flap", "--world", "simulated", "--until", "0.001", "--plain", "--seed", "7"]
    sys.setprofile(entering)
    try:
        main([*words, "--runs", str(tmp_path)])
    finally:
        sys.setprofile(None)
    assert {"cli/main.py", "running/runner.py"} <= entered.keys()
    assert len(entered) <= ENTERED_MAX, entered
    assert f"| modules entered up to the first event | 26 | {len(entered)} |" in PAGE.read_text()


def test_a_sweep_starts_no_more_runs_at_once_than_memory_holds(tmp_path, monkeypatch, capsys) -> None:
    subjects = quick_subjects(write_quick(tmp_path))
    needed = max(one.memory_bytes for one in subjects)
    parser = argparse.ArgumentParser()
    register(parser.add_subparsers())
    arguments = parser.parse_args(["sweep", "quick.py", "--workers", "8"])
    for available, workers in ((20 * needed, 8), (3.4 * needed, 3), (1.2 * needed, 1)):
        monkeypatch.setattr(estimate, "available_memory", lambda available=available: int(available))
        assert make_engine(arguments, tmp_path, subjects, LastingConsole(width=200)).workers == workers
    said = capsys.readouterr().out
    assert "3 runs at once instead of 8: each takes about" in said
    assert "8 runs at once" not in said


def test_a_prepared_run_says_what_it_takes_and_runs_at_once_leave_a_tenth_of_memory_free(tmp_path: Path) -> None:
    assert runs_at_once(100, 1000) == 9
    assert runs_at_once(100, 50) == 1
    spec = chosen([str(write_quick(tmp_path)), "--world", "simulated", "--seed", "1"])
    assert prepare(spec).needed == estimate.estimate(spec)


PROGRAMS = Path(controller.pipelines.PROGRAMS)
WORDS = [("run", "smoke", "--world", "simulated", "--plain"), ("trace", "h0", "h3", "--plan", "tiny"), ("up", "tiny")]


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of p4/ that the commands use instead; nothing may come to building a lab."""
    folder = tmp_path / "p4"
    shutil.copytree(PROGRAMS, folder)
    monkeypatch.setattr(controller.pipelines, "PROGRAMS", folder)
    monkeypatch.setattr(os, "geteuid", lambda: 0)

    def up(*_: object, **__: object) -> None:
        raise AssertionError("a lab was built")

    monkeypatch.setattr(Lab, "up", up)
    monkeypatch.chdir(tmp_path)
    return folder


def edit(folder: Path, old: str, new: str) -> None:
    """Replace a text in every file of a P4 program; at least one must hold it."""
    found = [path for path in folder.rglob("*.p4") if old in path.read_text()]
    assert found
    for path in found:
        path.write_text(path.read_text().replace(old, new))


@pytest.mark.parametrize("words", WORDS, ids=lambda words: words[0])
@pytest.mark.parametrize(
    ("old", "new", "shown", "lines"),
    [
        ("hdr.ipv6.hop_limit - 1", "hdr.ipv6.hop_limt - 1", ("error[", "hop_limt", "^"), 99),  # a typo, where it is
        ("my_sid", "my_own_sid", ("my_sid", "my_own_sid"), 3),  # no table for the controller; the valid names
    ],
)
def test_what_is_wrong_in_a_p4_program_is_shown(words, old, new, shown, lines, programs: Path, refused) -> None:
    edit(programs, old, new)
    said = refused(*words)
    assert [word for word in (*shown, "Traceback") if word not in said] == ["Traceback"]
    assert len(said.splitlines()) <= lines
    assert not (programs.parent / "runs").exists()


SCENARIO = """
from judging import checks
from scenarios.scenario import Scenario, TimedFault, Workload, phases

SCENARIO = Scenario(
    name="mine", title="Mine", description="", plan="tiny", phases=phases(),
    workloads=lambda setting: [Workload("all_reduce", {"rounds": 0})],
    timeline=lambda setting: TIMELINE,
    checks=lambda setting: CHECKS,
)
"""


@pytest.mark.parametrize(
    ("timeline", "judged", "said"),
    [
        ("[]", "[checks.goodput_keep(0.1)]", "AttributeError: module 'judging.checks' has no attribute"),
        ("[TimedFault()]", "[]", "TypeError: TimedFault.__init__() missing"),
        ("[][1]", "[]", "IndexError: list index out of range"),
    ],
)
def test_what_breaks_in_a_scenario_of_ones_own_is_said_with_its_line(timeline, judged, said, tmp_path, refused) -> None:
    file = tmp_path / "mine.py"
    file.write_text(SCENARIO.replace("TIMELINE", timeline).replace("CHECKS", judged))
    runs = tmp_path / "runs"
    printed = refused("run", str(file), "--world", "simulated", "--plain", "--runs", str(runs))
    assert f"mine.py:{8 if timeline != '[]' else 9}: {said}" in printed
    assert not runs.exists()
