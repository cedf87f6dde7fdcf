"""Progress of sweeps and hunts: the words of users are shown as they are, and square brackets are no markup."""

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
        progress.happened("try 1: [/x]")
        progress.happened(WORDS)
    assert WORDS in out.getvalue()


class OneVariant:
    """As much of a sweep as its progress reads."""

    made = found = 1
    broken: tuple[Any, ...] = ()
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


def test_runs_that_were_broken_off_are_named_at_the_end_and_count_as_none_made() -> None:
    sweep, error = OneVariant(), "OSError: /x: full\x1b[2J"
    sweep.broken = tuple((Variant("smoke"), Row("k", seed, "unknown", error=error)) for seed in range(12))
    shown, out = console(terminal=False)
    with SweepProgress(shown, cast(Sweep, sweep), cast(Any, type("Engine", (), {"died": 0}))) as progress:
        assert progress.pace().startswith("1 runs made, 1 kept from before, 12 broken off")
    first, *rest = out.getvalue().splitlines()
    assert first == f"broken off: ./lab run smoke --transport mrc --seed 0: {error}".replace("\x1b", "\ufffd")
    assert (len(rest), rest[-1]) == (10, "and 2 more were broken off")
