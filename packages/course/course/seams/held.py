"""Checks of a trial that its journal can answer: the lab's tests and the scenario of a counterexample share them."""

from judging import Finding, Run, Span
from judging.checks import check
from judging.measures import goodput

SETTLE = 0.3
"""The first share of a phase, in which an algorithm may find out what has changed."""


def part(run: Run, phase: str, skip: float = SETTLE) -> Span:
    """A phase without its first share."""
    span = run.phases[phase]
    return Span(phase, span.start_ns + round(skip * span.length_ns), span.stop_ns)


def grown(run: Run, key: str, span: Span) -> int:
    """How much a counter of all queue pairs grew in a span, by the samples before its ends."""
    total = 0
    for lines in run.agent_samples.values():
        at = [sum(qp[key] for qp in line["qps"]) for line in lines if line["t_ns"] <= span.stop_ns]
        before = [sum(qp[key] for qp in line["qps"]) for line in lines if line["t_ns"] <= span.start_ns]
        total += (at[-1] if at else 0) - (before[-1] if before else 0)
    return total


@check
def carries(run: Run, phase: str, least_bps: float, skip: float = SETTLE) -> Finding:
    """In a phase, without its first share, all hosts together carry at least so many bits of payload per second."""
    rate = goodput.over(run, part(run, phase, skip))
    reason = f"{rate / 1e6:.2f} Mb/s in phase {phase}, at least {least_bps / 1e6:.2f} Mb/s are possible"
    return Finding(f"goodput in {phase}", rate >= least_bps, reason, {"bps": rate})
