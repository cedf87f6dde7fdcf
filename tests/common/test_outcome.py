"""How commands end: one line on stderr and the documented status, also by Ctrl-C and when the reader has gone."""

import ast
import importlib
import os
import re
import signal
import sqlite3
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from cli import main as cli
from common.interpreter import become, python
from common.interrupts import all_alike, ending, held_back
from common.outcome import FALSE, INTERRUPTED, NOT_DONE, TRUE, UNKNOWN, UNREAD, at_the_end, carry_out, error_line
from common.plain_file import NotPlainError
from tests.helpers.tracked import python_files


def raising(error: BaseException) -> Callable[[], int]:
    def command() -> int:
        raise error

    return command


@pytest.mark.parametrize(
    "error",
    [
        KeyError("source"), TypeError("no"), AttributeError("x"), OverflowError("port"), AssertionError(),
        sqlite3.DatabaseError("malformed"), BrokenPipeError(32, "Broken pipe"),
        RecursionError("too deep"), OSError(28, "No space left", "a/b"),
    ],
    ids=lambda error: type(error).__name__,
)  # fmt: skip
def test_no_exception_ends_with_the_status_of_a_false_verdict(error: Exception, capsys) -> None:
    assert carry_out("mrclab", raising(error)) == NOT_DONE
    said = capsys.readouterr().err
    assert said.startswith("mrclab: ")
    assert said.count("\n") == 1
    assert "Traceback" not in said


def test_the_trace_back_is_there_for_who_asks(monkeypatch, capsys) -> None:
    monkeypatch.setenv("MRCLAB_DEBUG", "1")
    assert carry_out("mrclab", raising(KeyError("source"))) == NOT_DONE
    assert "Traceback" in capsys.readouterr().err


def test_a_command_keeps_its_own_status_and_ctrl_c_has_its_own() -> None:
    assert carry_out("mrclab", lambda: FALSE) == FALSE
    assert carry_out("mrclab", raising(KeyboardInterrupt())) == INTERRUPTED


@pytest.mark.parametrize(("user", "given", "left"), [(0, 0o000, 0o022), (0, 0o077, 0o077), (1000, 0o002, 0o002)])
def test_what_root_makes_others_may_not_change(user, given, left, monkeypatch, tmp_path) -> None:
    def command() -> int:
        (tmp_path / "made").mkdir()
        return 0

    monkeypatch.setattr(os, "geteuid", lambda: user)
    before = os.umask(given)
    try:
        assert carry_out("mrclab", command) == 0
    finally:
        os.umask(before)
    assert (tmp_path / "made").stat().st_mode & 0o777 == 0o777 & ~left


def test_an_unexpected_exception_names_its_kind_and_its_place() -> None:
    try:
        dict[str, int]()["source"]
    except KeyError as error:
        said = error_line(error)
    assert "KeyError: 'source' at test_outcome.py:" in said


def test_a_terminal_does_not_obey_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    """It may quote what a program has printed, on several lines."""

    def fails() -> int:
        raise RuntimeError("the agent ended:\n\x1b[2Jgone\r")

    assert carry_out("mrclab", fails) == NOT_DONE
    assert (
        capsys.readouterr().err
        == "mrclab: the agent ended:\n  \N{REPLACEMENT CHARACTER}[2Jgone\N{REPLACEMENT CHARACTER}\n"
    )


