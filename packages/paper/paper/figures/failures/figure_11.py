"""Figure 11: a spine (T1) stops and comes back."""

from __future__ import annotations

from collections.abc import Sequence

from judging import Run
from paper import measuring, readings
from paper.breaking import SINGLE_PATH, fails, single_path
from paper.clock import Clock
from paper.cluster import B
from paper.figure import Chart, Figure, Measured, PaperCurve, Part
from paper.pair import DILUTED, LOWEST, lowest_sample, pair

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


READ = readings.of("11")
FIGURE = Figure(
    name="11",
    title="A T1 switch goes down, and comes back",
    caption=(
        "Two hosts under different leaves of cluster B, both ways, 4 queue pairs. A spine forwards nothing for a"
        " while, and no host sees a link go down."
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
            x=f"units of {UNIT} round trips (down at 2, up at 4)",
            y="both directions, Gb/s",
            ours={"mrc:rate": "MRC"},
            paper=[PaperCurve("MRC", [(place + 0.5, 1533) for place in range(6)])],
        ),
    ),
    compression=f"Time is in units of {UNIT} base round trips; the paper's instants do not matter here.",
)
