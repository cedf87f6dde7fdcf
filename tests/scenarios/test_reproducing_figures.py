"""Figures in their short form, all in one command; and the whole, which docs/reproduction.md must be."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from scenarios import cli
from scenarios.reproducing import catalogue
from scenarios.reproducing.outcome import NOT_RUN
from scenarios.reproducing.reproduction import Reproduction
from scenarios.sweeping.store import Store

ROOT = Path(__file__).parents[2]


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
    return re.sub(r" \| [\d,]+ \|$", " |", page, flags=re.MULTILINE)


@pytest.mark.slow
def test_the_page_in_docs_is_what_the_command_makes() -> None:
    """More than half an hour on two processors, where nothing of it was kept in runs/."""
    made = ROOT / "runs" / "reproduction" / "reproduction.md"
    assert cli.main(["reproduce", "--plain", "--runs", str(ROOT / "runs")]) == 0
    assert timeless(made.read_text()) == timeless((ROOT / "docs" / "reproduction.md").read_text())
