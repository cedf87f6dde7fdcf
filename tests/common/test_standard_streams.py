"""Output whose reader has gone: a command with a verdict goes on, and no exit status becomes another verdict."""

import os
import re
import subprocess
from pathlib import Path

import pytest

from common.interpreter import python
from common.outcome import FALSE, NOT_DONE, TRUE, UNKNOWN, UNREAD
from tests.helpers.rooms import python_files

ROOT = Path(__file__).resolve().parents[2]
BUFFERED = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
LONG = "'x' * 100_000"
"""More than a pipe's buffer in the process holds, so that writing it fails at once."""


def unread(*command: str, errors_too: bool = False) -> subprocess.CompletedProcess[str]:
    """The command with a pipe as standard output that has no reader; with `errors_too` as standard error as well."""
    reading, writing = os.pipe()
    os.close(reading)
    try:
        errors = writing if errors_too else subprocess.PIPE
        return subprocess.run(
            command, cwd=ROOT, env=BUFFERED, stdout=writing, stderr=errors, text=True, check=False, timeout=120
        )
    finally:
        os.close(writing)


def carried_out(body: str, errors_too: bool = False) -> tuple[int, str | None]:
    """Status and standard error of a command with this body and such an output."""
    lines = [
        "import sys",
        "from common.outcome import carry_out",
        "def command():",
        *(f"  {x}" for x in body.split("\n")),
    ]
    done = unread(*python("-c", "\n".join([*lines, "sys.exit(carry_out('lab', command))"])), errors_too=errors_too)
    return done.returncode, done.stderr


@pytest.mark.parametrize("status", [TRUE, FALSE, UNKNOWN])
@pytest.mark.parametrize("text", ["'short'", LONG], ids=["short", "long"])
def test_a_verdict_that_no_reader_takes_is_still_the_status(status: int, text: str) -> None:
    lines = ["from common.terminal.standard_streams import write_out", f"write_out({text})", "write_out('end')"]
    written = "\n".join([*lines, f"return {status}"])
    assert carried_out(written) == (status, "")


def test_output_that_is_flushed_at_the_end_does_not_change_the_status() -> None:
    assert carried_out(f"sys.stdout.write('short')\nreturn {FALSE}") == (FALSE, "")


def test_a_command_that_its_reader_has_ended_does_not_report_true() -> None:
    assert carried_out(f"while True: sys.stdout.write({LONG})") == (UNREAD, "")


def test_an_error_whose_line_no_reader_takes_keeps_its_status() -> None:
    assert carried_out("raise ValueError('amiss')", errors_too=True)[0] == NOT_DONE


def test_a_console_goes_on_without_its_reader() -> None:
    body = "from common.terminal.console import LastingConsole\nconsole = LastingConsole()\n"
    body += f"for line in range(3): console.print(line)\nsys.stdout.write({LONG})\nreturn {UNKNOWN}"
    assert carried_out(body) == (UNKNOWN, "")


def test_no_part_of_the_lab_makes_a_console_that_ends_the_process() -> None:
    made = re.compile(r"\bConsole\(")
    found = [file for file in python_files() if made.search(file.read_text())]
    assert not found


@pytest.mark.parametrize("form", ["text", pytest.param("json", marks=pytest.mark.slow)])
def test_a_run_without_a_reader_is_whole_and_has_its_own_status(tmp_path: Path, form: str) -> None:
    """A run that is stopped early is unknown."""
    words = ("run", "smoke", "--world", "simulated", "--until", "1", "--seed", "1", "--format", form)
    done = unread(*python("-m", "cli", *words, "--runs", str(tmp_path)))
    assert (done.returncode, done.stderr) == (UNKNOWN, "")
    assert '"unknown"' in (tmp_path / "latest" / "verdict.json").read_text()
    assert (tmp_path / "latest" / "report.html").exists()


@pytest.mark.parametrize(
    "words",
    [
        ("list",),
        ("list", "--format", "json"),
        ("topo", "show", "lab"),
        ("--version",),
        ("trace", "--plan", "tiny", "h0", "h1"),
    ],
)
def test_a_command_whose_output_is_closed_says_so(words: tuple[str, ...]) -> None:
    command = ["sh", "-c", '"$@" >&-', "sh", *python("-m", "cli", *words)]
    done = subprocess.run(command, stderr=subprocess.PIPE, text=True, check=False)
    said = "mrclab: standard output must be open (it is closed): >/dev/null drops what is written there\n"
    assert (done.returncode, done.stderr) == (2, said)


def test_no_file_of_a_command_takes_the_number_of_a_closed_stream(tmp_path: Path) -> None:
    code = (
        "import sys, os; from common.outcome import carry_out\n"
        f"def command():\n with open({str(tmp_path / 'file')!r}, 'w') as file:\n"
        "  sys.stderr.write('to no one'); return file.fileno()\n"
        "sys.exit(carry_out('x', command))"
    )
    done = subprocess.run(["sh", "-c", '"$@" <&- 2>&-', "sh", *python("-c", code)], check=False)
    assert done.returncode > 2
    assert (tmp_path / "file").read_text() == ""
