"""Figure 21: the incast of figure 18 under PFC alone, beside MRC."""

from __future__ import annotations

from collections.abc import Sequence

from paper.figure import Chart, Experiment, Figure, PaperCurve, Part, Quantity
from paper.incast import LENGTH_S, SECOND, flow_curves, seven_to_one
from paper.parameters import MRC, PFC, PFC_8QP
from paper.whys import SHARED_LINK

SEEDS = (2, 3, 4, 5)  # of experiments: other places in the hash


def parts(short: bool) -> Sequence[Part]:
    return [
        seven_to_one("mrc", MRC, 8, short),
        seven_to_one("1qp", PFC, 1, short),
        seven_to_one("8qp", PFC_8QP, 8, short),
        *(seven_to_one(f"1qp-seed-{seed}", PFC, 1, short, seed) for seed in SEEDS),
        seven_to_one("8qp-seed-2", PFC_8QP, 8, short, 2),
    ]


def chart(part: str, title: str, victim_gbps: float) -> Chart:
    paper = PaperCurve("victim", [(at, victim_gbps) for at in range(2, LENGTH_S, 3)])
    return Chart("seconds of the paper", "Gb/s", flow_curves(part), [paper], title)


FIGURE = Figure(
    name="21",
    title="7:1 incast and a victim flow, PFC alone",
    caption=(
        "The same flows as in figure 18. RoCE has PFC and no congestion control: pauses spread from the full leaf to"
        " the spines, and the victim's packets wait behind those of the incast."
    ),
    parts=parts,
    quantities=(
        Quantity("MRC, victim", 389, "Gb/s", "mrc:victim", "mean"),
        Quantity("PFC alone, 1 QP, victim", 97, "Gb/s", "1qp:victim", "mean", why=SHARED_LINK),
        Quantity("PFC alone, 8 QPs, victim", 25, "Gb/s", "8qp:victim", "mean", why=SHARED_LINK),
    ),
    experiments=(
        *(
            Experiment(f"seed {seed} of the hash", "PFC alone, 1 QP, victim", f"1qp-seed-{seed}:victim")
            for seed in SEEDS
        ),
        Experiment("seed 2 of the hash", "PFC alone, 8 QPs, victim", "8qp-seed-2:victim"),
    ),
    charts=(chart("mrc", "MRC, 8 QPs", 389), chart("1qp", "PFC alone, 1 QP", 97), chart("8qp", "PFC alone, 8 QPs", 25)),
    compression=f"A second of the paper, which is one of its samples, takes {SECOND} base round trips.",
)
