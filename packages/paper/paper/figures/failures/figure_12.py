"""Figures 12 and 13: a path begins to lose a fifth of its packets, and another takes over."""

from collections.abc import Sequence
from dataclasses import replace

from judging import Run
from paper import measuring
from paper.breaking import oblivious, single_path
from paper.clock import Clock
from paper.cluster import B_TWO
from paper.figure import Measured, Part
from paper.pair import lowest_sample, pair
from paper.parameters import mrc

FACTOR = 8_000
BEFORE_S, END_S = 10.0, 24.0
SHOWN_FROM_S = 41.0  # the paper's axis at our beginning: EV-A begins to drop at 51 s
EV_A, EV_B = 0x0000_C000, 0x0000_C001
ONE_AND_ONE = mrc({"evs_active": 8, "evs_backup": 8})
SEED = 1
"""With which EV-A is the one in rotation at the beginning."""


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
            name: measuring.path_curve(run, clock, "h0", ev, END_S, SHOWN_FROM_S)
            for name, ev in (("A", EV_A), ("B", EV_B))
        }
        return Measured(numbers, curves)

    faults = [clock.fault(BEFORE_S, "loss", "p0l0>p0s0", value=20.0)]
    run = replace(pair(clock, END_S, faults, measure, sample_paths=True, qps=1, transport=ONE_AND_ONE), seed=SEED)
    return [run, oblivious(run), single_path(run)]
