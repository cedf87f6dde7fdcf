"""The one way into a run: every command takes it, and it is short."""

import argparse
import ast
import inspect
import re
import sys
from collections.abc import Callable
from itertools import groupby
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any

import pytest

import controller
from cli.commands.seeds.sweep import make_engine, register
from cli.main import main
from common.journal import Journal
from common.terminal.console import LastingConsole
from controller.provisioning import ProvisionError
from paper import catalogue
from paper import perform as figures
from running import estimate
from running.estimate import TooLargeError, runs_at_once
from running.runner import Runner, make_run, prepare
from studies.hunting.attempt import attempt
from studies.hunting.draw import draw
from tests.helpers.chosen import chosen
from tests.helpers.quick_sweep import quick_subjects, write_quick
from tests.helpers.rooms import python_files

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
def test_every_way_refuses_a_run_that_cannot_be(
    way: Callable[[Path], None],
    module: ModuleType,
    name: str,
    faked: Callable[..., object],
    word: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(module, name, faked)
    with pytest.raises((ValueError, ProvisionError)) as refused:
        way(tmp_path)
    assert word in str(refused.value) + capsys.readouterr().err
    assert not list(tmp_path.rglob("options.json"))


def test_a_hunt_is_ended_by_too_little_memory_and_does_not_take_it_for_a_finding(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
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


def test_from_the_command_line_to_the_first_event_is_at_most_ten_modules_each_entered_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
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


def test_from_the_command_line_to_the_first_event_of_link_flap_few_modules_are_entered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
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


def test_a_sweep_starts_no_more_runs_at_once_than_memory_holds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
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


def test_the_number_of_runs_at_once_leaves_a_tenth_of_memory_free() -> None:
    assert runs_at_once(100, 1000) == 9
    assert runs_at_once(100, 50) == 1


def test_a_prepared_run_says_what_it_takes(tmp_path: Path) -> None:
    spec = chosen([str(write_quick(tmp_path)), "--world", "simulated", "--seed", "1"])
    assert prepare(spec).needed == estimate.estimate(spec)
