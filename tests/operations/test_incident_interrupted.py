"""An incident that is interrupted, or cannot be served: all that was built for it is taken down."""

import io
import json
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, ClassVar

import pytest

from operations.incident import client, server
from running.directory import RunDirectory
from running.view import keep, kept

KEEPER = """
import pathlib, signal, sys, time
def end(*_):
    time.sleep(0.3)  # as long as a lab takes to go down
    pathlib.Path({folder!r}, "down").touch()
    sys.exit(130)
signal.signal(signal.SIGTERM, {handler})
pathlib.Path({folder!r}, "building").touch()
time.sleep(60)
"""


@contextmanager
def interrupted_when(ready: Callable[[], bool]) -> Iterator[None]:
    """KeyboardInterrupt, as by Ctrl-C, as soon as something is so."""

    def look(_number: int, _frame: FrameType | None) -> None:
        if ready():
            signal.setitimer(signal.ITIMER_REAL, 0)
            raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, look)
    signal.setitimer(signal.ITIMER_REAL, 0.05, 0.05)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize(("handler", "down"), [("end", True), ("signal.SIG_IGN", False)])
def test_ctrl_c_while_an_incident_is_built_lets_its_process_end_the_lab(handler, down, tmp_path, monkeypatch) -> None:
    """One that does not end is killed: no command would find it."""
    code = KEEPER.format(folder=str(tmp_path), handler=handler)
    monkeypatch.setattr(kept, "python", lambda *_: [sys.executable, "-c", code])
    monkeypatch.setattr(kept, "END_S", 10.0 if down else 0.2)
    with pytest.raises(KeyboardInterrupt), interrupted_when((tmp_path / "building").exists):
        client.start(tmp_path, 5, 1)
    assert (tmp_path / "down").exists() is down


class Session:
    """A lab that is up: what a server must take down."""

    up: ClassVar[list[Any]] = []

    def __init__(self, _incident: object, directory: RunDirectory, **_: object) -> None:
        self.directory = directory
        self.up.append(self)

    def close(self) -> None:
        self.up.remove(self)


def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, session: Callable[..., object]) -> int:
    """The status of the process of an incident with this session, in this process."""
    asked = {"seed": 5, "level": 1, "folder": str(tmp_path), "world": "simulated"}
    monkeypatch.setattr(sys, "stdin", io.StringIO(json.dumps(asked) + "\n"))
    monkeypatch.setattr(server, "IncidentSession", session)
    before = signal.signal(signal.SIGTERM, lambda *_: None)  # the default would end the tests
    try:
        return keep(server.make_server)
    finally:
        signal.signal(signal.SIGTERM, before)


def test_a_process_that_is_told_to_end_while_it_builds_is_interrupted_and_not_killed(tmp_path, monkeypatch) -> None:
    undone = []

    def building(*_: object, **__: object) -> object:
        try:
            signal.raise_signal(signal.SIGTERM)
        except KeyboardInterrupt:
            undone.append("lab")
            raise
        raise AssertionError("SIGTERM did not interrupt")

    assert served(tmp_path, monkeypatch, building) == 130
    assert undone == ["lab"]


def test_a_lab_whose_server_cannot_listen_is_taken_down_and_the_starter_is_told(tmp_path, monkeypatch, capsys) -> None:
    (tmp_path / kept.SOCKET).mkdir()
    assert served(tmp_path, monkeypatch, Session) == 1
    assert Session.up == []
    assert capsys.readouterr().out.startswith("cannot listen on ")
