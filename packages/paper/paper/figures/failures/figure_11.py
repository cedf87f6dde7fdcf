"""Figure 11: a spine (T1) stops and comes back."""

from collections.abc import Sequence

from judging import Run
from paper import measuring
from paper.breaking import single_path
from paper.clock import Clock
from paper.cluster import B
from paper.figure import Measured, Part
from paper.pair import lowest_sample, pair

UNIT = 30  # round trips
DOWN, UP, END = 2.0, 4.0, 6.0


def parts(short: bool) -> Sequence[Part]:
    clock = Clock.round_trips(B, 12 if short else UNIT)

    def measure(run: Run) -> Measured:
        mean = measuring.rate(run, clock, 0, END)
        numbers = {"mean": mean, "lowest": lowest_sample(run, clock, [DOWN, UP], mean)}
        return Measured(numbers, {"rate": measuring.curve(run, clock, 0, END, clock.sample)})

    run = pair(clock, END, [clock.fault(DOWN, "switch-stop", "p0s0", until=UP)], measure)
    return [run, single_path(run)]
