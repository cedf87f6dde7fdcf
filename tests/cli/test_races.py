"""The command of a race, up to where the page opens."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from cli.commands import race
from page import live
from running.directory import RunDirectory
from scenarios import library


class OpenedError(Exception):
    """The page was opened."""


def test_the_page_of_a_race_tells_in_plain_text(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spec = SimpleNamespace(options=dict, choices=SimpleNamespace(transport=SimpleNamespace(name="mrc")))
    runner = SimpleNamespace(spec=spec, seconds=lambda: None)
    directory = RunDirectory.create(tmp_path, "smoke", 1)

    def opened(runs: Any, tell: Callable[[str], None], **_: Any) -> None:
        tell("the server of [h0] and [/h1] said \x1b[2J")
        raise OpenedError

    monkeypatch.setattr(race, "prepared", lambda *_: None)
    monkeypatch.setattr(race, "racer", lambda *_: race.Racer(directory, cast(Any, runner)))
    monkeypatch.setattr(race, "check", lambda arguments: ["mrc"])
    monkeypatch.setattr(race, "want_compiled", lambda *_, **__: None)
    monkeypatch.setattr(live.Going, "of", lambda *_: None)
    monkeypatch.setattr(live, "RunView", opened)
    monkeypatch.setattr("cli.choosing.scenario_of", lambda arguments: library.find("smoke"))
    with pytest.raises(OpenedError):
        race.race_command(argparse.Namespace(seed=1, short=True, paused=False))
    assert "the server of [h0] and [/h1] said \N{REPLACEMENT CHARACTER}[2J" in capsys.readouterr().out