def test_what_fails_at_the_end_does_not_take_the_place_of_the_reason(capsys: pytest.CaptureFixture[str]) -> None:
    def judge() -> None:
        raise FileNotFoundError(2, os.strerror(2), "options.json")

    def full() -> int:
        with at_the_end(judge):
            raise OSError(28, os.strerror(28), "h0.jsonl")

    assert carry_out("mrclab", full) == NOT_DONE
    first, second = capsys.readouterr().err.splitlines()
    assert first == "mrclab: h0.jsonl: no space left on device"
    assert second == "  and then: options.json: no such file or directory"
    with pytest.raises(FileNotFoundError), at_the_end(judge):
        pass


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (OSError(28, os.strerror(28), "run\n\x1b[2Jx/a"), "run\ufffd\ufffd[2Jx/a: no space left on device"),
        (OSError(40, os.strerror(40)), "too many levels of symbolic links"),
        (OSError(1, "belongs to Anna", "/run/a"), "/run/a: belongs to Anna"),
        (NotPlainError("a", "must be a regular file"), "a must be a regular file"),
    ],
)  # fmt: skip
def test_an_error_of_the_system_is_told_in_words_without_its_number(error: OSError, said: str) -> None:
    assert error_line(error) == said


def raw_errors(file: Path) -> Iterator[int]:
    """Lines that put an error of the system into a text as it is: `[Errno 28] …`."""
    source = file.read_bytes()
    nodes = ast.walk(ast.parse(source if b"OSError" in source else b""))
    for handler in (one for one in nodes if isinstance(one, ast.ExceptHandler)):
        caught = {one.id for one in ast.walk(handler.type or ast.Pass()) if isinstance(one, ast.Name)}
        for one in ast.walk(handler) if "OSError" in caught else ():
            text = one.value if isinstance(one, ast.FormattedValue) else None
            if isinstance(one, ast.Call) and ast.unparse(one.func) == "str" and one.args:
                text = one.args[0]
            if isinstance(text, ast.Name) and text.id == handler.name:
                yield text.lineno


def test_no_part_of_the_lab_tells_an_error_of_the_system_with_its_number(tmp_path: Path) -> None:
    sample = tmp_path / "sample.py"
    sample.write_text('try: ...\nexcept (OSError, ValueError) as e:\n    f"{e}"\n    str(e)\n')
    assert sorted(raw_errors(sample)) == [3, 4], "the search finds nothing"
    found = [f"{file}:{line}" for file in python_files() for line in raw_errors(file) if "tests" not in file.parts]
    assert not found


def test_a_script_without_its_interpreter_is_told_as_that(tmp_path: Path) -> None:
    script = tmp_path / "train"
    script.write_text("#!/none/python9\n")
    script.chmod(0o755)
    with pytest.raises(FileNotFoundError, match=rf"^exec: {script} names an interpreter that is missing$"):
        become([str(script)])
    with pytest.raises(FileNotFoundError, match=r"^exec: there is no command 'nosuchthing' on PATH$"):
        become(["nosuchthing"])


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
        "import sys", "from common.outcome import carry_out", "def command():", *(f"  {x}" for x in body.split("\n")),
    ]  # fmt: skip
    done = unread(*python("-c", "\n".join([*lines, "sys.exit(carry_out('lab', command))"])), errors_too=errors_too)
    return done.returncode, done.stderr


@pytest.mark.parametrize("status", [TRUE, FALSE, UNKNOWN])
@pytest.mark.parametrize("text", ["'short'", LONG], ids=["short", "long"])
def test_a_verdict_that_no_reader_takes_is_still_the_status(status: int, text: str) -> None:
    lines = ["from common.terminal.standard_streams import write_out", f"write_out({text})", "write_out('end')"]
    assert carried_out("\n".join([*lines, f"return {status}"])) == (status, "")


def test_what_no_reader_takes_makes_no_status_another_and_none_true() -> None:
    assert carried_out(f"sys.stdout.write('short')\nreturn {FALSE}") == (FALSE, "")
    assert carried_out(f"while True: sys.stdout.write({LONG})") == (UNREAD, "")
    assert carried_out("raise ValueError('amiss')", errors_too=True)[0] == NOT_DONE
    body = "from common.terminal.console import LastingConsole\nconsole = LastingConsole()\n"
    body += f"for line in range(3): console.print(line)\nsys.stdout.write({LONG})\nreturn {UNKNOWN}"
    assert carried_out(body) == (UNKNOWN, "")


