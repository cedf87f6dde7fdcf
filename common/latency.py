"""Latencies as perftest's tests print them."""

import statistics
from collections.abc import Sequence

__all__ = ["COLUMNS", "row"]

COLUMNS = (
    "#bytes",
    "#iterations",
    "t_min[usec]",
    "t_max[usec]",
    "t_typical[usec]",
    "t_avg[usec]",
    "t_stdev[usec]",
    "99% percentile[usec]",
    "99.9% percentile[usec]",
)
"""The headings of a row, in order."""


def row(size: int, latencies_us: Sequence[float]) -> tuple[float, ...]:
    """The values of COLUMNS for messages of `size` bytes; `t_typical` is the median, `t_stdev` of the sample."""
    ordered = sorted(latencies_us)
    count = len(ordered)
    deviation = statistics.stdev(ordered) if count > 1 else 0.0
    marks = [ordered[min(count - 1, int(count * share))] for share in (0.99, 0.999)]
    figures = (ordered[0], ordered[-1], statistics.median(ordered), statistics.fmean(ordered), deviation, *marks)
    return size, count, *(round(figure, 2) for figure in figures)
