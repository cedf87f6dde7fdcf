"""Figures: the first short runs of each always; all short runs, and every recorded figure, in slow tests."""

import json
import os
import re
from functools import cache
from pathlib import Path

import pytest

from cli import main as cli
from paper import catalogue, kept_runs, perform
from paper.figure import Figure
from paper.outcome import NOT_RUN
from paper.report import page as report, table
from paper.reproduction import Reproduction
from studies.sweeping.sweep import RowStore
from tests.helpers.page_text import text_of

ROOT = Path(__file__).parents[2]
DIFFERS = "What differs, and why"
MODULES = tuple(catalogue.MODULES)
QUICK = ("9a", "10", "12", "15", "18", "19")  # the others are slow tests
FIRST = 2  # MRC and the baseline, where a figure has both
# Figures that no slice of the slow tests holds: their runs alone take longer than a slice may.
BY_HAND = dict.fromkeys(("16", "17", "18", "20", "21", "htsim"), "takes many minutes of one processor")


@cache
def page() -> str:
    """The page of the runs that come with the lab."""
    return text_of(report.html(kept_runs.outcomes(kept_runs.read(kept_runs.RECORDED), catalogue.figures())))


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
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in QUICK else pytest.mark.slow) for name in MODULES]
)
def test_the_first_runs_of_every_figure_measure_what_is_compared(name: str, tmp_path: Path) -> None:
    figure = catalogue.find(name)
    compared = [part for part in figure.parts(True) if any(wanted(figure, part.name))]
    for part in compared[:FIRST]:
        row = perform.perform(str(tmp_path), perform.task(figure, part, True))
        assert {type(value) for value in row.metrics.values()} <= {int, float}
        assert (row.verdict, row.error) == (perform.MADE, "")
        numbers, curves = wanted(figure, part.name)
        assert numbers <= set(row.metrics)
        assert row.metrics.get("busbw", 1.0) > 0.0, "a rank did not finish, or something arrived elsewhere"
        assert all(row.curves[curve] for curve in curves)


def test_every_figure_has_a_short_form_that_runs(tmp_path: Path) -> None:
    """The latency table calibrates to the paper's two numbers in the short form, too."""
    assert cli.main(["reproduce", "--short", "--plain", "--runs", str(tmp_path)]) == 0
    with RowStore(tmp_path / "reproduction-short") as store:
        kept = Reproduction([catalogue.find(name) for name in MODULES], store, short=True)
        outcomes = kept.outcomes()
    assert kept.missing == []
    for outcome in outcomes:
        assert outcome.complete
        assert NOT_RUN not in [one.verdict for one in outcome.comparisons]
        assert None not in [outcome.number(one.measured) for one in outcome.figure.experiments]
        for chart in outcome.figure.charts:
            assert all(outcome.curve(curve) for curve in chart.ours)
    ours = {one.quantity.name: one.difference for outcome in outcomes for one in outcome.comparisons}
    for name in ("2 bytes, one leaf", "2 bytes, across a spine"):
        assert ours[name] == pytest.approx(0.0, abs=0.003)


def chapters(page: str) -> dict[str, str]:
    """The chapters of a page by their headings; what stands before the first one has none."""
    parts = re.split(r"^## (.*)\n", "## \n" + page, flags=re.MULTILINE)[1:]
    return dict(zip(parts[::2], parts[1::2], strict=True))


def row_of(found: dict[str, str], name: str) -> str:
    """A figure's row of the summary."""
    (row,) = [line for line in found["Summary"].splitlines() if line.startswith(f"| {name} |")]
    return row


def of_figure(page: str, name: str) -> list[str]:
    """A figure's row of the summary without the seconds that its runs took, its differences, and its chapter.

    A page on which nothing is more than 15 % off has no chapter of differences: so has that of most single figures.
    """
    found = chapters(page)
    row = row_of(found, name)
    differs = [one for one in found.get(DIFFERS, "").splitlines() if one.startswith(f"| {name} |")]
    (chapter,) = [title for title in found if title.startswith(f"{name}: ")]
    cells = row.strip("|").split("|")[: table.SUMMARY_HEAD.index("seconds")]
    return ["|".join(cells), *differs, chapter, found[chapter]]


