"""Progress of sweeps and hunts: the words of users are shown as they are, also in pictures: no markup, no formula."""

import io
from dataclasses import replace
from typing import Any, cast
from xml.etree import ElementTree

import pytest
from rich.console import Console

from studies.contest.report import differences
from studies.contest.result import Match
from studies.hunting.attempt import AttemptPool
from studies.hunting.progress import HuntProgress
from studies.sweeping.metric import METRICS
from studies.sweeping.progress import SweepProgress
from studies.sweeping.report import ecdf
from studies.sweeping.row import Row
from studies.sweeping.statement import statement
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
    with SweepProgress(shown, cast(Sweep, OneVariant()), cast(Any, engine), clock=lambda: next(times)) as progress:
        progress.tell()
    assert "x] mrc a=[true,false]" in out.getvalue()


def test_runs_that_were_broken_off_are_named_at_the_end_and_count_as_none_made() -> None:
    sweep, error = OneVariant(), "OSError: /x: full\x1b[2J"
    sweep.broken = tuple((Variant("smoke"), Row("k", seed, "unknown", error=error)) for seed in range(12))
    shown, out = console(terminal=False)
    with SweepProgress(shown, cast(Sweep, sweep), cast(Any, type("Engine", (), {"died": 0}))) as progress:
        assert progress.pace().startswith("1 run made, 1 kept from before, 12 broken off")
    first, *rest = out.getvalue().splitlines()
    assert first == f"broken off: ./lab run smoke --transport mrc --seed 0: {error}".replace("\x1b", "\ufffd")
    assert (len(rest), rest[-1]) == (10, "and 2 more were broken off")


NAME = r"_x $\bad{$"


def rows(*values: float) -> list[Row]:
    return [Row(f"k{seed}", seed, "true", metrics={"p99_step": value}) for seed, value in enumerate(values)]


def drawn(name: str, *values: float) -> str:
    """The ECDF of one variant, whose title ends in the name of its setting."""
    picture = ecdf(METRICS["p99_step"], [statement(Variant(name, ""), "", rows(*values))])
    assert picture is not None
    return picture


def said(picture: str) -> list[str]:
    """The pieces of text in a picture."""
    return ["".join(one.itertext()).strip() for one in ElementTree.fromstring(picture).iter() if "text" in one.tag]


@pytest.mark.parametrize("name", [NAME, "a$b", "$x_1$", "_", "__all__"])
def test_a_name_in_a_legend_is_no_formula_and_is_not_left_out(name: str) -> None:
    assert any(name in text for text in said(drawn(name, 1.0, 2.0)))


def test_the_powers_of_ten_at_a_logarithmic_axis_stay_formulas() -> None:
    texts = said(drawn("smoke", 1.0, 1000.0))
    assert not [text for text in texts if "$" in text or "mathdefault" in text]
    assert "103" in ["".join(text.split()) for text in texts]  # 10 and its power


def test_the_algorithms_of_a_contest_are_no_formulas() -> None:
    algorithms = ("_first", NAME)
    found = [
        statement(Variant("smoke", name), "", rows(*(float(n + index) for n in range(6))))
        for index, name in enumerate(algorithms)
    ]
    picture = differences(Match("smoke", algorithms, "_first", found))
    assert picture is not None
    assert {"_first", NAME} <= set(said(picture))


def test_the_name_of_a_metric_is_escaped_in_the_text_alternative() -> None:
    metric = replace(METRICS["p99_step"], title='a" onload="b & <c>')
    picture = ecdf(metric, [statement(Variant("smoke"), "", rows(1.0, 2.0))])
    assert picture is not None
    assert ElementTree.fromstring(picture).get("aria-label") == 'Distribution of a" onload="b & <c>'


@pytest.mark.parametrize("option", ["--output", "--runs"])
def test_a_folder_that_cannot_keep_a_finding_is_refused_before_the_hunt(option, tmp_path, monkeypatch, refused) -> None:
    monkeypatch.setattr(AttemptPool, "outcomes", lambda *_: pytest.fail("a try was made"))
    file = tmp_path / "file"
    file.write_text("kept")
    for folder in (file, file / "below" / "it"):
        assert refused("hunt", "--tries", "1", "--plain", option, str(folder)).endswith(
            f"{option} must be a folder that can be written, or made (got {folder})\n"
        )
    assert file.read_text() == "kept"
