"""Table of section 5.2.1: the latency of 2-byte writes, which calibrates the model, and the rate of 32 KB writes."""

from __future__ import annotations

from collections.abc import Sequence

from judging.run import Run
from paper import measuring, readings
from paper.breaking import SINGLE_PATH, fails, single_path
from paper.clock import Clock
from paper.cluster import B
from paper.figure import Figure, Measured, Part
from paper.parameters import MRC
from paper.streams import stream
from scenarios.scenario import Phase, Workload

PING_PONGS = 50
LENGTH = 60.0  # round trips of the 32 KB writes
CLOCK = Clock.round_trips(B)
WAYS = {"local": ("h0", "h1"), "cross": ("h0", "h2")}


def latency(way: str) -> Part:
    """2-byte writes to and fro between two idle hosts."""
    options = {"size": 2, "messages": PING_PONGS}
    return Part(
        name=f"latency-{way}",
        plan=B,
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
        plan=B,
        transport=MRC,
        workloads=[stream(*WAYS[way], size=32_768)],
        phases=CLOCK.phases(length),
        measure=measure,
    )


def parts(short: bool) -> Sequence[Part]:
    length = 10.0 if short else LENGTH
    streams = [bandwidth(way, length) for way in WAYS]
    return [*(latency(way) for way in WAYS), *streams, *map(single_path, streams)]


READ = readings.of("5.2.1")
FIGURE = Figure(
    name="5.2.1",
    title="Latency of 2-byte writes, rate of 32 KB writes",
    caption=(
        "Two hosts of cluster B, idle otherwise, under one leaf or across a spine. The two latencies set the model's"
        " two latency constants, so they agree by construction and count as calibration; everything else follows"
        " from them."
    ),
    parts=parts,
    quantities=(
        READ.quantity(
            "2 bytes, one leaf", "latency-local:half", "median half round trip of write_lat", calibrates=True
        ),
        READ.quantity("2 bytes, across a spine", "latency-cross:half", "the same", calibrates=True),
        READ.quantity(
            "32 KB, one leaf",
            "bandwidth-local:rate",
            "acknowledged payload, 4 queue pairs, one way",
            fails=fails("rate", SINGLE_PATH, "bandwidth-local"),
        ),
        READ.quantity(
            "32 KB, across a spine",
            "bandwidth-cross:rate",
            "the same",
            fails=fails("rate", SINGLE_PATH, "bandwidth-cross"),
        ),
    ),
    source="table in section 5.2.1 of arXiv:2605.04333",
)
