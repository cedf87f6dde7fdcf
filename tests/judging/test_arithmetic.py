"""Figures whose arithmetic can be done by hand. Mutants survived here while only verdicts were looked at."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from judging import units
from judging.journal import scan
from judging.measures import completions, goodput
from judging.run import Run, Span

Build = Callable[..., Run]


@pytest.mark.parametrize(
    ("pace", "unit"),
    [
        (1.0, ("s", 1_000_000_000)),
        (0.01, ("s", 1_000_000_000)),
        (0.0099, ("ms", 1_000_000)),
        (0.001, ("ms", 1_000_000)),
        (0.0009, ("µs", 1_000)),
    ],
)
def test_a_report_tells_time_in_the_unit_of_its_pace(pace: float, unit: tuple[str, int]) -> None:
    assert units.unit(pace) == unit


def test_an_unreadable_line_stands_at_no_place_of_its_file() -> None:
    lines = list(scan(b'{"t_ns":5,"node":"h0","kind":"a"}\nnoise\n', "h0.jsonl"))
    assert [(start, length) for start, length, _ in lines] == [(0, 33), (0, 0)]
    assert lines[1][2]["t_ns"] == 5


def test_a_run_without_lines_begins_and_ends_at_zero() -> None:
    assert (Run([]).start_ns, Run([]).end_ns) == (0, 0)


def test_bins_of_goodput_are_named_by_their_middle(made_up: Build) -> None:
    run = made_up()  # phases begin at 0 s; four hosts of two ports of 8 Mb/s at 80 %
    centres, rates = goodput.series(run, 500_000_000, Span("part", 2_000_000_000, 4_000_000_000))
    assert centres == pytest.approx([2.25, 2.75, 3.25, 3.75])
    assert rates == pytest.approx([4 * 2 * 8_000_000 * 0.8] * 4, rel=1e-6)


def test_times_of_messages_are_those_of_receivers_and_of_senders() -> None:
    def message(number: int) -> completions.MessageCompletion:
        start_ns, took_ns, sender_ns = 1000 * number, 10 * number, 20 * number * number
        times = start_ns, start_ns + sender_ns, start_ns + took_ns
        return completions.MessageCompletion("w", "h0", "h1", number, 7, *times, ideal_ns=5.0 * number)

    found = completions.summed("w", [message(number) for number in range(1, 12)])
    numbers = np.arange(1, 12)
    assert (found.workload, found.count, found.bytes) == ("w", 11, 77)
    assert (found.median_ns, found.longest_ns) == (60, 110)
    assert found.p99_ns == pytest.approx(np.quantile(10 * numbers, 0.99))
    assert found.last_ns == 11_000 + 110 - 1000
    assert found.sender_median_ns == 20 * 36
    assert found.sender_p99_ns == pytest.approx(np.quantile(20 * numbers**2, 0.99))
    assert found.sender_last_ns == 11_000 + 20 * 121 - 1000
    assert (found.slowdown_median, found.slowdown_p99) == (2.0, 2.0)
