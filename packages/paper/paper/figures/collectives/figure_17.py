"""Figure 17: all-to-all of 64 NICs with random loss."""

from collections.abc import Sequence
from functools import partial

from paper.breaking import IN_FRAMES, host_in_frames
from paper.cluster import C
from paper.figure import Part
from paper.random_loss import LOSSES, RANKS, LossyCollective

COLLECTIVE = LossyCollective("17", "all_to_all", factor=(RANKS - 1) / RANKS)


def parts(short: bool) -> Sequence[Part]:
    exchange = partial(COLLECTIVE.part, short=short)
    return [
        *COLLECTIVE.parts(short),
        *(exchange("MRC", loss, 2, knob=f"-{IN_FRAMES}", cluster=host_in_frames(C)) for loss in LOSSES),
        exchange("MRC", 0.0, 2, knob="-penalty", settings={"rcv_penalty": True}),
        exchange("RoCE 1 QP", 0.0, 8, knob="-no-control", settings={"dcqcn": False}),
    ]
