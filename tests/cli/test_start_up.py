"""Starting a command: what is imported, and when the endpoint is compiled first."""

import argparse
import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from cli import huge_pages, main as cli
from cli.command_table import commands, place
from cli.compiled_form import AGAIN, LONG_S, WORTH_S, StartAgainError, want_compiled
from cli.main import in_virtual_time, main
from common.compiled import build as building
from common.compiled.finder import SWITCH, Form
from endpoint import compiled

HEAVY = ("matplotlib", "numpy", "grpc", "google.protobuf", "p4", "p4runtime_sh", "mininet", "scapy")
# Carries out one command line after the other, and prints those of the heavy modules that each is the first to import.
PROGRAM = """
import json, sys
from contextlib import suppress
from cli import main as cli
heavy, *lines = json.loads(sys.argv[1])
for words in lines:
    with suppress(SystemExit):
        cli.main(words)
    found = [name for name in heavy if name in sys.modules]
    heavy = [name for name in heavy if name not in found]
    print("heavy:", *words, "imports", *found)
"""


OF_RUNS = ("running.options", "running.transport_choice", "judging.checks", "endpoint.mrc")


def heavy_modules(*lines: str, heavy: Sequence[str] = HEAVY) -> list[str]:
    """For each command line the heavy modules that it imports. One process carries out all: most import none."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, json.dumps([heavy, *(line.split() for line in lines)])],
        capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip
    return [line.removeprefix("heavy: ") for line in done.stdout.splitlines() if line.startswith("heavy:")]


def test_words_that_need_no_heavy_module_import_none() -> None:
    lines = [
        "--help", "", "list", "list --format json", "status", "paths h0 h5 --plan lab", "topo show paper",
        "topo draw lab", "course page 1", "doctor --help", "down --help", *(f"{word} --help" for word in commands()),
    ]  # fmt: skip
    assert heavy_modules(*lines) == [f"{line} imports".lstrip() for line in lines]


def test_a_look_at_a_lab_imports_nothing_that_describes_runs() -> None:
    """`counters` and `graph` took a third of their time for it."""
    lines = ["down --help", "counters --help", "capture --help", "graph --help", "exec --help"]
    assert heavy_modules(*lines, "counters", "capture h0-p0l0", heavy=OF_RUNS) == [
        f"{line} imports" for line in (*lines, "counters", "capture h0-p0l0")
    ]
    assert heavy_modules("run --help", heavy=OF_RUNS)[0] != "run --help imports", "the check sees them"


def test_the_check_sees_a_module_that_is_imported() -> None:
    assert "google.protobuf" in heavy_modules("controller show p0l0 --planned --plan tiny")[0]


def test_every_word_adds_itself_with_the_summary_that_the_help_shows() -> None:
    for word, known in commands().items():
        (subparsers,) = [action for action in cli.parser(word)._actions if action.dest == "command"]
        helps = {choice.dest: choice.help for choice in subparsers._choices_actions}  # type: ignore[attr-defined]
        assert helps[word] == known.summary


ENDING = """
import os
raise ValueError("tunables:" + os.environ.get("GLIBC_TUNABLES", "none"))
"""
VIRTUAL = ("run {file} --world simulated", "run {file} --world=simulated", "sweep {file} --seeds 1")


def started_with(tmp_path: Path, line: str, environment: Mapping[str, str]) -> str:
    """What the scenario of a command sees of the C library's tunables; `none` where there are none."""
    file = tmp_path / "ending.py"
    file.write_text(ENDING)
    clean = {name: value for name, value in os.environ.items() if name != "GLIBC_TUNABLES"}
    done = subprocess.run(
        [sys.executable, "-P", "-m", "cli", *line.format(file=file).split(), "--runs", str(tmp_path / "runs")],
        env={**clean, **environment}, capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert done.returncode == 2, done.stderr
    found = re.search(r"tunables:(\S*)", done.stderr)
    return found[1] if found else done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("line", VIRTUAL)
def test_virtual_time_starts_with_huge_pages_unless_its_user_knows_better(tmp_path: Path, line: str) -> None:
    assert started_with(tmp_path, line, {}) == "glibc.malloc.hugetlb=1"
    assert started_with(tmp_path, line, {"GLIBC_TUNABLES": "glibc.malloc.hugetlb=0"}) == "glibc.malloc.hugetlb=0"


def test_real_links_start_without_huge_pages(tmp_path: Path) -> None:
    assert started_with(tmp_path, "run {file}", {}) == "none"


@pytest.mark.parametrize(
    ("words", "virtual"),
    [
        ("hunt", True),
        ("reproduce 3", True),
        ("sweep smoke", True),
        ("contest", True),
        ("sweep smoke --world emulated", False),
        ("list", False),
    ],
)
def test_which_commands_run_in_virtual_time(words: str, virtual: bool) -> None:
    assert in_virtual_time(cli.parser(words.split()[0]).parse_args(words.split())) is virtual


@pytest.mark.parametrize(
    ("words", "there"),
    [
        ("run smoke --world simulated --seed 1", True),
        ("run smoke --world=simulated", True),
        ("--needs run smoke --world simulated", False),
        ("run smoke --world emulated", False),
        ("run smoke --world", False),
        ("", False),
    ],
)
def test_words_that_name_virtual_time_are_known_before_they_are_parsed(words: str, there: bool) -> None:
    assert huge_pages.named(words.split()) is there


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