NUMBER = re.compile(r"([+−]?\d[\d,]*(?:\.\d+)?)(%?)")
MOVES = 0.01
"""How far a fix of the transport may move a number, or a difference to the paper, before the page is made anew: that
takes hours. No word may change, and so no verdict."""


def moved(made: list[str], kept: list[str]) -> list[str]:
    """The lines whose words differ, or a number of which differs by more than MOVES."""
    lines = [("\n".join(texts)).splitlines() for texts in (made, kept)]
    if len(lines[0]) != len(lines[1]):
        return [f"{len(lines[0])} lines instead of {len(lines[1])}"]
    return [f"{one!r} instead of {two!r}" for one, two in zip(*lines, strict=True) if not _near(one, two)]


def _near(one: str, two: str) -> bool:
    if NUMBER.sub("", one) != NUMBER.sub("", two):
        return False
    for (first, percent), (second, _) in zip(NUMBER.findall(one), NUMBER.findall(two), strict=True):
        a, b = (float(text.replace(",", "").replace("−", "-")) for text in (first, second))
        if abs(a - b) > (100 * MOVES if percent else MOVES * max(abs(a), abs(b))):
            return False
    return True


def test_a_number_may_move_by_a_hundredth_and_no_word_may() -> None:
    kept = ["| RoCE, flow 1 | Gb/s | 1,392 | 322.5 | −17.8% | farther off |"]
    for word, other in (("322.5", "325.5"), ("−17.8%", "−17.1%"), ("1,392", "1,400")):
        assert moved([kept[0].replace(word, other)], kept) == []
    for word, other in (("322.5", "326.5"), ("−17.8%", "−16.7%"), ("farther off", "within 15 %"), ("flow 1", "flow 2")):
        assert len(moved([kept[0].replace(word, other)], kept)) == 1
    assert moved([*kept, "more"], kept) == ["2 lines instead of 1"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.by_hand(BY_HAND[name])] if name in BY_HAND else []) for name in MODULES],
)
def test_a_recorded_figure_is_what_the_command_makes(name: str, tmp_path: Path) -> None:
    if row_of(chapters(page()), name).endswith(("not run |", " runs |")):
        pytest.skip(f"the page says that figure {name} was not run, or not whole")
    assert cli.main(["reproduce", name, "--plain", "--workers", "1", "--runs", str(tmp_path)]) == 0
    made = text_of((tmp_path / "reproduction" / "reproduction.html").read_text())
    assert moved(of_figure(made, name), of_figure(page(), name)) == []


def test_the_page_sums_its_figures_up_and_has_the_parameters(tmp_path: Path) -> None:
    with RowStore(tmp_path) as store:
        unmade = chapters(text_of(report.html(Reproduction(catalogue.figures(), store).outcomes())))
    kept = chapters(page())
    assert {title for title in unmade if title in kept} == {*unmade} - {DIFFERS}
    assert kept["Parameters of the model"] == unmade["Parameters of the model"]
    rows = [line.strip("| ").split(" | ") for line in kept["Summary"].splitlines() if line.startswith("| ")][1:]
    *figures, whole = (row for row in rows if "not of the paper" not in row)
    for column in range(2, 11):
        assert sum(int(row[column]) for row in figures) == int(whole[column])
    content = json.loads((ROOT / "docs" / "reproduction" / "figures.json").read_text())
    assert content["judged"] == sum(row["counts"] for row in content["rows"]) == int(whole[7])
    assert content["within_15"] == int(whole[2]) + int(whole[3])
    assert content["compatible"] == int(whole[4])
    assert (content["within_5"], content["within_reading"]) == (int(whole[2]), int(whole[5]))
    assert [content[name] for name in ("calibrating", "without_power", "out_of_reach")] == list(map(int, whole[8:11]))
    assert whole[11] == f"{content['order_agree']} of {content['order_compared']}"
    assert content["order_compared"] == sum(one["agrees"] is not None for one in content["orders"])
