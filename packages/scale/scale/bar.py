"""The error bars: how far answers from parts were from exact runs, measured, and where that says anything.

A bar is a split-conformal one (Vovk, Gammerman, Shafer, "Algorithmic Learning in a Random World", 2005): of n measured
differences the ⌈0.95 (n + 1)⌉-th smallest. A further comparison of the same kind then stays within it with a
probability of 95 % or more. `bars.toml` has the differences' bars; `python -m benchmarks.scale_bars` makes it.
"""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from math import ceil
from pathlib import Path

from scale.answer import Answer
from scale.job import ScaleError
from scale.part import Cut
from topo import load_plan
from topo.plan import Links, Queues, Trimming

FILE = Path(__file__).with_name("bars.toml")
CONFIDENCE = 0.95
__all__ = ["CONFIDENCE", "FILE", "LEAST", "METRICS", "UNDISTURBED", "bars", "conformal", "differences"]

LEAST = 19
"""Differences without which there is no bar of 95 %."""
METRICS = ("median", "p99", "slowest")
UNDISTURBED = "none"


@dataclass(frozen=True, slots=True)
class Bar:
    """Bars as shares of the value, for jobs of a kind with faults of a kind.

    Measured with `bytes` per message, parts of at least `part_hosts` hosts per leaf, thinned `thin` times at most, in
    `runs` jobs of `nics` NICs.
    """

    job: str
    fault: str
    transport: str
    bytes: tuple[int, int]
    part_hosts: int
    thin: int
    nics: int
    runs: int
    median: float
    p99: float
    slowest: float

    def covers(self, cut: Cut) -> str:
        """What of a job this bar does not cover; "" if it covers all."""
        size, least, links = cut.job.message_bytes, self.bytes, (cut.plan.links, cut.plan.queues, cut.plan.trimming)
        if links != measured_on():
            return "other ports and delays, queues or trimming than those of plan paper"
        if not least[0] <= size <= least[1]:
            return f"messages of {size} bytes (measured: {least[0]} to {least[1]})"
        if cut.thin > self.thin:
            return f"blocks that were thinned {cut.thin} times (measured: up to {self.thin} times)"
        if cut.thin > 1 and cut.plan.hosts_per_leaf // cut.thin < self.part_hosts:
            return f"thinned blocks with fewer than {self.part_hosts} hosts per leaf"
        return ""


@cache
def measured_on() -> tuple[Links, Queues, Trimming]:
    """What all fabrics have that were measured."""
    paper = load_plan("paper")
    return paper.links, paper.queues, paper.trimming


@cache
def bars(path: Path = FILE) -> tuple[Bar, ...]:
    """The bars of the file."""
    rows = tomllib.loads(path.read_text()).get("bar", [])
    return tuple(Bar(**{**row, "bytes": tuple(row["bytes"])}) for row in rows)


def kinds_of_fault(cut: Cut) -> tuple[str, ...]:
    """The verbs of a job's faults, each once; `UNDISTURBED` without any."""
    return tuple(sorted({fault.verb for fault in cut.faults})) or (UNDISTURBED,)


def bar_for(cut: Cut, transport: str, known: Sequence[Bar] | None = None) -> Bar:
    """The widest bar of the kinds of faults of a job. ScaleError where nothing was measured that covers it."""
    known = bars() if known is None else known
    found = []
    for fault in kinds_of_fault(cut):
        rows = [bar for bar in known if (bar.job, bar.fault, bar.transport) == (cut.job.kind, fault, transport)]
        rows = sorted((bar for bar in rows if bar.nics <= cut.plan.host_count), key=lambda bar: -bar.nics)
        if not rows:
            measured = sorted({f"{bar.job} with {said(bar.fault)} and {bar.transport}" for bar in known})
            raise ScaleError(
                f"no error bar was measured for {cut.job.kind} with {said(fault)} and {transport}: there is no answer"
                f" (measured: {'; '.join(measured) or 'none'}); --without-bar gives one that nothing vouches for"
            )
        missing = [bar.covers(cut) for bar in rows]
        if all(missing):
            raise ScaleError(
                f"no error bar covers {missing[0]}; --without-bar gives an answer that nothing vouches for"
            )
        found.append(next(bar for bar, lack in zip(rows, missing, strict=True) if not lack))
    return max(found, key=lambda bar: bar.p99)


def said(fault: str) -> str:
    """A kind of fault in a sentence."""
    return "no fault" if fault == UNDISTURBED else fault


def conformal(differences: Sequence[float], confidence: float = CONFIDENCE) -> float:
    """The bar that these differences make, shares of the exact value; inf for too few of them."""
    place = ceil(confidence * (len(differences) + 1))
    ordered = sorted(map(abs, differences))
    return ordered[place - 1] if place <= len(ordered) else float("inf")


def differences(answer: Answer, exact: Answer) -> dict[str, float]:
    """By how much an answer is above the exact run's, as shares, by metric."""
    return {name: getattr(answer, f"{name}_ns") / getattr(exact, f"{name}_ns") - 1 for name in METRICS}
