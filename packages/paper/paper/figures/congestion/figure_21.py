"""Figure 21: the incast of figure 18 under PFC alone, beside MRC."""

from __future__ import annotations

from collections.abc import Sequence

from paper import readings
from paper.explanations import SHARED_LINK
from paper.figure import Chart, Failing, Figure, Order, PaperCurve, Part
from paper.incast import LENGTH_S, SHORT_SECOND, flow_curves, seven_to_one
from paper.parameters import MRC, PFC, PFC_8QP

SECOND = 10
"""Round trips to a second of the paper: without congestion control rates are steady after a few."""
SEEDS = range(2, 21)  # other places in the hash
READ = readings.of("21")


def parts(short: bool) -> Sequence[Part]:
    second = SHORT_SECOND if short else SECOND
    return [
        seven_to_one("mrc", MRC, 8, second),
        seven_to_one("1qp", PFC, 1, second),
        seven_to_one("8qp", PFC_8QP, 8, second),
        *(seven_to_one(f"1qp-seed-{seed}", PFC, 1, second, seed) for seed in SEEDS),
        *(seven_to_one(f"8qp-seed-{seed}", PFC_8QP, 8, second, seed) for seed in SEEDS),
    ]


def chart(part: str, title: str, victim_gbps: float) -> Chart:
    paper = PaperCurve("victim", [(at, victim_gbps) for at in range(2, LENGTH_S, 3)])
    return Chart("seconds of the paper", "Gb/s", flow_curves(part), [paper], title)


FIGURE = Figure(
    name="21",
    title="7:1 incast and a victim flow, PFC alone",
    caption=(
        "The same flows as in figure 18. RoCE has PFC and no congestion control: pauses spread from the full leaf to"
        " the spines, and the victim's packets wait behind those of the incast. RoCE's rows are intervals over"
        " seeds of the hash."
    ),
    parts=parts,
    quantities=(
        READ.quantity("MRC, victim", "mrc:victim", "mean", fails=Failing("PFC alone on 8 queue pairs", "8qp:victim")),
        *(
            READ.quantity(
                f"PFC alone, {title}, victim",
                f"{part}:victim",
                f"median of {1 + len(SEEDS)} seeds of the hash",
                why=SHARED_LINK,
                seeds=(f"{part}:victim", *(f"{part}-seed-{seed}:victim" for seed in SEEDS)),
                fails=Failing("MRC in place of RoCE", "mrc:victim"),
            )
            for title, part in (("1 QP", "1qp"), ("8 QPs", "8qp"))
        ),
    ),
    orders=tuple(Order("MRC, victim", f"PFC alone, {title}, victim") for title in ("1 QP", "8 QPs")),
    charts=(
        chart("mrc", "MRC, 8 QPs", READ["MRC, victim"].value),
        chart("1qp", "PFC alone, 1 QP", READ["PFC alone, 1 QP, victim"].value),
        chart("8qp", "PFC alone, 8 QPs", READ["PFC alone, 8 QPs, victim"].value),
    ),
    compression=f"A second of the paper takes {SECOND} base round trips.",
)
