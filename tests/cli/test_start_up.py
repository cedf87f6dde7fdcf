"""What a word costs before it does anything: only what it needs is imported."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from cli import huge_pages, main as cli
from cli.command_table import commands
from cli.main import in_virtual_time

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


def heavy_modules(*lines: str) -> list[str]:
    """For each command line the heavy modules that it imports. One process carries out all: most import none."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, json.dumps([HEAVY, *(line.split() for line in lines)])],
        capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip
    return [line.removeprefix("heavy: ") for line in done.stdout.splitlines() if line.startswith("heavy:")]


def test_words_that_need_no_heavy_module_import_none() -> None:
    lines = [
        "--help", "", "list", "list --format json", "status", "paths h0 h5 --plan lab", "topo show paper",
        "topo draw lab", "doctor --help", "down --help", *(f"{word} --help" for word in commands()),
    ]  # fmt: skip
    assert heavy_modules(*lines) == [f"{line} imports".lstrip() for line in lines]


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
