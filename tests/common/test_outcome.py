"""How commands end: one line on stderr, and the status that the documentation gives."""

import ast
import os
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from common.interpreter import become
from common.outcome import FALSE, INTERRUPTED, NOT_DONE, at_the_end, carry_out, error_line
from common.plain_file import NotPlainError
from tests.helpers.rooms import python_files


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
def test_no_exception_ends_with_the_status_of_a_false_verdict(
    error: Exception, capsys: pytest.CaptureFixture[str]
) -> None:
    assert carry_out("mrclab", raising(error)) == NOT_DONE
    said = capsys.readouterr().err
    assert said.startswith("mrclab: ")
    assert said.count("\n") == 1
    assert "Traceback" not in said


def test_the_trace_back_is_there_for_who_asks(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MRCLAB_DEBUG", "1")
    assert carry_out("mrclab", raising(KeyError("source"))) == NOT_DONE
    assert "Traceback" in capsys.readouterr().err


def test_a_command_keeps_its_own_status_and_ctrl_c_has_its_own() -> None:
    assert carry_out("mrclab", lambda: FALSE) == FALSE
    assert carry_out("mrclab", raising(KeyboardInterrupt())) == INTERRUPTED


@pytest.mark.parametrize(("user", "given", "left"), [(0, 0o000, 0o022), (0, 0o077, 0o077), (1000, 0o002, 0o002)])
def test_what_root_makes_others_may_not_change(
    user: int, given: int, left: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
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
    for handler in (one for one in ast.walk(ast.parse(file.read_bytes())) if isinstance(one, ast.ExceptHandler)):
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
