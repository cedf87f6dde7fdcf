"""Figures 12 and 13: a path begins to lose a fifth of its packets, and another takes over."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from judging import Run
from paper import measuring, readings
from paper.breaking import OBLIVIOUS, SINGLE_PATH, fails, oblivious, single_path
from paper.clock import Clock
from paper.cluster import B_TWO
from paper.figure import Chart, Figure, Measured, PaperCurve, Part
from paper.pair import DILUTED, LOWEST, lowest_sample, pair
from paper.parameters import mrc

FACTOR = 8_000
BEFORE_S, END_S = 10.0, 24.0
SHOWN_FROM_S = 41.0  # the paper's axis at our beginning: EV-A begins to drop at 51 s
EV_A, EV_B = 0x0000_C000, 0x0000_C001
ONE_AND_ONE = mrc({"evs_active": 8, "evs_backup": 8})
SEED = 1
"""With which EV-A is the one in rotation at the beginning."""
READ = readings.of("12")


def parts(short: bool) -> Sequence[Part]:
    clock = Clock.compressed(B_TWO, FACTOR * (4 if short else 1))

    def measure(run: Run) -> Measured:
        mean = measuring.rate(run, clock, 0, END_S)
        settled = BEFORE_S + 30 * B_TWO.base_rtt_ns / clock.unit_ns
        rates = {ev: measuring.path_rate(run, clock, "h0", ev, settled, END_S) for ev in (EV_A, EV_B)}
        before, before_b = (measuring.path_rate(run, clock, "h0", ev, 0, BEFORE_S) for ev in (EV_A, EV_B))
        numbers = {
            "mean": mean,
            "lowest": lowest_sample(run, clock, [BEFORE_S], mean),
            "A share": rates[EV_A] / before,
            "B share before": before_b / before,
            "plane": (rates[EV_A] + rates[EV_B]) / (before + before_b),
            "left after": measuring.left_after_s(run, "h0", EV_A, clock.run_ns(run, BEFORE_S)),
        }
        curves = {
            name: measuring.path_curve(run, clock, "h0", ev, 0, END_S, 2 * clock.sample, SHOWN_FROM_S)
            for name, ev in (("A", EV_A), ("B", EV_B))
        }
        return Measured(numbers, curves)

    faults = [clock.fault(BEFORE_S, "loss", "p0l0>p0s0", value=20.0)]
    run = replace(pair(clock, END_S, faults, measure, sample_paths=True, qps=1, transport=ONE_AND_ONE), seed=SEED)
    return [run, oblivious(run), single_path(run)]


FIGURE = Figure(
    name="12",
    title="12 and 13: a path loses packets, another takes over",
    caption=(
        "Two hosts of cluster B on 16 paths, two in each of 8 planes: one in rotation, one to replace it. Both ways, a"
        " queue pair each. At 51 s the path of EV-A begins to lose 20 % of its packets; EV-B is the other path of that"
        " plane."
    ),
    parts=parts,
    quantities=(
        READ.quantity(
            "mean", "mrc:mean", "mean of both directions, failure included", fails=fails("mean", SINGLE_PATH)
        ),
        READ.quantity("lowest sample", "mrc:lowest", LOWEST, powerless=DILUTED),
        READ.quantity(
            "EV-B's load before",
            "mrc:B share before",
            "packets sent by EV-B over those by EV-A before the failure",
            scale=1,
            fails=fails("B share before", OBLIVIOUS),
        ),
        READ.quantity(
            "EV-A's load after",
            "mrc:A share",
            "packets sent by EV-A from 30 round trips after on, over before",
            scale=1,
            fails=fails("A share", OBLIVIOUS),
        ),
        READ.quantity(
            "the plane's load after",
            "mrc:plane",
            "packets by both EVs of the plane, after over before",
            powerless="Only a transport that empties a plane for one bad path of two would differ.",
        ),
        READ.quantity(
            "EV-A left after",
            "mrc:left after",
            "from the first loss possible to EV-A ASSUMED_BAD",
            scale=0.22,
            powerless="A run lasts 3 ms, and the paper's sample 220.",
        ),
    ),
    charts=(
        Chart(
            x="seconds of the paper",
            y="packets of the path, Gb/s",
            ours={"mrc:A": "EV-A", "mrc:B": "EV-B"},
            paper=[
                PaperCurve("EV-A", [(43, 96), (47, 96), (50, 96), (52, 0), (56, 0), (62, 0)]),
                PaperCurve("EV-B", [(43, 0), (47, 0), (50, 0), (52, 96), (56, 96), (62, 96)]),
            ],
        ),
    ),
    compression=(
        f"The paper's seconds are shortened {FACTOR:,} times; time before the loss is cut away. The paper's points"
        " in the"
        " chart are its statement (Active, Inactive), drawn at all of a plane and nothing."
    ),
)
