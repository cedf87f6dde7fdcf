"""Figures in their short form: the first runs of each always, all of them and the page in docs where slow tests run."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from cli import main as cli
from paper import catalogue, perform
from paper.figure import Figure
from paper.outcome import NOT_RUN
from paper.reproduction import Reproduction
from studies.sweeping.store import Store

ROOT = Path(__file__).parents[2]
FIRST = 2  # MRC and the baseline, where a figure has both


def wanted(figure: Figure, part: str) -> tuple[set[str], set[str]]:
    """The numbers and the curves of a part that the figure's quantities and charts name."""
    numbers = [one.measured for one in figure.quantities if one.measured is not None]
    numbers += [name for chart in figure.charts for points in chart.points.values() for _, name in points]
    curves = [name for chart in figure.charts for name in chart.ours]
    of_part = [{name.split(":")[1] for name in names if name.split(":")[0] == part} for names in (numbers, curves)]
    return of_part[0], of_part[1]


@pytest.mark.skipif(
    os.environ.get("MRCLAB_COMPILED") == "off",
    reason="takes three times as long interpreted; ./lab test has both forms",
)
@pytest.mark.parametrize("name", catalogue.MODULES)
def test_the_first_runs_of_every_figure_measure_what_is_compared(name: str, tmp_path: Path) -> None:
    figure = catalogue.find(name)
    compared = [part for part in figure.parts(True) if any(wanted(figure, part.name))]
    for part in compared[:FIRST]:
        row = perform.perform(perform.choose, str(tmp_path), perform.task(figure, part, True))
        assert (row.verdict, row.error) == (perform.MADE, "")
        numbers, curves = wanted(figure, part.name)
        assert numbers <= set(row.metrics)
        assert all(row.curves[curve] for curve in curves)


@pytest.mark.slow
def test_every_figure_has_a_short_form_that_runs(tmp_path: Path) -> None:
    """The latency table calibrates to the paper's two numbers in the short form, too."""
    assert cli.main(["reproduce", "--short", "--plain", "--runs", str(tmp_path)]) == 0
    with Store(tmp_path / "reproduction-short") as store:
        kept = Reproduction([catalogue.find(name) for name in catalogue.MODULES], store, short=True)
        outcomes = kept.outcomes()
    assert kept.missing == []
    for outcome in outcomes:
        assert outcome.whole
        assert NOT_RUN not in [one.verdict for one in outcome.comparisons]
        assert None not in [outcome.number(one.measured) for one in outcome.figure.experiments]
        for chart in outcome.figure.charts:
            assert all(outcome.curve(curve) for curve in chart.ours)
    ours = {one.quantity.name: one.difference for outcome in outcomes for one in outcome.comparisons}
    for name in ("2 bytes, one leaf", "2 bytes, across a spine"):
        assert ours[name] == pytest.approx(0.0, abs=0.003)
        assert name in (tmp_path / "reproduction-short" / "reproduction.html").read_text()


def timeless(page: str) -> str:
    """The page without the seconds that runs took, the last cell of the summary's rows."""
    before, heading, rest = page.partition("## Summary\n")
    summary, following, after = rest.partition("## What differs")
    return before + heading + re.sub(r" \| [\d,]+ \|$", " |", summary, flags=re.MULTILINE) + following + after


@pytest.mark.slow
def test_the_page_in_docs_is_what_the_command_makes() -> None:
    """More than half an hour on two processors, where nothing of it was kept in runs/."""
    made = ROOT / "runs" / "reproduction" / "reproduction.md"
    assert cli.main(["reproduce", "--plain", "--runs", str(ROOT / "runs")]) == 0
    assert timeless(made.read_text()) == timeless((ROOT / "docs" / "reproduction.md").read_text())
