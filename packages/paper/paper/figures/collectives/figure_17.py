"""Figure 17: all-to-all of 64 NICs with random loss."""

from collections.abc import Sequence
from functools import partial

from paper.breaking import IN_FRAMES, host_in_frames
from paper.cluster import C
from paper.figure import Part
from paper.random_loss import LOSSES, TRANSPORTS, LossyCollective

RANKS = 64
SIZES = {0.0: (2, 4, 8, 16, 32, 64), 0.1: (2, 4, 8, 16, 32), 1.0: (2, 4, 8, 16, 32)}  # MB, by loss in percent
COLLECTIVE = LossyCollective(
    figure="17",
    kind="all_to_all",
    factor=(RANKS - 1) / RANKS,  # nccl-tests: bus bandwidth over size a time
    sizes=SIZES,
)


def parts(short: bool) -> Sequence[Part]:
    exchange = partial(COLLECTIVE.part, short=short)
    bare = [
        exchange(transport, loss, 2, knob="-bare", profiled=False)
        for transport in list(TRANSPORTS)[:2]
        for loss in LOSSES
    ]
    return [
        *COLLECTIVE.parts(short),
        *bare,
        *(exchange("MRC", loss, 2, knob=f"-{IN_FRAMES}", cluster=host_in_frames(C)) for loss in LOSSES),
        exchange("MRC", 0.0, 2, knob="-penalty", settings={"rcv_penalty": True}),
        exchange("RoCE 1 QP", 0.0, 8, knob="-no-control", settings={"dcqcn": False}),
    ]
