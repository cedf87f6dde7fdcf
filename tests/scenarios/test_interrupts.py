"""Ctrl-C: one line and 130 whenever it comes, and nothing left half done."""

from __future__ import annotations

import importlib
import signal

import pytest

from scenarios import cli
from scenarios.commands.interrupts import held_back


def test_ctrl_c_while_a_command_is_still_being_imported_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(_name: str) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(importlib, "import_module", interrupted)
    assert cli.main(["list"]) == 130
    assert capsys.readouterr().err == "mrclab: interrupted\n"


def test_ctrl_c_that_is_held_back_comes_when_the_work_is_done_and_not_before() -> None:
    done = []
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt), held_back():  # noqa: PT012
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)
        done.append("all of it")
    assert done == ["all of it"]
    assert signal.getsignal(signal.SIGINT) is before


def test_nothing_is_raised_when_nobody_pressed_it_and_a_failure_goes_before_it() -> None:
    with held_back():
        pass
    with pytest.raises(ValueError, match="its own"), held_back():  # noqa: PT012
        signal.raise_signal(signal.SIGINT)
        raise ValueError("its own")
