"""Figure 9c: twenty links between leaves and spines go down, a second apart."""

from collections.abc import Sequence
from random import Random

from common.seeds import Purpose, derive
from judging import Run
from paper import measuring
from paper.breaking import single_path
from paper.clock import Clock
from paper.cluster import B
from paper.figure import Measured, Part
from paper.pair import SAMPLE_S, lowest_sample, pair

FACTOR = 4_000
FIRST_S, LINKS, END_S = 4.0, 20, 28.0


def links() -> list[str]:
    """Twenty links above the first leaves, drawn by chance, of all planes."""
    names = [f"p{plane}l0-p{plane}s{spine}" for plane in range(B.planes) for spine in range(B.spines)]
    return Random(derive(9, Purpose.FIGURE)).sample(names, LINKS)


def parts(short: bool) -> Sequence[Part]:
    clock = Clock.compressed(B, FACTOR * (5 if short else 1))
    times = [FIRST_S + second for second in range(LINKS)]

    def measure(run: Run) -> Measured:
        mean = measuring.rate(run, clock, 0, END_S)
        numbers = {"mean": mean, "lowest": lowest_sample(run, clock, times, mean)}
        return Measured(numbers, {"rate": measuring.curve(run, clock, 0, END_S, SAMPLE_S)})

    faults = [clock.fault(at, "link-down", link) for at, link in zip(times, links(), strict=True)]
    run = pair(clock, END_S, faults, measure)
    return [run, single_path(run)]
