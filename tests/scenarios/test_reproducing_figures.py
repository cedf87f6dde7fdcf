"""Figures in their short form: one in every run of the tests, all of them where slow tests run."""

from __future__ import annotations

from pathlib import Path

import pytest

from scenarios import cli
from scenarios.reproducing import catalogue
from scenarios.reproducing.outcome import NOT_RUN
from scenarios.reproducing.reproduction import Reproduction
from scenarios.sweeping.store import Store


def reproduced(name: str, runs: Path) -> Reproduction:
    """The figure made by the command, in this process's children, and read back from what was kept."""
    assert cli.main(["reproduce", name, "--short", "--plain", "--runs", str(runs)]) == 0
    with Store(runs / "reproduction-short") as store:
        return Reproduction([catalogue.find(name)], store, short=True)


def test_the_latency_table_calibrates_to_the_papers_two_numbers(tmp_path: Path) -> None:
    kept = reproduced("5.2.1", tmp_path)
    assert kept.missing == []
    (outcome,) = kept.outcomes()
    ours = {one.quantity.name: one.difference for one in outcome.comparisons}
    for name in ("2 bytes, one leaf", "2 bytes, across a spine"):
        assert ours[name] == pytest.approx(0.0, abs=0.003)
    text = (tmp_path / "reproduction-short" / "reproduction.html").read_text()
    assert "2 bytes, across a spine" in text


@pytest.mark.slow
@pytest.mark.parametrize("name", catalogue.MODULES)
def test_every_figure_has_a_short_form_that_runs(name: str, tmp_path: Path) -> None:
    (outcome,) = reproduced(name, tmp_path).outcomes()
    assert outcome.whole
    assert NOT_RUN not in [one.verdict for one in outcome.comparisons]
    assert None not in [outcome.number(one.measured) for one in outcome.figure.experiments]
    for chart in outcome.figure.charts:
        assert all(outcome.curve(curve) for curve in chart.ours)
