"""Training steps: how long each took, which of them belong to a phase, and the usual three numbers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from scenarios.judging.run import Run, Span


@dataclass(frozen=True, slots=True)
class Step:
    """One synchronous step: it lasts as long as its slowest rank."""

    number: int
    end_ns: int
    comm_ns: int
    total_ns: int
    bytes: int
    ranks: int
    verified: bool

    @property
    def start_ns(self) -> int:
        return self.end_ns - self.total_ns


@dataclass(frozen=True, slots=True)
class StepTimes:
    count: int
    median_ns: int
    p99_ns: int
    slowest_ns: int


def steps(run: Run) -> list[Step]:
    """All steps that every rank finished, in order."""
    by_number: dict[int, list[dict[str, object]]] = defaultdict(list)
    for line in run.kind("step"):
        by_number[int(line["step"])].append(line)
    if not by_number:
        return []
    ranks = max(len(lines) for lines in by_number.values())
    result = []
    for number, lines in sorted(by_number.items()):
        if len(lines) < ranks:
            continue
        result.append(
            Step(
                number=number,
                end_ns=max(int(str(line["t_ns"])) for line in lines),
                comm_ns=max(int(str(line["comm_ns"])) for line in lines),
                total_ns=max(int(str(line["total_ns"])) for line in lines),
                bytes=sum(int(str(line["bytes"])) for line in lines),
                ranks=ranks,
                verified=all(line.get("verified") is True for line in lines),
            )
        )
    return result


def within(all_steps: Sequence[Step], span: Span) -> list[Step]:
    """Steps that lie wholly in a span."""
    return [step for step in all_steps if step.start_ns >= span.start_ns and step.end_ns <= span.stop_ns]


def overlapping(all_steps: Sequence[Step], span: Span) -> list[Step]:
    """Steps of which any part lies in a span: what a fault touched, however long it took."""
    return [step for step in all_steps if step.end_ns > span.start_ns and step.start_ns < span.stop_ns]


def times(selected: Sequence[Step]) -> StepTimes | None:
    if not selected:
        return None
    totals = np.array([step.total_ns for step in selected], dtype=float)
    # "higher": a percentile that some step really took, never a value between two of them.
    return StepTimes(
        count=len(selected),
        median_ns=int(np.median(totals)),
        p99_ns=int(np.percentile(totals, 99, method="higher")),
        slowest_ns=int(totals.max()),
    )
