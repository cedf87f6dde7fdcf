"""Figure 16: ring all-reduce of 64 NICs with random loss."""

from collections.abc import Sequence
from functools import partial

from paper.figure import Part
from paper.random_loss import LOSSES, TRANSPORTS, LossyCollective

RANKS = 64
SIZES = {0.0: (2, 4, 8, 16, 32, 64), 0.1: (2, 4, 8, 16, 32), 1.0: (2, 4, 8, 16, 32)}  # MB, by loss in percent
COLLECTIVE = LossyCollective(
    figure="16",
    kind="all_reduce",
    factor=2 * (RANKS - 1) / RANKS,  # nccl-tests: bus bandwidth over size a time
    sizes=SIZES,
)


def parts(short: bool) -> Sequence[Part]:
    ring = partial(COLLECTIVE.part, short=short)
    bare = [
        ring(transport, loss, 2, knob="-bare", profiled=False) for transport in list(TRANSPORTS)[:2] for loss in LOSSES
    ]
    return [*COLLECTIVE.parts(short), *bare, ring("RoCE 1 QP", 0.0, 16, knob="-leaf", by_rail=False)]
