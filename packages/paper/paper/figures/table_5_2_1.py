"""Table of section 5.2.1: the latency of 2-byte writes, which calibrates the model, and the rate of 32 KB writes."""

from collections.abc import Sequence

from judging import Run
from paper import measuring, profile
from paper.breaking import single_path
from paper.clock import Clock
from paper.cluster import B
from paper.figure import Measured, Part
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
