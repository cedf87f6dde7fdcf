"""Figures 12 and 13: a path begins to lose a fifth of its packets, and another takes over."""

from __future__ import annotations

from collections.abc import Sequence

from judging.run import Run
from paper import measuring
from paper.clock import Clock
from paper.cluster import B_TWO
from paper.figure import Chart, Figure, Measured, PaperCurve, Part, Quantity
from paper.pair import LOWEST, lowest_sample, pair

FACTOR = 8_000
BEFORE_S, END_S = 10.0, 24.0
SHOWN_FROM_S = 41.0  # the paper's axis at our beginning: EV-A begins to drop at 51 s
EV_A, EV_B = 0x0000_C000, 0x0000_C001


def parts(short: bool) -> Sequence[Part]:
    clock = Clock.compressed(B_TWO, FACTOR * (4 if short else 1))

    def measure(run: Run) -> Measured:
        mean = measuring.rate(run, clock, 0, END_S)
        settled = BEFORE_S + 30 * B_TWO.base_rtt_ns / clock.unit_ns
        rates = {ev: measuring.path_rate(run, clock, "h0", ev, settled, END_S) for ev in (EV_A, EV_B)}
        before = measuring.path_rate(run, clock, "h0", EV_A, 0, BEFORE_S)
        numbers = {
            "mean": mean,
            "lowest": lowest_sample(run, clock, [BEFORE_S], mean),
            "A share": rates[EV_A] / before,
            "plane": (rates[EV_A] + rates[EV_B]) / (2 * before),
            "left after": measuring.left_after_s(run, "h0", EV_A, clock.run_ns(run, BEFORE_S)),
        }
        curves = {
            name: measuring.path_curve(run, clock, "h0", ev, 0, END_S, 2 * clock.sample, SHOWN_FROM_S)
            for name, ev in (("A", EV_A), ("B", EV_B))
        }
        return Measured(numbers, curves)

    faults = [clock.fault(BEFORE_S, "loss", "p0l0>p0s0", value=20.0)]
    return [pair(clock, END_S, faults, measure, sample_paths=True)]


FIGURE = Figure(
    name="12",
    title="12 and 13: a path loses packets, another takes over",
    caption=(
        "Two hosts of cluster B on 16 paths, two in each of 8 planes, both ways, 4 queue pairs. At 51 s the path of"
        " EV-A begins to lose 20 % of its packets. EV-A and EV-B are the two paths of that plane."
    ),
    parts=parts,
    quantities=(
        Quantity("mean", 1531, "Gb/s", "mrc:mean", "mean of both directions, failure included"),
        Quantity("lowest sample", 1515, "Gb/s", "mrc:lowest", LOWEST),
        Quantity(
            "EV-A's load after",
            0,
            "of before",
            "mrc:A share",
            "packets sent by EV-A from 30 round trips after on",
            scale=1,
        ),
        Quantity(
            "the plane's load after", 1, "of before", "mrc:plane", "packets by both EVs of the plane, after over before"
        ),
        Quantity(
            "EV-A left after",
            0,
            "s",
            "mrc:left after",
            "from the first loss possible to EV-A ASSUMED_BAD; paper: at once",
            scale=0.22,
        ),
    ),
    charts=(
        Chart(
            x="seconds of the paper",
            y="packets of the path, Gb/s",
            ours={"mrc:A": "EV-A", "mrc:B": "EV-B"},
            paper=[
                PaperCurve("EV-A", [(43, 48), (47, 48), (50, 48), (52, 0), (56, 0), (62, 0)]),
                PaperCurve("EV-B", [(43, 48), (47, 48), (50, 48), (52, 96), (56, 96), (62, 96)]),
            ],
        ),
    ),
    compression=(
        f"The paper's seconds are shortened {FACTOR:,} times; time before the loss is cut away. The paper's points"
        " in the"
        " chart are its statement (EV-A inactive at once, EV-B takes over, line rate), drawn at half and all of a"
        " plane."
    ),
)