def test_no_part_of_the_lab_makes_a_console_that_ends_the_process() -> None:
    made = re.compile(r"\bConsole\(")
    assert not [file for file in python_files() if made.search(file.read_text())]


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


def test_ctrl_c_while_a_command_is_still_being_imported_is_one_line(monkeypatch, capsys) -> None:
    def interrupted(_name: str) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(importlib, "import_module", interrupted)
    assert cli.main(["list"]) == 130
    assert capsys.readouterr().err == "mrclab: interrupted\n"


ENDING = [signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT]


@pytest.fixture(params=[signal.SIGINT, *ENDING])
def number(request: pytest.FixtureRequest) -> Iterator[signal.Signals]:
    """A signal that raises KeyboardInterrupt here, whatever whoever started this process has made of it."""
    before = signal.signal(request.param, signal.default_int_handler)
    yield request.param
    signal.signal(request.param, before)


def test_what_is_held_back_comes_when_the_work_is_done_and_not_before(number: signal.Signals) -> None:
    done = []
    with pytest.raises(KeyboardInterrupt), held_back():  # noqa: PT012
        signal.raise_signal(number)
        signal.raise_signal(number)
        done.append("all of it")
    assert done == ["all of it"]
    assert signal.getsignal(number) is signal.default_int_handler


def test_in_another_thread_nothing_is_held_back_and_nothing_breaks(number: signal.Signals) -> None:
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(lambda: held_back().__enter__()).result() is None
    assert signal.getsignal(number) is signal.default_int_handler


def test_nothing_is_raised_when_nobody_pressed_it_and_a_failure_goes_before_it(number: signal.Signals) -> None:
    with held_back():
        pass
    with pytest.raises(ValueError, match="its own"), held_back():  # noqa: PT012
        signal.raise_signal(number)
        raise ValueError("its own")


@pytest.mark.parametrize("second", ENDING)
@pytest.mark.parametrize("number", ENDING, indirect=True)
def test_a_second_signal_does_not_break_into_what_the_first_one_cleans_up(number: signal.Signals, second) -> None:
    """`timeout` sends two, and the end of a session SIGTERM and SIGHUP."""
    before = signal.signal(second, signal.default_int_handler)
    cleaned: list[bool] = []

    def command() -> None:
        with all_alike():
            try:
                signal.raise_signal(number)
            finally:
                signal.raise_signal(second)
                cleaned.append(True)

    try:
        with pytest.raises(KeyboardInterrupt):
            command()
    finally:
        signal.signal(second, before)
    assert cleaned


@pytest.mark.parametrize("number", ENDING, indirect=True)
def test_a_signal_that_was_ignored_at_the_start_stays_ignored(number: signal.Signals) -> None:
    """`nohup` ignores SIGHUP, and a shell SIGQUIT of what it runs in the background."""
    signal.signal(number, signal.SIG_IGN)
    with all_alike(), held_back():
        signal.raise_signal(number)
        assert number not in ending()
    assert signal.getsignal(number) is signal.SIG_IGN


@pytest.mark.slow
def test_a_view_that_is_ended_by_many_signals_leaves_no_folder() -> None:
    words = python("-m", "cli", "view", "tiny")
    with tempfile.TemporaryDirectory(prefix="s-") as made:  # tmp_path may be too long for a socket's path
        folder = Path(made)
        environment = {**os.environ, "TMPDIR": made, "PYTHONPATH": str(ROOT)}
        with subprocess.Popen(words, env=environment, cwd=folder, stdout=subprocess.PIPE, text=True) as view:
            assert view.stdout is not None
            assert "http://127.0.0.1:" in view.stdout.readline()
            assert list(folder.glob("mrclab-view-*"))
            while view.poll() is None:
                view.send_signal(signal.SIGTERM)
        assert view.returncode in (130, -signal.SIGTERM)  # a signal may come between the clean-up and the end
        assert not list(folder.glob("mrclab-view-*"))
