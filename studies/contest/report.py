"""The files of a contest: `contest.html` to look at, `contest.csv` and `rows.csv` for programs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from common import csv_text as csv
from common import files
from judging.reports import page
from judging.reports.report import REPLAY
from studies.contest import picture, text
from studies.contest.result import HEAD, Match, table
from studies.sweeping import report
from studies.sweeping.row import Row
from studies.sweeping.statement import VariantStatement

__all__ = ["write"]

Kept = Callable[[VariantStatement, Row], Path | None]
"""The folder of the kept run of a row, if there is one."""

EXPLAINED = (
    "Every algorithm gets the same seeds, and a seed draws the same faults for all. A difference is the mean over"
    " seeds of the algorithm minus the reference, with its 95 % interval (Student's, over the pairs). Each"
    " interval holds by itself: of twenty, one is wrong on average. Look at the true verdicts first: a run that ended"
    " early or moved little may look good in other metrics."
)
RANKED = (
    "A rank is that of the mean. The ranks in brackets are those that the seeds leave possible: an algorithm is ranked"
    " behind another only where their paired difference is clear. All ranks of one metric hold together with 95 %"
    " confidence. A wide range means that more seeds are needed, or that the algorithms are equally good."
)
LEFT_OUT = "{count} runs were broken off. They count as not true, and are missing from the other metrics. The first: "


def write(folder: Path, matches: Sequence[Match], kept: Kept) -> Path:
    """All files, each replaced at once; the path of the page."""
    files.make_folder(folder)
    files.write(folder / "rows.csv", report.csv_text([one for match in matches for one in match.statements]))
    files.write(folder / "contest.csv", csv_text(matches))
    files.write(folder / "contest.html", html(folder, matches, kept))
    return folder / "contest.html"


def csv_text(matches: Sequence[Match]) -> str:
    """The results, as `result.table` has them."""
    return csv.csv_text(HEAD, table(matches))


def html(folder: Path, matches: Sequence[Match], kept: Kept) -> str:
    """The page; links to kept runs are relative to `folder`."""
    seeds = max((len(one.rows) for match in matches for one in match.statements), default=0)
    title = f"Contest: {', '.join(matches[0].algorithms)}"
    reference = page.paragraph(f"{seeds} seeds; the reference is {matches[0].reference}.")
    parts = [f"<h1>{page.text(title)}</h1>", reference, page.paragraph(EXPLAINED, soft=True)]
    parts.append(page.paragraph(RANKED, soft=True))
    for match in matches:
        claim = page.paragraph(match.statements[0].claim, soft=True)
        results = page.table(text.head(match), text.rows(match))
        parts.append(page.section(match.scenario, claim, picture.differences(match), results, broken_off(match)))
    parts.append(page.section("The worst seed of each", worst(folder, matches, kept)))
    return page.page(title, *parts)


def broken_off(match: Match) -> str | None:
    """What is said of runs that an exception ended."""
    errors = [row for one in match.statements for row in one.errors]
    return page.paragraph(LEFT_OUT.format(count=len(errors)) + errors[0].error) if errors else None


def worst(folder: Path, matches: Sequence[Match], kept: Kept) -> str:
    """The run to look at first of each algorithm, with its replay and the command that repeats it."""
    rows = []
    for match in matches:
        for name, one in zip(match.algorithms, match.statements, strict=True):
            for row in one.worst()[:1]:
                mark = page.Raw(f'<span class="mark {row.verdict}">{row.verdict}</span>')
                command = page.Raw(f"<code>{page.text(one.variant.command(row.seed))}</code>")
                links = page.Raw("".join(_links(folder, kept(one, row))))
                rows.append([match.scenario, name, f"seed {row.seed}", mark, links, text.why(row), command])
    return page.table(["scenario", "algorithm", "seed", "verdict", "kept", "why", "again"], rows)


def _links(folder: Path, run: Path | None) -> list[str]:
    found = [run / name for name in (REPLAY, "report.html") if (run / name).exists()] if run is not None else []
    return [f'<a href="{page.text(path.relative_to(folder).as_posix())}">{path.stem}</a> ' for path in found]
