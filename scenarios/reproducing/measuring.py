"""What figures measure of a run: rates over stretches of time and what a sample of the paper's length would show."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from scenarios.judging import goodput
from scenarios.judging.run import SECOND_NS, Run, Span
from scenarios.reproducing.clock import Clock
from scenarios.reproducing.figure import Points

GBPS = 1e9


def rate(run: Run, clock: Clock, start: float, stop: float, hosts: Sequence[str] | None = None) -> float:
    """Acknowledged payload of all (or these) hosts together, Gb/s, between two instants in units of the clock."""
    return goodput.over(run, Span("", clock.run_ns(run, start), clock.run_ns(run, stop)), hosts) / GBPS


def curve(
    run: Run, clock: Clock, start: float, stop: float, width: float, hosts: Sequence[str] | None = None
) -> Points:
    """The same as bins of this width: (middle in units, Gb/s)."""
    span = Span("", clock.run_ns(run, start), clock.run_ns(run, stop))
    centres, rates = goodput.series(run, max(1, round(width * clock.unit_ns)), span, hosts)
    shift = run.start_ns / SECOND_NS
    return [
        (round(clock.units(run, (centre + shift) * SECOND_NS), 6), round(value / GBPS, 4))
        for centre, value in zip(centres, rates, strict=True)
    ]


def deficit_bits(run: Run, clock: Clock, at: float, until: float, steady_gbps: float) -> float:
    """What a transient cost: bits that the steady rate would have carried from `at` to `until` and nobody did."""
    length_s = (until - at) * clock.unit_ns / SECOND_NS
    return max(0.0, steady_gbps * GBPS * length_s - rate(run, clock, at, until) * GBPS * length_s)


def sample_gbps(steady_gbps: float, missing_bits: float, sample_s: float) -> float:
    """The rate that a sample of `sample_s` real seconds shows when a transient within it cost so many bits.

    A transient lasts round trips, however long the paper's phases last; so it is not compressed with them.
    """
    return max(0.0, steady_gbps - missing_bits / sample_s / GBPS)


def lowest(points: Points, start: float, stop: float) -> float:
    """The lowest value of a curve between two places of its axis."""
    return min(value for place, value in points if start <= place <= stop)


def half_round_trips_us(run: Run, workload: str) -> list[float]:
    """The median latency of a `write_lat` workload at each of its ranks that has one, µs."""
    found = []
    for line in run.kind("workload"):
        if line.get("name") == workload and line.get("state") == "stop":
            table = line["result"]["table"]
            found += [float(row[table["columns"].index("t_typical[usec]")]) for row in table["rows"]]
    return found


def mean(values: Iterable[float]) -> float:
    """The mean; 0 of nothing."""
    found = list(values)
    return float(np.mean(found)) if found else 0.0
