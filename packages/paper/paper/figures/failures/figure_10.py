"""Figure 10: a leaf (T0) goes down under two hosts that talk through it."""

from __future__ import annotations

from collections.abc import Sequence

from judging import Run
from paper import measuring, readings
from paper.breaking import SINGLE_PATH, fails, single_path
from paper.clock import Clock
from paper.cluster import B
from paper.explanations import FIRMWARE
from paper.figure import Chart, Experiment, Figure, Measured, PaperCurve, Part
from paper.pair import LOWEST, lowest_sample, pair

UNIT = 30  # round trips
DOWN, END = 2.0, 5.0


def parts(short: bool) -> Sequence[Part]:
    clock = Clock.round_trips(B, 12 if short else UNIT)

    def measure(run: Run) -> Measured:
        after = measuring.rate(run, clock, DOWN + 0.5, END)
        numbers = {
            "before": measuring.rate(run, clock, 0.5, DOWN),
            "after": after,
            "lowest": lowest_sample(run, clock, [DOWN], after),
        }
        return Measured(numbers, {"rate": measuring.curve(run, clock, 0, END, clock.sample)})

    def dying(name: str, verb: str) -> Part:
        faults = [clock.fault(DOWN, verb, f"h{host}-p0l0") for host in range(2)]
        return pair(clock, END, faults, measure, hosts=("h0", "h1"), name=name)

    run = dying("mrc", "link-down")
    return [run, dying("silent", "blackhole"), single_path(run)]


READ = readings.of("10")
FIGURE = Figure(
    name="10",
    title="A T0 switch goes down",
    caption=(
        "Two hosts under one leaf of cluster B, both ways, 4 queue pairs. The leaf of one plane dies, and both"
        " hosts' ports lose carrier."
    ),
    parts=parts,
    quantities=(
        READ.quantity("before", "mrc:before", "mean of both directions", fails=fails("before", SINGLE_PATH)),
        READ.quantity(
            "after", "mrc:after", "the same, from half a unit after the failure on", fails=fails("after", SINGLE_PATH)
        ),
        READ.quantity(
            "lowest sample",
            "mrc:lowest",
            LOWEST,
            scale=1533,
            unreachable="In the paper one sample of 0.22 s is empty. " + FIRMWARE,
        ),
    ),
    charts=(
        Chart(
            x=f"units of {UNIT} round trips",
            y="both directions, Gb/s",
            ours={"mrc:rate": "MRC"},
            paper=[
                PaperCurve("MRC", [(0.5, 1533), (1, 1533), (1.5, 1533), (2.05, 0), (3, 1338), (4, 1338), (5, 1338)])
            ],
        ),
    ),
    experiments=(
        Experiment("the leaf takes every packet silently, no NIC loses carrier", "lowest sample", "silent:lowest"),
        Experiment("the same", "after", "silent:after"),
    ),
    compression=f"Time is in units of {UNIT} base round trips; the paper's instants do not matter here.",
)
