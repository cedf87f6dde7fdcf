"""Figure 17: all-to-all of 64 NICs with random loss."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from paper.breaking import IN_FRAMES, IN_FRAMES_WORDS, host_in_frames
from paper.cluster import C
from paper.explanations import EXCHANGE
from paper.figure import Experiment, Figure, Part
from paper.random_loss import LOSSES, PROFILE, TRANSPORTS, LossyCollective, part_name, quantity_name

RANKS = 64
SIZES = {0.0: (2, 4, 8, 16, 32, 64), 0.1: (2, 4, 8, 16, 32), 1.0: (2, 4, 8, 16, 32)}  # MB, by loss in percent
EXCHANGE_17 = LossyCollective(
    figure="17",
    kind="all_to_all",
    factor=(RANKS - 1) / RANKS,  # nccl-tests: bus bandwidth over size a time
    sizes=SIZES,
)
BARE = "no device profile: hosts cost nothing, losses are repaired at once"


def parts(short: bool) -> Sequence[Part]:
    exchange = partial(EXCHANGE_17.part, short=short)
    bare = [
        exchange(transport, loss, 2, knob="-bare", profiled=False)
        for transport in list(TRANSPORTS)[:2]
        for loss in LOSSES
    ]
    return [
        *EXCHANGE_17.parts(short),
        *bare,
        *(exchange("MRC", loss, 2, knob=f"-{IN_FRAMES}", cluster=host_in_frames(C)) for loss in LOSSES),
        exchange("MRC", 0.0, 2, knob="-penalty", settings={"rcv_penalty": True}),
        exchange("RoCE 1 QP", 0.0, 8, knob="-no-control", settings={"dcqcn": False}),
    ]


FIGURE = Figure(
    name="17",
    title="All-to-all of 64 NICs with random loss",
    caption=(
        "Each of 64 hosts of cluster C sends a 64th of its data to every other. Every NIC port loses 0, 0.1 or 1 %"
        " of what arrives. MRC runs on 4 planes of 100 Gb/s, RoCE on one of 400 with ECMP. Hosts and NICs cost what the"
        f" device profile {PROFILE.name} says. RoCE 16 QP has two queue pairs per peer here, a slice on each: sixteen"
        " take seven times as long to run. RoCE's rows are intervals over 20 seeds if"
        " `--intervals` made the page, or else one draw of the hash and of losses."
    ),
    parts=parts,
    quantities=EXCHANGE_17.quantities(EXCHANGE),
    charts=EXCHANGE_17.charts(),
    orders=EXCHANGE_17.orders(),
    experiments=(
        *(
            Experiment(BARE, quantity_name(transport, loss, 2), f"{part_name(transport, loss, 2)}-bare:busbw")
            for transport in list(TRANSPORTS)[:2]
            for loss in LOSSES
        ),
        *(
            Experiment(IN_FRAMES_WORDS, quantity_name("MRC", loss, 2), f"{part_name('MRC', loss, 2)}-{IN_FRAMES}:busbw")
            for loss in LOSSES
        ),
        Experiment("the receiver's penalty", quantity_name("MRC", 0.0, 2), "mrc-0-2-penalty:busbw"),
        Experiment("no DCQCN", quantity_name("RoCE 1 QP", 0.0, 8), "roce-1-qp-0-8-no-control:busbw"),
    ),
    compression=(
        "Time is not compressed, but sizes end at 64 MB, with losses at 32 MB. The paper goes on to 16 GB. Its curve of"
        " MRC leaves the frame at 128 MB, above 400 Gb/s, which is more than the payload that 4 times 100 Gb/s can"
        " carry."
    ),
)
