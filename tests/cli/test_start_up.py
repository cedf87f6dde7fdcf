"""What a word costs before it does anything: only what it needs is imported."""

from __future__ import annotations

import subprocess
import sys

import pytest

from cli import main as cli
from cli.words import WORDS

HEAVY = ("matplotlib", "numpy", "grpc", "google.protobuf", "p4", "p4runtime_sh", "mininet", "scapy")
# Prints those of the heavy modules that were imported by the time that the command had done its work.
PROGRAM = """
import sys
from cli import main as cli
try:
    cli.main(sys.argv[2:])
except SystemExit:
    pass
print("heavy:", *(name for name in sys.argv[1].split(",") if name in sys.modules))
"""


def heavy_modules(*words: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, ",".join(HEAVY), *words],
        capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("heavy:")]
    return line.split()[1:]


@pytest.mark.parametrize(
    "words",
    [
        ("--help",),
        (),
        ("list",),
        ("list", "--format", "json"),
        ("status",),
        ("paths", "h0", "h5", "--plan", "lab"),
        ("topo", "show", "paper"),
        ("topo", "draw", "lab"),
        ("doctor", "--help"),
        ("down", "--help"),
        *((word, "--help") for word in WORDS if word != "controller"),
    ],
)
def test_words_that_need_no_heavy_module_import_none(words: tuple[str, ...]) -> None:
    assert heavy_modules(*words) == []


def test_the_check_sees_a_module_that_is_imported() -> None:
    assert "google.protobuf" in heavy_modules("controller", "show", "p0l0", "--planned", "--plan", "tiny")


def test_every_word_adds_itself_with_the_summary_that_the_help_shows() -> None:
    for word, known in WORDS.items():
        (subparsers,) = [action for action in cli.parser(word)._actions if action.dest == "command"]
        helps = {choice.dest: choice.help for choice in subparsers._choices_actions}  # type: ignore[attr-defined]
        assert helps[word] == known.summary
