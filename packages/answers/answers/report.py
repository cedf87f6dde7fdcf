"""The page of the contest, its tables for a terminal, and its lines for programs."""

from collections.abc import Sequence
from pathlib import Path

from answers.contest import HEAD, Results, cells
from answers.costs import HEAD as COST_HEAD
from answers.costs import cost_rows
from answers.measuring import MEASURES
from common import csv_text as csv
from common import files
from judging.reports import page
from judging.reports.report import REPLAY, columns
from studies.contest import Kept
from topo import Plan

CHOICE = ("fault_cost", "goodput_faults", "repaired")
"""The measures by which the page says which answer is for which failure."""
EXPLAINED = (
    "Every answer gets the same plan, load, faults and seeds. Intervals are of the mean, and of the difference seed by"
    " seed (Student's, 95 %). The ranks in brackets are those that the seeds leave possible; all ranks of one measure"
    " hold together with 95 % confidence. Predictions were written before any run (PREDICTIONS.md): expected, and the"
    " range. Costs of faults are relative to the answer's own quiet steps; goodput under faults is absolute."
)
CSV_HEAD = ["failure", "measure", "unit", "answer", "runs", "mean", "low", "high", "difference", "rank", "predicted"]


def choice_rows(results: Results) -> list[list[str]]:
    """Per failure the answers that no other beats clearly, by each measure, and runs that failed."""
    rows = []
    for failure in results.failures:
        wrong = [
            f"{answer.name} {count}" for answer in results.answers if (count := results.failed(failure, answer.name))
        ]
        best = [", ".join(results.best(failure, measure)) or "–" for measure in CHOICE]
        rows.append([failure, *best, ", ".join(wrong) or "none"])
    return rows


def choice_head() -> list[str]:
    """The head of `choice_rows`."""
    return ["failure", *(f"best by {MEASURES[measure].title}" for measure in CHOICE), "failed runs"]


def summary(results: Results, plan: Plan) -> str:
    """All tables for a terminal."""
    lines: list[str] = []
    for failure in results.failures:
        for name, measure in MEASURES.items():
            rows = [cells(line) for line in results.lines(failure, name)]
            if rows:
                lines += [f"{failure}: {measure.title} ({measure.unit})", *columns([HEAD, *rows]), ""]
    lines += ["which answer for which failure", *columns([choice_head(), *choice_rows(results)]), ""]
    return "\n".join([*lines, "costs", *columns([COST_HEAD, *cost_rows(results.answers, plan)])])


def write(folder: Path, results: Results, plan: Plan, kept: Kept) -> Path:
    """The page and `answers.csv`; the path of the page."""
    files.make_folder(folder)
    files.write(folder / "answers.csv", csv.csv_text(CSV_HEAD, list(csv_rows(results))))
    files.write(folder / "answers.html", html(folder, results, plan, kept))
    return folder / "answers.html"


def csv_rows(results: Results) -> list[list[str]]:
    """A line per failure, measure and answer."""
    rows = []
    for failure in results.failures:
        for name, measure in MEASURES.items():
            for line in results.lines(failure, name):
                bounds = [line.interval.low, line.interval.high] if line.interval else [None, None]
                numbers = [line.mean, *bounds, line.gap.mean if line.gap else None]
                texts = ["" if number is None else f"{number:.9g}" for number in numbers]
                told = "" if line.predicted is None else " ".join(f"{number:g}" for number in line.predicted)
                rows.append([failure, name, measure.unit, line.answer, str(line.runs), *texts, line.rank, told])
    return rows


def html(folder: Path, results: Results, plan: Plan, kept: Kept) -> str:
    """The page; links to kept runs are relative to `folder`."""
    names = ", ".join(answer.name for answer in results.answers)
    parts = [f"<h1>{page.text(f'Answers to failures: {names}')}</h1>", page.paragraph(EXPLAINED, soft=True)]
    parts.append(page.section("Which answer for which failure", page.table(choice_head(), choice_rows(results))))
    for failure in results.failures:
        tables: list[str | None] = []
        for name, measure in MEASURES.items():
            rows = [cells(line) for line in results.lines(failure, name)]
            if rows:
                tables += [page.paragraph(f"{measure.title} ({measure.unit})"), page.table(HEAD, rows)]
        parts.append(page.section(failure, *tables))
    parts.append(page.section("Demands of each answer", page.table(COST_HEAD, cost_rows(results.answers, plan))))
    parts.append(page.section("The worst seed of each", worst(folder, results, kept)))
    return page.page("Answers to failures", *parts)


def worst(folder: Path, results: Results, kept: Kept) -> str:
    """The run to look at first of each answer and failure, with its replay and the command that repeats it."""
    rows: list[Sequence[object]] = []
    for (failure, answer), statement in results.stated.items():
        for row in statement.worst()[:1]:
            run = kept(statement, row)
            paths = [run / name for name in (REPLAY, "report.html") if (run / name).exists()] if run else []
            links = "".join(
                f'<a href="{page.text(path.relative_to(folder).as_posix())}">{path.stem}</a> ' for path in paths
            )
            command = page.Raw(f"<code>{page.text(statement.variant.command(row.seed))}</code>")
            why = row.error or "; ".join(row.reasons.values())
            rows.append([failure, answer, f"seed {row.seed}", row.verdict, page.Raw(links), why, command])
    return page.table(["failure", "answer", "seed", "verdict", "kept", "why", "again"], rows)
