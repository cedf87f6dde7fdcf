"""Figure 16: ring all-reduce of 64 NICs with random loss."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from paper import losing
from paper.figure import Experiment, Figure, Part
from paper.parameters import ROCE
from paper.whys import SOFTWARE

RANKS = 64
FACTOR = 2 * (RANKS - 1) / RANKS  # nccl-tests: bus bandwidth over size a time
LOSSY = "lossy switches, ACK timeout 0.13 ms instead of 4.2"
LATE_NS = 40_000  # that a gap waits longer before its packets count as lost, in an experiment
SIZES = (2, 8, 32, 64)  # MB that are run here
PAPER = losing.table(
    (2, 8, 32, 64),
    {
        ("MRC", 0.0): (23, 69, 149, 183),
        ("RoCE 1 QP", 0.0): (23, 68, 145, 178),
        ("RoCE 16 QP", 0.0): (22, 65, 142, 179),
        ("MRC", 0.1): (8, 20, 50, 81),
        ("RoCE 1 QP", 0.1): (1, 5, 9, 20),
        ("RoCE 16 QP", 0.1): (1, 3, 8, 13),
        ("MRC", 1.0): (4, 9, 27, 45),
        ("RoCE 1 QP", 1.0): (0, 1, 2, 3),
        ("RoCE 16 QP", 1.0): (0, 1, 1, 2),
    },
)


def parts(short: bool) -> Sequence[Part]:
    ring = partial(losing.part, "all_reduce", FACTOR, short=short)
    return [
        *losing.parts("all_reduce", FACTOR, PAPER, SIZES, short),
        ring("MRC", 0.1, 2, 8, knob="-late", settings={"jitter_ns": LATE_NS}),
        ring("MRC", 1.0, 2, 4, knob="-late", settings={"jitter_ns": LATE_NS}),
        ring("RoCE 1 QP", 0.1, 2, 1, knob="-lossy", other=ROCE),
        ring("RoCE 1 QP", 1.0, 2, 0, knob="-lossy", other=ROCE),
        ring("RoCE 1 QP", 0.1, 8, 5, knob="-lossy", other=ROCE),
        ring("RoCE 1 QP", 0.0, 2, 23, knob="-again", rounds=2),
        ring("MRC", 0.0, 2, 23, knob="-again", rounds=2),
    ]


FIGURE = Figure(
    name="16",
    title="Ring all-reduce of 64 NICs with random loss",
    caption=(
        "64 hosts of cluster C in one ring, each of 126 steps waits for the one before. Every NIC port loses 0, 0.1"
        " or 1 % of what it sends. MRC runs on 4 planes of 100 Gb/s, RoCE on one of 400 with ECMP."
    ),
    parts=parts,
    quantities=losing.quantities(PAPER, SIZES, SOFTWARE),
    charts=losing.charts(PAPER, SIZES),
    experiments=(
        Experiment("the second of two rounds", "MRC, 0 % loss, 2 MB", "mrc-0-2-again:busbw"),
        Experiment("the second of two rounds", "RoCE 1 QP, 0 % loss, 2 MB", "roce-1-qp-0-2-again:busbw"),
        Experiment("a gap counts as a loss 40 µs later", "MRC, 0.1 % loss, 2 MB", "mrc-0.1-2-late:busbw"),
        Experiment("a gap counts as a loss 40 µs later", "MRC, 1 % loss, 2 MB", "mrc-1-2-late:busbw"),
        Experiment(LOSSY, "RoCE 1 QP, 0.1 % loss, 2 MB", "roce-1-qp-0.1-2-lossy:busbw"),
        Experiment(LOSSY, "RoCE 1 QP, 1 % loss, 2 MB", "roce-1-qp-1-2-lossy:busbw"),
        Experiment(LOSSY, "RoCE 1 QP, 0.1 % loss, 8 MB", "roce-1-qp-0.1-8-lossy:busbw"),
    ),
    compression=(
        "Time is not compressed, but sizes end at 64 MB: a ring of 64 takes 128 times its size of memory (8.8 GB with"
        " everything else) and sends 2.1 million data packets there, in one to five minutes. The paper goes on to"
        " 16 GB."
    ),
)
