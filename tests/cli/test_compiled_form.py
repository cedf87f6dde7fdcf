"""Long commands in virtual time have the endpoint compiled first; others say that they run interpreted, and why."""

import argparse
import os
import subprocess
import sys
from pathlib import Path

import pytest

from cli.command_table import place
from cli.compiled_form import AGAIN, LONG_S, WORTH_S, StartAgainError, want_compiled
from cli.main import main
from common.compiled import build as building
from common.compiled.finder import SWITCH, Form
from endpoint import compiled

WHOLE, WITHIN_ANOTHER = argparse.Namespace(whole=True), argparse.Namespace()
NONE, TCC = Form(False, "there is no build"), Form(True, "tcc", quick=True)


@pytest.fixture
def builds(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A process that has imported the sources; the units of which it makes builds."""
    made: list[str] = []
    monkeypatch.setattr(compiled, "FORM", NONE)
    monkeypatch.setattr(building, "build", lambda unit, tell, quick: made.append(f"{unit.name} {quick}"))
    monkeypatch.delenv(SWITCH, raising=False)
    monkeypatch.delenv(AGAIN, raising=False)
    return made


@pytest.mark.parametrize(
    ("form", "seconds", "asked", "quick"),
    [(NONE, WORTH_S, None, True), (NONE, LONG_S, None, False), (NONE, LONG_S, True, True), (TCC, LONG_S, None, False)],
)
def test_a_long_command_compiles_the_endpoint_and_begins_anew(builds, monkeypatch, form, seconds, asked, quick) -> None:
    """The build that is made quickly is not enough for a very long command."""
    monkeypatch.setattr(compiled, "FORM", form)
    with pytest.raises(StartAgainError):
        want_compiled(WHOLE, seconds, quick=asked)
    assert builds == [f"endpoint {quick}"]


@pytest.mark.parametrize(
    ("form", "arguments", "seconds"),
    [(Form(True, "gcc"), WHOLE, 1e6), (TCC, WHOLE, LONG_S - 1), (TCC, WITHIN_ANOTHER, LONG_S)],
)
def test_a_compiled_process_goes_on_without_a_word(builds, monkeypatch, capsys, form: Form, arguments, seconds) -> None:
    monkeypatch.setattr(compiled, "FORM", form)
    want_compiled(arguments, seconds)
    assert (builds, capsys.readouterr().err) == ([], "")


@pytest.mark.parametrize(
    ("arguments", "environment", "seconds", "reason"),
    [
        (WHOLE, {SWITCH: "off"}, 1e6, "there is no build"),
        (WHOLE, {AGAIN: "1"}, 1e6, "there is no build"),
        (WHOLE, {}, WORTH_S - 1, "so short a command is not worth a build"),
        (WITHIN_ANOTHER, {}, 1e6, "a command within another makes none"),
    ],
)
def test_who_runs_interpreted_says_so_once_with_the_reason(
    builds, monkeypatch, capsys, arguments: argparse.Namespace, environment: dict[str, str], seconds: float, reason: str
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    want_compiled(arguments, seconds)
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("mrclab: the endpoint runs interpreted")
    assert reason in line
    assert builds == []
    assert AGAIN not in os.environ  # commands that this one starts begin anew


def test_a_short_run_says_nothing(builds: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    want_compiled(WHOLE, WORTH_S - 1, told=False)
    assert capsys.readouterr().err == ""


def test_a_missing_compiler_is_named_and_the_command_goes_on(builds: list[str], monkeypatch, capsys) -> None:
    def refuse(*_: object, quick: bool) -> None:
        raise building.ExtensionBuildError("there is no C compiler 'cc';\napt-get install gcc libc6-dev")

    monkeypatch.setattr(building, "build", refuse)
    want_compiled(WHOLE, 1e6)
    (line,) = capsys.readouterr().err.splitlines()
    assert "apt-get install gcc libc6-dev" in line


ASKED = {
    "run": (["run", "link-flap", "--world", "simulated"], WORTH_S),
    "sweep": (["sweep", "link-flap", "--seeds", "30"], 30 * WORTH_S),
    "contest": (["contest"], WORTH_S),
    "hunt": (["hunt", "--minutes", "2"], 120),
    "reproduce": (["reproduce", "9a"], WORTH_S),
}


@pytest.mark.parametrize("name", ASKED)
def test_every_command_of_long_runs_asks_before_it_makes_anything(name: str, tmp_path, monkeypatch) -> None:
    asked: list[float] = []

    def ask(arguments: argparse.Namespace, seconds: float, *, told: bool = True, quick: bool | None = None) -> None:
        asked.append(seconds)
        raise KeyboardInterrupt

    words, least_s = ASKED[name]
    monkeypatch.chdir(tmp_path)
    module = place("sweep" if name == "contest" else name)[0]  # both are made by one function
    monkeypatch.setattr(f"{module}.want_compiled", ask)
    assert main([*words, "--runs", str(tmp_path / "runs")]) == 130
    assert len(asked) == 1
    assert asked[0] >= least_s
    assert not list((tmp_path / "runs").glob("*/*/journal"))


def test_a_process_starts_its_own_words_again_and_only_once(tmp_path: Path) -> None:
    """A build that is made but does not load must not be made for ever."""
    program = tmp_path / "program.py"
    program.write_text(
        "import sys\n"
        "from cli import main\n"
        "from cli.commands import list as words\n"
        "from cli.compiled_form import want_compiled\n"
        "from common.compiled import build\n"
        "from common.compiled.finder import Form\n"
        "from endpoint import compiled\n"
        "compiled.FORM = Form(False, 'the build cannot be loaded')\n"
        "build.build = lambda unit, tell, quick: print('built', flush=True)\n"
        "words.list_command = lambda arguments: want_compiled(arguments, 99) or print('listed') or 0\n"
        "sys.exit(main.main())\n"
    )
    done = subprocess.run(
        [sys.executable, str(program), "list"],
        cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120,
        env={**os.environ, SWITCH: "auto", "PYTHONPATH": str(Path(__file__).parents[2])},
    )  # fmt: skip
    assert done.stdout.split() == ["built", "listed"]
    assert done.stderr.count("the endpoint runs interpreted") == 1
    assert "the build cannot be loaded" in done.stderr
