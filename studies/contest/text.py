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
    return [_row(one) for one in match.all_results()]


def _row(one: Result) -> list[str]:
    gap = "–" if one.difference is None else signed(one.metric, one.difference)
    unit = "" if one.metric.unit.startswith(("share", "bit")) else f" {one.metric.unit}"
    rank = "–" if one.rank is None else one.rank.words()
    return [one.metric.title, one.algorithm, number(one.metric, one.mean) + unit, gap, rank]


def summary(matches: Sequence[Match]) -> str:
    """All tables, and the worst run of each algorithm that was not always true."""
    lines, look = [], []
    for match in matches:
        lines += [match.scenario, *columns([head(match), *rows(match)]), ""]
        for one in match.statements:
            for row in [row for row in one.worst()[:1] if not row.passed]:
                look += [f"  {one.variant.command(row.seed)}", f"      {row.verdict}: {why(row)}"]
    return "\n".join([*lines, *(["runs to look at", *look, ""] if look else [])])


def why(row: Row) -> str:
    """The reasons for which a run was not true."""
    return row.error or "; ".join(f"{check}: {reason}" for check, reason in row.reasons.items())
