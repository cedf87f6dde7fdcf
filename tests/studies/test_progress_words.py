"""Progress of sweeps and hunts: the words of users are shown as they are, and square brackets are no markup."""

from __future__ import annotations

import io
from typing import Any, cast

import pytest
from rich.console import Console

from studies.hunting.progress import HuntProgress
from studies.sweeping.progress import SweepProgress
from studies.sweeping.row import Row
from studies.sweeping.sweep import Sweep
from studies.sweeping.variant import Variant

WORDS = "try 1 broke: [/x] [true,false]"


def console(*, terminal: bool) -> tuple[Console, io.StringIO]:
    out = io.StringIO()
    return Console(file=out, force_terminal=terminal, width=200, color_system=None), out


@pytest.mark.parametrize("terminal", [False, True])
def test_a_finding_with_brackets_does_not_end_a_hunt(terminal: bool) -> None:
    shown, out = console(terminal=terminal)
    with HuntProgress(shown) as progress:
        progress.tell("try 1: [/x]")
        progress.tell(WORDS)
    assert WORDS in out.getvalue()


class OneVariant:
    """As much of a sweep as its progress reads."""

    made = found = 1
    seeds = (1,)
    subjects = (type("Subject", (), {"variant": Variant("/tmp/[/x]", settings=(("a", "[true,false]"),))}),)

    def rows(self, index: int) -> list[Row]:
        return [Row("k", 1, "true")]

    def test(self, index: int) -> None:
        return None

    def over(self, index: int) -> bool:
        return False


@pytest.mark.parametrize("terminal", [False, True])
def test_a_title_with_brackets_does_not_end_a_sweep(terminal: bool) -> None:
    shown, out = console(terminal=terminal)
    times = iter(range(0, 10000, 100))
    engine = type("Engine", (), {"died": 0})
    with SweepProgress(
        shown, cast(Sweep, OneVariant()), cast(Any, engine), clock=lambda: float(next(times))
    ) as progress:
        progress.tell()
    assert "x] mrc a=[true,false]" in out.getvalue()
