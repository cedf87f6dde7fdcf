"""Short forms: text, pages and JSON say first that no number counts, and nothing in them is judged."""

import json
from pathlib import Path

import pytest

from cli import main as cli
from paper import catalogue
from paper.outcome import JUDGED, NOT_RUN, POWERLESS, Outcome
from paper.perform import FigureTask
from paper.report import short, standing
from studies.sweeping.row import Row
from tests.helpers.page_text import text_of
from tests.helpers.quick_sweep import inline

FIRST = "This is the short form (--short): its runs last seconds and only show that everything works."
JUDGEMENTS = (*JUDGED, NOT_RUN, POWERLESS, "judged:", "calibrat", "agrees", "opposite", "order holds", "difference")


def begins(text: str) -> str:
    """The first lines, as one."""
    return " ".join(" ".join(text.splitlines()[:8]).split())


def made(task: FigureTask) -> Row:
    """A row with all numbers and curves that the figure asks for."""
    figure = catalogue.find(task.figure)
    named = [one.measured for one in figure.quantities if one.measured is not None]
    named += [one.measured for one in figure.experiments]
    named += [one.fails.measured for one in figure.quantities if one.fails is not None]
    numbers = {name.partition(":")[2]: 3.0 for name in named}
    curves = {name.partition(":")[2]: [[0, 1], [1, 2]] for chart in figure.charts for name in chart.ours}
    return Row(task.key, task.seed, "made", metrics=numbers, curves=curves)


@pytest.mark.parametrize("names", [["14"], []])
def test_the_short_form_of_figures_says_that_no_number_counts_and_judges_none(
    names: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("studies.farm.pool.Pool", lambda *_: inline(made))
    monkeypatch.setattr(catalogue, "MODULES", {"14": catalogue.MODULES["14"]})
    assert cli.main(["reproduce", *names, "--short", "--plain", "--runs", str(tmp_path)]) == 0
    told = "\n".join(line for line in capsys.readouterr().out.splitlines() if not line.startswith("["))
    made_there = tmp_path / "reproduction-short"
    html, content = ((made_there / f"reproduction.{kind}").read_text() for kind in ("html", "json"))
    assert begins(told).startswith(FIRST)
    assert FIRST in html.partition("<h2")[0]
    assert content.lstrip("{\n ").startswith('"short": true')
    for text in (told, content, html.partition("<body>")[2]):
        assert not [judgement for judgement in JUDGEMENTS if judgement in text]
    assert [row["ours"] for row in json.loads(content)["rows"]] == [3.0] * 4
    assert "| flow 1's share on EV-B | of its packets | 1 | 3 |" in text_of(html)
    assert "## Runs" in text_of(html)


def test_only_the_json_of_a_short_form_has_the_key_short() -> None:
    outcome = Outcome(catalogue.find("14"), {}, ["mrc"])
    assert "short" not in json.loads(standing.document([outcome]))
    assert next(iter(json.loads(short.document([outcome])))) == "short"


def test_a_figure_of_a_short_form_says_how_many_of_its_runs_were_made() -> None:
    figure = catalogue.find("14")
    broken = Row("k", 1, "made", error="disk full")
    outcomes = [Outcome(figure, {}, ["a", "b"]), Outcome(figure, {"a": broken}, ["a", "b"])]
    assert [row[2] for row in short.runs(outcomes)] == ["0 of 2", "1 of 2, broken off"]
    assert "disk full" in short.html(outcomes)
