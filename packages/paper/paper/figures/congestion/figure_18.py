"""Figure 18: seven hosts write to one, beside a victim flow."""

from collections.abc import Sequence
from dataclasses import replace

from paper.breaking import IN_FRAMES, host_in_frames
from paper.cluster import D
from paper.figure import Part
from paper.incast import SHORT_SECOND, seven_to_one
from paper.parameters import MRC, PFC_8QP, PFC_DCQCN, PFC_DCQCN_8QP

SECOND = 20
"""Round trips to a second of the paper."""
MRC_SECOND = 200
"""With MRC, whose flows take thousands of round trips to come to equal shares."""
SEEDS = range(2, 21)  # other places in the hash
AGGRESSIVE = replace(
    PFC_DCQCN_8QP, name="roce-pfc-dcqcn-aggressive", settings={**PFC_DCQCN_8QP.settings, "dcqcn_setting": "aggressive"}
)


def parts(short: bool) -> Sequence[Part]:
    second, mrc_second = (SHORT_SECOND, SHORT_SECOND) if short else (SECOND, MRC_SECOND)
    return [
        seven_to_one("mrc", MRC, 1, mrc_second),
        seven_to_one("1qp", PFC_DCQCN, 1, second),
        seven_to_one("8qp", PFC_DCQCN_8QP, 8, second),
        seven_to_one("pfc", PFC_8QP, 8, second),
        *(seven_to_one(f"1qp-seed-{seed}", PFC_DCQCN, 1, second, seed) for seed in SEEDS),
        *(seven_to_one(f"8qp-seed-{seed}", PFC_DCQCN_8QP, 8, second, seed) for seed in SEEDS),
        seven_to_one("8qp-aggressive", AGGRESSIVE, 8, second),
        seven_to_one(f"mrc-{IN_FRAMES}", MRC, 1, mrc_second, cluster=host_in_frames(D)),
    ]
