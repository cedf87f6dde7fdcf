"""Table of section 5.2.1: the latency of 2-byte writes, which calibrates the model, and the rate of 32 KB writes."""

from __future__ import annotations

from collections.abc import Sequence

from judging import Run
from paper import measuring, profile, readings
from paper.breaking import SINGLE_PATH, fails, single_path
from paper.clock import Clock
from paper.cluster import B
from paper.figure import Figure, Measured, Part
from paper.parameters import MRC
from paper.streams import one_at_a_time, stream
from scenarios import Phase

WRITES = 50
WRITE = 4.0  # round trips that a write of 2 bytes has, host and all
LENGTH = 60.0  # round trips of the 32 KB writes
CLOCK = Clock.round_trips(B)
PROFILE = profile.load("cx8")
WAYS = {"local": ("h0", "h1"), "cross": ("h0", "h2")}


def latency(way: str) -> Part:
    """2-byte writes from one idle host to another, one at a time."""
    return Part(
        name=f"latency-{way}",
        plan=B,
        transport=MRC,
        workloads=[one_at_a_time(*WAYS[way], WRITES, "faults", PROFILE.message)],
        phases=[Phase("faults", CLOCK.lab_s(WRITE * WRITES))],
        measure=lambda run: Measured({"half": measuring.half_completion_us(run, "main")}),
    )


def bandwidth(way: str, length: float) -> Part:
    """32 KB writes one way on four queue pairs."""

    def measure(run: Run) -> Measured:
        return Measured({"rate": measuring.rate(run, CLOCK, 0, length)})

    return Part(
        name=f"bandwidth-{way}",
        plan=B,
        transport=MRC,
        workloads=[stream(*WAYS[way], size=32_768, host=PROFILE.message)],
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
        "Two hosts of cluster B, idle otherwise, under one leaf or across a spine. A latency is half of the time from"
        " posting a write to its completion, as the paper defines it. With n links between two NICs it is L = n · link"
        " + wire + (post + completion) / 2. The two latencies differ by two links. The rest of each is time in the"
        " host, which delays no frame. So both agree by construction and count as calibration. Everything else follows"
        " from them."
    ),
    parts=parts,
    quantities=(
        READ.quantity(
            "2 bytes, one leaf",
            "latency-local:half",
            "half of the time from posting to completion, mean of writes one at a time",
            calibrates=PROFILE.calibrates("5.2.1", "2 bytes, one leaf"),
        ),
        READ.quantity(
            "2 bytes, across a spine",
            "latency-cross:half",
            "the same",
            calibrates=PROFILE.calibrates("5.2.1", "2 bytes, across a spine"),
        ),
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
