"""The cost of faults from made-up ends of steps, worked out by hand."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from benchmarks.flap_cost import costs
from judging.run import FaultSpan, Span

RTT_NS = 10


@dataclass
class Made:
    """A run with one rank, whose steps end at these times."""

    ends_ns: list[int]
    faults: list[FaultSpan]
    phases: dict[str, Span]
    options: dict[str, Any] = field(default_factory=lambda: {"base_rtt_ns": RTT_NS})

    def kind(self, name: str) -> list[dict[str, Any]]:
        if name != "step":
            return []
        spent = {"comm_ns": 60, "total_ns": 90, "bytes": 1, "verified": True}
        return [{"workload": "main", "step": n, "t_ns": end, **spent} for n, end in enumerate(self.ends_ns)]


def run(*lengths_ns: int, faults: list[tuple[int, int | None]]) -> Any:
    """Steps of these lengths from 0 on; the phase begins at 250 and lasts for the rest of the run."""
    ends = [sum(lengths_ns[: n + 1]) for n in range(len(lengths_ns))]
    found = [FaultSpan("link-down", "a-b", {}, start, stop) for start, stop in faults]
    return Made(ends, found, {"faults": Span("faults", 250, ends[-1])})


def test_what_steps_take_longer_than_the_median_quiet_one_is_the_cost_of_the_fault_before() -> None:
    made = run(100, 100, 100, 115, 105, 100, 100, 100, 130, 100, 100, faults=[(310, 340), (830, 860)])
    assert costs(made) == pytest.approx([2.0, 3.0])


def test_a_fault_in_the_first_step_of_the_phase_counts_with_the_whole_step() -> None:
    assert costs(run(100, 100, 120, 100, 100, 100, 100, faults=[(260, 261)])) == pytest.approx([2.0])


def test_without_a_quiet_step_there_is_no_cost() -> None:
    assert costs(run(100, 100, 100, 100, faults=[(260, None)])) == []
    assert costs(run(100, 100, 100, 100, faults=[])) == []
