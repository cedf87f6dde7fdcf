"""Figure 17: all-to-all of 64 NICs with random loss."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from paper import losing
from paper.figure import Experiment, Figure, Part
from paper.parameters import ROCE
from paper.whys import EXCHANGE

RANKS = 64
FACTOR = (RANKS - 1) / RANKS  # nccl-tests: bus bandwidth over size a time
TIMEOUT = 7  # 0.13 ms, in an experiment
SIZES = (2, 8, 32, 64)  # MB that are run here
PAPER = losing.table(
    (2, 8, 32, 128),
    {
        ("MRC", 0.0): (150, 281, 362, 400),
        ("RoCE 1 QP", 0.0): (149, 264, 317, 330),
        ("RoCE 16 QP", 0.0): (138, 261, 323, 335),
        ("MRC", 0.1): (51, 124, 229, 269),
        ("RoCE 1 QP", 0.1): (5, 17, 39, 102),
        ("RoCE 16 QP", 0.1): (5, 17, 35, 83),
        ("MRC", 1.0): (33, 90, 176, 174),
        ("RoCE 1 QP", 1.0): (1, 3, 8, 22),
        ("RoCE 16 QP", 1.0): (1, 3, 7, 21),
    },
)


def parts(short: bool) -> Sequence[Part]:
    exchange = partial(losing.part, "all_to_all", FACTOR, short=short)
    return [
        *losing.parts("all_to_all", FACTOR, PAPER, SIZES[:-1], short),
        exchange("MRC", 0.0, 2, 150, knob="-again", rounds=2),
        exchange("RoCE 1 QP", 0.0, 2, 149, knob="-again", rounds=2),
        exchange("RoCE 1 QP", 0.0, 8, 264, knob="-lossy", other=ROCE),
        exchange("RoCE 1 QP", 0.0, 8, 264, knob="-no-control", settings={"dcqcn": False}),
        *(
            exchange("RoCE 1 QP", loss, size, gbps, knob="-lossy", other=ROCE)
            for loss, size, gbps in ((0.1, 2, 5), (1.0, 2, 1), (0.1, 8, 17), (1.0, 8, 3))
        ),
        exchange("RoCE 1 QP", 0.1, 8, 17, knob="-timeout", settings={"timeout": TIMEOUT}),
        exchange("MRC", 0.0, 2, 150, knob="-no-penalty", settings={"rcv_penalty": False}),
        exchange("MRC", 0.0, 2, 150, knob="-no-control", settings={"congestion": "fixed_window"}),
        exchange("MRC", 0.0, 8, 281, knob="-no-penalty", settings={"rcv_penalty": False}),
        exchange("RoCE 1 QP", 0.0, 2, 149, knob="-no-control", settings={"dcqcn": False}),
        exchange("RoCE 1 QP", 0.0, 32, 317, knob="-no-control", settings={"dcqcn": False}),
        *losing.parts("all_to_all", FACTOR, PAPER, SIZES[-1:], short),
    ]


FIGURE = Figure(
    name="17",
    title="All-to-all of 64 NICs with random loss",
    caption=(
        "Each of 64 hosts of cluster C sends a 64th of its data to every other. Every NIC port loses 0, 0.1 or 1 %"
        " of what it sends. MRC runs on 4 planes of 100 Gb/s, RoCE on one of 400 with ECMP."
    ),
    parts=parts,
    quantities=losing.quantities(PAPER, SIZES, EXCHANGE),
    charts=losing.charts(PAPER, SIZES),
    experiments=(
        Experiment("the second of two rounds", "MRC, 0 % loss, 2 MB", "mrc-0-2-again:busbw"),
        Experiment("the second of two rounds", "RoCE 1 QP, 0 % loss, 2 MB", "roce-1-qp-0-2-again:busbw"),
        Experiment("no DCQCN", "RoCE 1 QP, 0 % loss, 8 MB", "roce-1-qp-0-8-no-control:busbw"),
        Experiment(
            "lossy switches, ACK timeout 0.13 ms instead of 4.2",
            "RoCE 1 QP, 0 % loss, 8 MB",
            "roce-1-qp-0-8-lossy:busbw",
        ),
        *(
            Experiment(
                "lossy switches, ACK timeout 0.13 ms instead of 4.2",
                f"RoCE 1 QP, {loss} % loss, {size} MB",
                f"roce-1-qp-{loss}-{size}-lossy:busbw",
            )
            for loss, size in (("0.1", 2), ("0.1", 8), ("1", 2), ("1", 8))
        ),
        Experiment("ACK timeout 0.13 ms", "RoCE 1 QP, 0.1 % loss, 8 MB", "roce-1-qp-0.1-8-timeout:busbw"),
        Experiment("no penalty by the receiver", "MRC, 0 % loss, 2 MB", "mrc-0-2-no-penalty:busbw"),
        Experiment("no penalty by the receiver", "MRC, 0 % loss, 8 MB", "mrc-0-8-no-penalty:busbw"),
        Experiment("a fixed window instead of NSCC", "MRC, 0 % loss, 2 MB", "mrc-0-2-no-control:busbw"),
        Experiment("no DCQCN", "RoCE 1 QP, 0 % loss, 2 MB", "roce-1-qp-0-2-no-control:busbw"),
        Experiment("no DCQCN", "RoCE 1 QP, 0 % loss, 32 MB", "roce-1-qp-0-32-no-control:busbw"),
    ),
    compression=(
        "Time is not compressed, but sizes end at 64 MB, of which the paper has no number: an all-to-all of 64 takes"
        " 128 times its size of memory (9 GB with everything else) and sends a million data packets there. The paper"
        " goes on to 16 GB."
    ),
)
