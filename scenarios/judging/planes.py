"""Load on each plane: bytes that hosts sent on it, and how far from even that is."""

from __future__ import annotations

from collections import defaultdict
from functools import partial

from common.journal import Line
from scenarios.judging.arrays import Floats, np
from scenarios.judging.goodput import at, curve
from scenarios.judging.run import Run, Span


def sent_on(plane: int, line: Line) -> dict[int, int]:
    """Bytes that each port of a plane had sent, by port, from a `sample` line."""
    return {port["port"]: int(port["tx_bytes"]) for port in line["ports"] if port["plane"] == plane}


def curves(run: Run, when: Floats) -> dict[int, Floats]:
    """Bytes by plane that all hosts together had sent, at each instant of `when` (ns)."""
    totals: dict[int, Floats] = defaultdict(lambda: np.zeros_like(when))
    for samples in run.agent_samples.values():
        for plane in {int(port["plane"]) for line in samples for port in line["ports"]}:
            totals[plane] = totals[plane] + at(*curve(samples, partial(sent_on, plane)), when)
    return dict(sorted(totals.items()))


def bytes_sent(run: Run, span: Span) -> dict[int, float]:
    """Bytes by plane that all hosts sent in a span."""
    edges = np.array([span.start_ns, span.stop_ns], dtype=float)
    return {plane: float(total[1] - total[0]) for plane, total in curves(run, edges).items()}


def spread(sent: dict[int, float]) -> float:
    """The farthest any plane is from the mean, as a share of the mean."""
    if not sent:
        return 0.0
    mean = sum(sent.values()) / len(sent)
    return max(abs(value - mean) for value in sent.values()) / mean if mean else 0.0
