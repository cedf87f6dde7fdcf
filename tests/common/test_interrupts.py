"""Ctrl-C: one line and 130 whenever it comes, and nothing left half done."""

import importlib
import os
import signal
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from cli import main as cli
from common.interpreter import python
from common.interrupts import all_alike, ending, held_back

ROOT = Path(__file__).parents[2]


def test_ctrl_c_while_a_command_is_still_being_imported_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
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
def test_a_second_signal_does_not_break_into_what_the_first_one_cleans_up(
    number: signal.Signals, second: signal.Signals
) -> None:
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
def test_a_view_that_is_ended_by_many_signals_leaves_no_folder(tmp_path: Path) -> None:
    environment = {**os.environ, "TMPDIR": str(tmp_path), "PYTHONPATH": str(ROOT)}
    words = python("-m", "cli", "view", "tiny")
    with subprocess.Popen(words, env=environment, cwd=tmp_path, stdout=subprocess.PIPE, text=True) as view:
        assert view.stdout is not None
        assert "http://127.0.0.1:" in view.stdout.readline()
        assert list(tmp_path.glob("mrclab-view-*"))
        while view.poll() is None:
            view.send_signal(signal.SIGTERM)
    assert view.returncode in (130, -signal.SIGTERM)  # a signal may come between the clean-up and the end
    assert not list(tmp_path.glob("mrclab-view-*"))
