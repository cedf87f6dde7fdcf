"""A contest for a terminal; the page has the same tables."""

from collections.abc import Sequence

from common.terminal.counted import counted
from judging.reports.report import columns
from studies.contest.result import LEADING, MATTERS, TRUE, Match, Result, results, seeds_needed
from studies.sweeping.metric import METRICS
from studies.sweeping.row import Row
from studies.sweeping.statement import number
from studies.sweeping.text import signed

__all__ = ["seeds_enough", "summary"]

RANKED = "rank (possible ranks)"
DIFFERS = "differs by {:.1%} (at most {:.0%})"


def head(match: Match) -> list[str]:
    """The head of `rows`."""
    return ["metric", "algorithm", "mean", f"difference to {match.reference} (95 % interval)", "that is", RANKED]


def rows(match: Match, in_all: Sequence[tuple[Match, Result]]) -> list[list[str]]:
    """A line per metric and algorithm of a match; `in_all` has the results of the contest."""
    return [_row(match, result) for own, result in in_all if own is match]


def _row(match: Match, result: Result) -> list[str]:
    gap = "–" if result.difference is None else signed(result.metric, result.difference)
    unit = "" if result.metric.unit.startswith(("share", "bit")) else f" {result.metric.unit}"
    if result.metric is TRUE:
        unknown = match.statements[match.algorithms.index(result.algorithm)].verdicts["unknown"].count
        unit = f", {unknown} unknown" if unknown else ""
    rank = "–" if result.rank is None else result.rank.describe()
    return [
        result.metric.title,
        result.algorithm,
        number(result.metric, result.mean) + unit,
        gap,
        result.meaning or "–",
        rank,
    ]


def not_ranked(match: Match) -> str:
    """Why no relative metric of a match has ranks; "" where they have."""
    apart = match.apart()
    what = [metric.title for metric in METRICS.values() if metric.name not in LEADING and match.numbers(metric)]
    if not what or (apart is not None and apart <= MATTERS):
        return ""
    why = "is not known of every algorithm" if apart is None else DIFFERS.format(apart, MATTERS)
    return f"not ranked: {', '.join(what)}: goodput without faults, to which they refer, {why}"


def seeds_enough(algorithms: int, seeds: int) -> str:
    """A sentence on the ranks that so many seeds can give, before any run."""
    needed = seeds_needed(algorithms)
    if seeds < needed:
        return f"{counted(seeds, 'seed')} can't rank {algorithms} algorithms, however much they differ: {needed} can"
    return f"{seeds} seeds can rank {algorithms} algorithms where they differ clearly ({needed} is the least)"


def summary(matches: Sequence[Match]) -> str:
    """All tables, and the worst run of each algorithm that was not always true."""
    lines, look, in_all = [], [], results(matches)
    for match in matches:
        lines += [match.scenario, *columns([head(match), *rows(match, in_all)])]
        lines += [f"  {why}" for why in (not_ranked(match),) if why] + [""]
        for one in match.statements:
            for row in [row for row in one.worst()[:1] if not row.passed]:
                look += [f"  {one.variant.command(row.seed)}", f"      {row.verdict}: {why(row)}"]
    return "\n".join([*lines, *(["runs to look at", *look, ""] if look else [])])


def why(row: Row) -> str:
    """The reasons for which a run was not true."""
    return row.error or "; ".join(f"{check}: {reason}" for check, reason in row.reasons.items())
