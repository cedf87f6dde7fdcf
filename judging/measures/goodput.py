"""Goodput: bytes that peers acknowledged, over time and over a span.

Agents sample totals; between two samples the total is taken to grow evenly, so that hosts sampled at different instants
can be added up. A QP that is destroyed keeps its last total.
"""

from __future__ import annotations

from collections.abc import Sequence

from judging.arrays import Floats, np
from judging.measures import steps
from judging.measures.totals import totals
from judging.run import SECOND_NS, Run, Span

__all__ = ["at", "of_phase", "over", "series"]


def at(times: Floats, sums: Floats, when: Floats) -> Floats:
    """The total at each instant of `when`; before the first sample, the first sample's total."""
    if not len(times):
        return np.zeros_like(when)
    return np.interp(when, times, sums)


def acknowledged(run: Run, when: Floats, hosts: Sequence[str] | None = None) -> Floats:
    """Bytes acknowledged to all (or the named) hosts together, up to each instant of `when` (ns)."""
    total = np.zeros_like(when)
    for host in run.agent_samples:
        if hosts is None or host in hosts:
            counted = totals(run, host)
            total += at(counted.times, counted.qps["acked_bytes"], when)
    return total


def over(run: Run, span: Span, hosts: Sequence[str] | None = None) -> float:
    """Mean goodput in a span, bit/s."""
    if span.length_ns <= 0:
        return 0.0
    edges = np.array([span.start_ns, span.stop_ns], dtype=float)
    start, stop = acknowledged(run, edges, hosts)
    return float((stop - start) * 8 * SECOND_NS / span.length_ns)


def of_phase(run: Run, phase: Span, hosts: Sequence[str] | None = None) -> float:
    """Mean goodput of a phase, bit/s: over its training steps where there are some, else from edge to edge."""
    return over(run, steps.whole(run, phase), hosts)


def series(run: Run, bin_ns: int, span: Span, hosts: Sequence[str] | None = None) -> tuple[Floats, Floats]:
    """Bin centres (seconds since the run's first phase) and goodput in each bin, bit/s. ValueError for too many."""
    count = max(1, span.count(bin_ns))
    edges = span.start_ns + bin_ns * np.arange(count + 1, dtype=float)
    totals = acknowledged(run, edges, hosts)
    rates = np.diff(totals) * 8 * SECOND_NS / bin_ns
    centres = (edges[:-1] + bin_ns / 2 - run.start_ns) / SECOND_NS
    return centres, rates
