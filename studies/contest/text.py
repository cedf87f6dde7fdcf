"""A contest for a terminal; the page has the same tables."""

from __future__ import annotations

from collections.abc import Sequence

from judging.reports.report import columns
from studies.contest.result import Match, Result
from studies.sweeping.row import Row
from studies.sweeping.statement import number
from studies.sweeping.text import signed

__all__ = ["summary"]

RANKED = "rank (possible ranks)"


def head(match: Match) -> list[str]:
    """The head of `rows`."""
    return ["metric", "algorithm", "mean", f"difference to {match.reference} (95 % interval)", RANKED]


def rows(match: Match) -> list[list[str]]:
    """A line per metric and algorithm."""
    return [_row(result) for result in match.all_results()]


def _row(result: Result) -> list[str]:
    gap = "–" if result.difference is None else signed(result.metric, result.difference)
    unit = "" if result.metric.unit.startswith(("share", "bit")) else f" {result.metric.unit}"
    rank = "–" if result.rank is None else result.rank.describe()
    return [result.metric.title, result.algorithm, number(result.metric, result.mean) + unit, gap, rank]


def summary(matches: Sequence[Match]) -> str:
    """All tables, and the worst run of each algorithm that was not always true."""
    lines, look = [], []
    for match in matches:
        lines += [match.scenario, *columns([head(match), *rows(match)]), ""]
        for statement in match.statements:
            for row in [row for row in statement.worst()[:1] if not row.passed]:
                look += [f"  {statement.variant.command(row.seed)}", f"      {row.verdict}: {why(row)}"]
    return "\n".join([*lines, *(["runs to look at", *look, ""] if look else [])])


def why(row: Row) -> str:
    """The reasons for which a run was not true."""
    return row.error or "; ".join(f"{check}: {reason}" for check, reason in row.reasons.items())
