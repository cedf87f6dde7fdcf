"""Figure 9d: eight links between leaves and spines go down at once and come back."""

from __future__ import annotations

from collections.abc import Sequence

from judging import Run
from paper import measuring, readings
from paper.breaking import SINGLE_PATH, fails, single_path
from paper.clock import Clock
from paper.cluster import B
from paper.figure import Chart, Figure, Measured, PaperCurve, Part
from paper.pair import DILUTED, LOWEST, SAMPLE_S, lowest_sample, pair

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


READ = readings.of("9d")
FIGURE = Figure(
    name="9d",
    title="8 T0–T1 links down at once, and back",
    caption="Two hosts of cluster B, both ways, 4 queue pairs. A link in each plane is down from 22 s to 52 s.",
    parts=parts,
    quantities=(
        READ.quantity(
            "mean", "mrc:mean", "mean of both directions, failures included", fails=fails("mean", SINGLE_PATH)
        ),
        READ.quantity("lowest sample, down", "mrc:down", LOWEST, powerless=DILUTED),
        READ.quantity("lowest sample, up", "mrc:up", LOWEST, powerless=DILUTED),
    ),
    charts=(
        Chart(
            x="seconds of the paper",
            y="both directions, Gb/s",
            ours={"mrc:rate": "MRC"},
            paper=[PaperCurve("MRC", [(10, 1531), (22, 1472), (30, 1531), (45, 1531), (52, 1518), (60, 1531)])],
        ),
    ),
    compression=(
        f"The paper's seconds are shortened {FACTOR:,} times. Transients last round trips and are not shortened, so"
        " they"
        " look wider here; the samples in the table are of the paper's real length."
    ),
)
