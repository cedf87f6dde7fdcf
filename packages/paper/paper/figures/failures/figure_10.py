"""Figure 10: a leaf (T0) goes down under two hosts that talk through it."""

from collections.abc import Sequence

from judging import Run
from paper import measuring
from paper.breaking import single_path
from paper.clock import Clock
from paper.cluster import B
from paper.figure import Measured, Part
from paper.pair import lowest_sample, pair

UNIT = 30  # round trips
DOWN, END = 2.0, 5.0


def parts(short: bool) -> Sequence[Part]:
    clock = Clock.round_trips(B, 12 if short else UNIT)

    def measure(run: Run) -> Measured:
        after = measuring.rate(run, clock, DOWN + 0.5, END)
        numbers = {
            "before": measuring.rate(run, clock, 0.5, DOWN),
            "after": after,
            "lowest": lowest_sample(run, clock, [DOWN], after),
        }
        return Measured(numbers, {"rate": measuring.curve(run, clock, 0, END, clock.sample)})

    def dying(name: str, verb: str) -> Part:
        faults = [clock.fault(DOWN, verb, f"h{host}-p0l0") for host in range(2)]
        return pair(clock, END, faults, measure, hosts=("h0", "h1"), name=name)

    run = dying("mrc", "link-down")
    return [run, dying("silent", "blackhole"), single_path(run)]
