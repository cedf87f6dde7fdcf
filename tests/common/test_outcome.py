"""How commands end: one line on stderr, and the status that the documentation gives."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable

import pytest

from common.outcome import FALSE, INTERRUPTED, NOT_DONE, carry_out, told


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


def test_an_unexpected_exception_names_its_kind_and_its_place() -> None:
    try:
        dict[str, int]()["source"]
    except KeyError as error:
        said = told(error)
    assert "KeyError: 'source' at test_outcome.py:" in said


def test_a_terminal_does_not_obey_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    """It may quote what a program has printed, on several lines."""

    def fails() -> int:
        raise RuntimeError("the agent ended:\n\x1b[2Jgone\r")

    assert carry_out("mrclab", fails) == NOT_DONE
    assert (
        capsys.readouterr().err
        == "mrclab: the agent ended:\n\N{REPLACEMENT CHARACTER}[2Jgone\N{REPLACEMENT CHARACTER}\n"
    )
