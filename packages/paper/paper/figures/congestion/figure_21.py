"""Figure 21: the incast of figure 18 under PFC alone, beside MRC."""

from collections.abc import Sequence

from paper.figure import Part
from paper.incast import SHORT_SECOND, seven_to_one
from paper.parameters import MRC, PFC, PFC_8QP

SECOND = 10
"""Round trips to a second of the paper: without congestion control rates are steady after a few."""
SEEDS = range(2, 21)  # other places in the hash


def parts(short: bool) -> Sequence[Part]:
    second = SHORT_SECOND if short else SECOND
    return [
        seven_to_one("mrc", MRC, 8, second),
        seven_to_one("1qp", PFC, 1, second),
        seven_to_one("8qp", PFC_8QP, 8, second),
        *(seven_to_one(f"1qp-seed-{seed}", PFC, 1, second, seed) for seed in SEEDS),
        *(seven_to_one(f"8qp-seed-{seed}", PFC_8QP, 8, second, seed) for seed in SEEDS),
    ]
