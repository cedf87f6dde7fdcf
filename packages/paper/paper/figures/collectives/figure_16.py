"""Figure 16: ring all-reduce of 64 NICs with random loss."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from paper.explanations import RING
from paper.figure import Experiment, Figure, Part
from paper.random_loss import LOSSES, PROFILE, TRANSPORTS, LossyCollective, part_name, quantity_name

RANKS = 64
SIZES = {0.0: (2, 4, 8, 16, 32, 64), 0.1: (2, 4, 8, 16, 32), 1.0: (2, 4, 8, 16, 32)}  # MB, by loss in percent
RING_16 = LossyCollective(
    figure="16",
    kind="all_reduce",
    factor=2 * (RANKS - 1) / RANKS,  # nccl-tests: bus bandwidth over size a time
    sizes=SIZES,
)
BARE, LEAF = "no device profile: hosts cost nothing, losses are repaired at once", "neighbouring ranks under one leaf"


def parts(short: bool) -> Sequence[Part]:
    ring = partial(RING_16.part, short=short)
    bare = [
        ring(transport, loss, 2, knob="-bare", profiled=False) for transport in list(TRANSPORTS)[:2] for loss in LOSSES
    ]
    return [*RING_16.parts(short), *bare, ring("RoCE 1 QP", 0.0, 16, knob="-leaf", placement="leaf")]


FIGURE = Figure(
    name="16",
    title="Ring all-reduce of 64 NICs with random loss",
    caption=(
        "64 hosts of cluster C in one ring, placed by rail, so that each hop crosses a spine; each of 126 steps waits"
        " for the one before, slice by slice. Every NIC port loses 0, 0.1 or 1 % of what arrives. MRC runs on 4 planes"
        f" of 100 Gb/s, RoCE on one of 400 with ECMP. Hosts and NICs cost what the device profile {PROFILE.name} says."
        " With 16 queue pairs each slice goes over all of them. RoCE's rows with one are intervals"
        " over 20 seeds if `--intervals` made the page, or else one draw of the hash and of losses."
    ),
    parts=parts,
    quantities=RING_16.quantities(RING),
    charts=RING_16.charts(),
    orders=RING_16.orders(),
    experiments=(
        *(
            Experiment(BARE, quantity_name(transport, loss, 2), f"{part_name(transport, loss, 2)}-bare:busbw")
            for transport in list(TRANSPORTS)[:2]
            for loss in LOSSES
        ),
        Experiment(LEAF, quantity_name("RoCE 1 QP", 0.0, 16), f"{part_name('RoCE 1 QP', 0.0, 16)}-leaf:busbw"),
    ),
    compression=(
        "Time is not compressed, but sizes end at 64 MB, with losses at 32 MB: a ring of 64 sends 2.1 million data"
        " packets for 64 MB, a minute of one processor. The paper goes on to 16 GB."
    ),
)
