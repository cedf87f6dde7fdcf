"""Figure 9c: twenty links between leaves and spines go down, a second apart."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from common.seeds import Purpose, derive
from judging import Run
from paper import measuring, readings
from paper.breaking import SINGLE_PATH, fails, single_path
from paper.clock import Clock
from paper.cluster import B
from paper.figure import Chart, Figure, Measured, PaperCurve, Part
from paper.pair import DILUTED, LOWEST, SAMPLE_S, lowest_sample, pair

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


READ = readings.of("9c")
FIGURE = Figure(
    name="9c",
    title="20 T0–T1 links down, a second apart",
    caption=(
        "Two hosts of cluster B, both ways, 4 queue pairs. From 4 s on one link a second between the first host's"
        " leaves and their spines goes down and stays down: 20 of 128."
    ),
    parts=parts,
    quantities=(
        READ.quantity(
            "mean", "mrc:mean", "mean of both directions, failures included", fails=fails("mean", SINGLE_PATH)
        ),
        READ.quantity("lowest sample", "mrc:lowest", LOWEST, powerless=DILUTED),
    ),
    charts=(
        Chart(
            x="seconds of the paper",
            y="both directions, Gb/s",
            ours={"mrc:rate": "MRC"},
            paper=[PaperCurve("MRC", [(second, 1533) for second in range(1, 28, 3)])],
        ),
    ),
    compression=(
        f"The paper's seconds are shortened {FACTOR:,} times: about 17 round trips to a second, so that a failure is"
        " over"
        " before the next one. How many links a NIC's traffic can take in the paper is not said; here it is 128."
    ),
)
