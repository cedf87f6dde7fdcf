"""Figure 9b: half of a NIC's links flap at the same time."""

from __future__ import annotations

from collections.abc import Sequence

from judging import Run
from paper import measuring, readings
from paper.breaking import KEPT, SINGLE_PATH, fails, kept, single_path
from paper.clock import Clock
from paper.cluster import B
from paper.figure import Chart, Figure, Measured, PaperCurve, Part
from paper.pair import DILUTED, SAMPLE_S, pair

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


READ = readings.of("9b")
FIGURE = Figure(
    name="9b",
    title="4 of 8 NIC links flap",
    caption="Two hosts of cluster B, both ways, 4 queue pairs. Half of one host's ports are down from 5.3 s to 17 s.",
    parts=parts,
    quantities=(
        READ.quantity("before", "mrc:before", "mean of both directions", fails=fails("before", SINGLE_PATH)),
        READ.quantity(
            "4 links down", "mrc:half", "the same, from a second after the failure on", fails=fails("half", SINGLE_PATH)
        ),
        READ.quantity("after", "mrc:after", "the same, from a second after the return on", fails=fails("after", KEPT)),
        READ.quantity(
            "sample after the return",
            "mrc:first sample after",
            "what a sample of 0.22 real seconds shows: the steady rate less the bits that the transient cost",
            powerless=DILUTED,
        ),
    ),
    charts=(
        Chart(
            x="seconds of the paper",
            y="both directions, Gb/s",
            ours={"mrc:rate": "MRC"},
            paper=[
                PaperCurve(
                    "MRC", [(2.5, 1533), (5.0, 1533), (5.8, 761), (11, 761), (16.8, 761), (17.3, 1533), (20, 1533)]
                )
            ],
        ),
    ),
    compression=(
        f"The paper's seconds are shortened {FACTOR:,} times: 5.3 s before the failure are about 45 round trips, and"
        " a sample of"
        " 0.22 s is as long as the agents' own. Transients last round trips and are not shortened, so they look"
        " wider here."
    ),
)
