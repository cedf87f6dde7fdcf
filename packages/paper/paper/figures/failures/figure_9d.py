"""Figure 9d: eight links between leaves and spines go down at once and come back."""

from collections.abc import Sequence

from judging import Run
from paper import measuring
from paper.breaking import single_path
from paper.clock import Clock
from paper.cluster import B
from paper.figure import Measured, Part
from paper.pair import SAMPLE_S, lowest_sample, pair

FACTOR = 16_000
DOWN_S, UP_S, END_S = 22.0, 52.0, 66.0


def parts(short: bool) -> Sequence[Part]:
    clock = Clock.compressed(B, FACTOR * (5 if short else 1))

    def measure(run: Run) -> Measured:
        mean = measuring.rate(run, clock, 0, END_S)
        numbers = {
            "mean": mean,
            "down": lowest_sample(run, clock, [DOWN_S], mean),
            "up": lowest_sample(run, clock, [UP_S], mean),
        }
        return Measured(numbers, {"rate": measuring.curve(run, clock, 0, END_S, max(2 * clock.sample, SAMPLE_S))})

    faults = [clock.fault(DOWN_S, "link-down", f"p{plane}l0-p{plane}s0", until=UP_S) for plane in range(8)]
    run = pair(clock, END_S, faults, measure)
    return [run, single_path(run)]
