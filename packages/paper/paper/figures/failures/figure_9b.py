"""Figure 9b: half of a NIC's links flap at the same time."""

from collections.abc import Sequence

from judging import Run
from paper import measuring
from paper.breaking import kept, single_path
from paper.clock import Clock
from paper.cluster import B
from paper.figure import Measured, Part
from paper.pair import SAMPLE_S, pair

FACTOR = 8_000
DOWN_S, UP_S, END_S = 5.3, 17.0, 22.0
SETTLE_S = 1.0


def parts(short: bool) -> Sequence[Part]:
    clock = Clock.compressed(B, FACTOR * (4 if short else 1))

    def measure(run: Run) -> Measured:
        before = measuring.rate(run, clock, SETTLE_S, DOWN_S)
        half = measuring.rate(run, clock, DOWN_S + SETTLE_S, UP_S)
        after = measuring.rate(run, clock, UP_S + SETTLE_S, END_S)
        lost = measuring.deficit_bits(run, clock, UP_S, UP_S + SETTLE_S, after)
        numbers = {
            "before": before,
            "half": half,
            "after": after,
            "first sample after": measuring.sample_gbps(after, lost, SAMPLE_S),
        }
        return Measured(numbers, {"rate": measuring.curve(run, clock, 0, END_S, SAMPLE_S)})

    faults = [clock.fault(DOWN_S, "port-down", f"h0.p{plane}", until=UP_S) for plane in range(4)]
    run = pair(clock, END_S, faults, measure)
    return [run, single_path(run), kept(run)]
