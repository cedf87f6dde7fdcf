"""The command of a race, up to where the page opens."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cli.commands.run import run_command
from cli.main import parser
from page import live


class OpenedError(Exception):
    """The page was opened."""


def test_the_page_of_a_race_tells_in_plain_text(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def opened(runs: Any, tell: Callable[[str], None], **_: Any) -> None:
        assert [run.options["transport"] for run in runs] == ["mrc", "roce"]
        assert len({run.options["seed"] for run in runs}) == 1
        tell("the server of [h0] and [/h1] said \x1b[2J")
        raise OpenedError

    monkeypatch.setattr("cli.commands.run.want_compiled", lambda *_, **__: None)
    monkeypatch.setattr(live, "RunView", opened)
    words = ["run", "smoke", "--world", "simulated", "--view", "--transport", "mrc,roce", "--runs", str(tmp_path)]
    with pytest.raises(OpenedError):
        run_command(parser("run").parse_args(words))
    assert "the server of [h0] and [/h1] said \N{REPLACEMENT CHARACTER}[2J" in capsys.readouterr().out
