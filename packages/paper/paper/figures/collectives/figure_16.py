"""Figure 16: ring all-reduce of 64 NICs with random loss."""

from collections.abc import Sequence

from paper.figure import Part
from paper.random_loss import RANKS, LossyCollective

COLLECTIVE = LossyCollective("16", "all_reduce", factor=2 * (RANKS - 1) / RANKS)


def parts(short: bool) -> Sequence[Part]:
    return [*COLLECTIVE.parts(short), COLLECTIVE.part("RoCE 1 QP", 0.0, 16, short, knob="-leaf", by_rail=False)]
