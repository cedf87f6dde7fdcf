"""Flows: rates, silences and beginnings, from lines whose truth is known."""

import pytest

from judging.measures import flows
from judging.run import Run, Span

TICK = 100_000_000


def lines(workload: str, sender: str, amounts: dict[int, int]) -> list[dict[str, object]]:
    """`amounts` bytes in the interval that begins at so many ticks; nothing in all others up to tick 20."""
    return [
        {
            "t_ns": (tick + 1) * TICK, "node": "h0", "kind": "transfer", "workload": workload, "peer": sender,
            "bytes": amounts.get(tick, 0), "start_ns": tick * TICK, "end_ns": (tick + 1) * TICK, "verified": True,
        }
        for tick in range(min(amounts), 20)
    ]  # fmt: skip


def test_rates_silences_and_beginnings_of_a_workload_that_starts_with_its_phase() -> None:
    span = Span("faults", 10 * TICK, 20 * TICK)
    run = Run([*lines("in", "h1", {10: 0, 12: 500, 19: 500}), *lines("in", "h2", {10: 0, 14: 2000})])
    seen = flows.within(run, span, "in")
    assert seen is not None
    assert seen.rates == {"h0 → h1": pytest.approx(8000), "h0 → h2": pytest.approx(16000)}
    assert seen.mean_bps == pytest.approx(12000)
    assert seen.first_ns == 5 * TICK  # the later of the two
    assert seen.silence_ns == 6 * TICK  # h1 between ticks 13 and 19


def test_a_flow_that_was_there_before_has_no_beginning_in_the_phase() -> None:
    run = Run(lines("victim", "h1", dict.fromkeys(range(20), 100)))
    seen = flows.within(run, Span("faults", 10 * TICK, 20 * TICK), "victim")
    assert seen is not None
    assert (seen.first_ns, seen.silence_ns) == (None, 0)


def test_a_flow_that_ends_early_is_silent_from_then_on() -> None:
    run = Run(lines("victim", "h1", {0: 100, 5: 100}))
    seen = flows.within(run, Span("faults", 4 * TICK, 20 * TICK), "victim")
    assert seen is not None
    assert seen.silence_ns == 14 * TICK


def test_a_workload_that_wrote_nothing_has_no_flows() -> None:
    run = Run(lines("victim", "h1", {0: 100}))
    assert flows.workloads(run) == ["victim"]
    assert flows.within(run, Span("faults", 0, TICK), "incast") is None
    assert flows.within(run, Span("later", 30 * TICK, 40 * TICK), "victim") is None
