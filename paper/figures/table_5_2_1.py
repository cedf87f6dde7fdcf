"""Table of section 5.2.1: the latency of 2-byte writes, which calibrates the model, and the rate of 32 KB writes."""

from __future__ import annotations

from collections.abc import Sequence

from judging.run import Run
from paper import measuring
from paper.clock import Clock
from paper.cluster import A
from paper.figure import Figure, Measured, Part, Quantity
from paper.parameters import MRC
from paper.streams import stream
from scenarios.scenario import Phase, Workload

PING_PONGS = 50
LENGTH = 60.0  # round trips of the 32 KB writes
CLOCK = Clock.round_trips(A)
WAYS = {"local": ("h0", "h1"), "cross": ("h0", "h2")}


def latency(way: str) -> Part:
    """2-byte writes to and fro between two idle hosts."""
    options = {"size": 2, "messages": PING_PONGS}
    return Part(
        name=f"latency-{way}",
        plan=A,
        transport=MRC,
        workloads=[Workload("write_lat", options, ranks=WAYS[way], phase="faults")],
        phases=[Phase("faults", CLOCK.lab_s(2 * PING_PONGS))],
        measure=lambda run: Measured({"half": measuring.mean(measuring.half_round_trips_us(run, "main"))}),
    )


def bandwidth(way: str, length: float) -> Part:
    """32 KB writes one way on four queue pairs."""

    def measure(run: Run) -> Measured:
        return Measured({"rate": measuring.rate(run, CLOCK, 0, length)})

    return Part(
        name=f"bandwidth-{way}",
        plan=A,
        transport=MRC,
        workloads=[stream(*WAYS[way], size=32_768)],
        phases=CLOCK.phases(length),
        measure=measure,
    )


def parts(short: bool) -> Sequence[Part]:
    length = 10.0 if short else LENGTH
    return [*(latency(way) for way in WAYS), *(bandwidth(way, length) for way in WAYS)]


FIGURE = Figure(
    name="5.2.1",
    title="Latency of 2-byte writes, rate of 32 KB writes",
    caption=(
        "Two hosts of cluster A, idle otherwise, under one leaf or across a spine. The two latencies set the model's"
        " two latency constants, so they agree by construction and count as calibration; everything else follows"
        " from them."
    ),
    parts=parts,
    quantities=(
        Quantity(
            "2 bytes, one leaf",
            5.09,
            "µs",
            "latency-local:half",
            "median half round trip of write_lat",
            calibrates=True,
        ),
        Quantity("2 bytes, across a spine", 6.54, "µs", "latency-cross:half", "the same", calibrates=True),
        Quantity(
            "32 KB, one leaf", 770, "Gb/s", "bandwidth-local:rate", "acknowledged payload, 4 queue pairs, one way"
        ),
        Quantity("32 KB, across a spine", 770, "Gb/s", "bandwidth-cross:rate", "the same"),
    ),
    source="table in section 5.2.1 of arXiv:2605.04333",
)
