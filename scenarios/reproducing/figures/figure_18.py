"""Figure 18: seven hosts write to one, beside a victim flow."""

from __future__ import annotations

from collections.abc import Sequence

from scenarios.reproducing.figure import Chart, Figure, PaperCurve, Part, Quantity
from scenarios.reproducing.incast import LENGTH_S, LOWEST, SECOND, flow_curves, seven_to_one
from scenarios.reproducing.parameters import MRC, PFC_DCQCN, PFC_DCQCN_8QP

QPS = 8
ONE, EIGHT = "RoCE with PFC and DCQCN, 1 QP", "RoCE with PFC and DCQCN, 8 QPs"


RECOVERING = (
    "DCQCN is still recovering from the first cut of its rates, longer than a run lasts: the victim's first ten"
    " samples have 155 Gb/s in the mean, its last ten 231, and a run of a fifth of the length has 130 in all. The"
    " paper's flows have had seconds, of 75,000 round trips each."
)
DIPS = (
    "Here the victim has its lowest sample at the start and is near its full rate from the second one on. The paper's"
    " dips of a second do not come out, and no experiment has shown why."
)
SPREAD = "Not known: no experiment has been made about how far the flows lie apart."


def parts(short: bool) -> Sequence[Part]:
    return [
        seven_to_one("mrc", MRC, QPS, short),
        seven_to_one("1qp", PFC_DCQCN, 1, short),
        seven_to_one("8qp", PFC_DCQCN_8QP, 8, short),
    ]


def chart(part: str, title: str, victim_gbps: float, *flows_gbps: float) -> Chart:
    seconds = range(2, LENGTH_S, 3)
    paper = [
        PaperCurve("victim", [(at, victim_gbps) for at in seconds]),
        PaperCurve("incast", [(at, value) for value in flows_gbps for at in seconds]),
    ]
    return Chart("seconds of the paper", "Gb/s", flow_curves(part), paper, title)


FIGURE = Figure(
    name="18",
    title="7:1 incast and a victim flow",
    caption=(
        "Cluster D. Seven hosts of three racks write to one host of the fourth, and an eighth, the victim, to another"
        f" host of that rack. MRC has {QPS} queue pairs a flow; RoCE is lossless by PFC and has DCQCN."
    ),
    parts=parts,
    quantities=(
        Quantity("MRC, victim", 389, "Gb/s", "mrc:victim", "mean"),
        Quantity("MRC, victim, lowest", 386, "Gb/s", "mrc:victim lowest", LOWEST),
        Quantity("MRC, incast flow", 56, "Gb/s", "mrc:flow mean", "mean of the seven"),
        Quantity("MRC, slowest incast flow", 55, "Gb/s", "mrc:flow least", "mean of that flow"),
        Quantity("MRC, fastest incast flow", 56, "Gb/s", "mrc:flow most", "mean of that flow"),
        Quantity(f"{ONE}, victim", 320, "Gb/s", "1qp:victim", "mean", why=RECOVERING),
        Quantity(f"{ONE}, victim, lowest", 285, "Gb/s", "1qp:victim lowest", LOWEST, why=RECOVERING),
        Quantity(f"{ONE}, incast flow", 57, "Gb/s", "1qp:flow mean", "mean of the seven", why=RECOVERING),
        Quantity(f"{ONE}, slowest incast flow", 51, "Gb/s", "1qp:flow least", "mean of that flow", why=RECOVERING),
        Quantity(f"{EIGHT}, victim", 363, "Gb/s", "8qp:victim", "mean"),
        Quantity(f"{EIGHT}, victim, lowest", 62, "Gb/s", "8qp:victim lowest", LOWEST, why=DIPS),
        Quantity(f"{EIGHT}, slowest incast flow", 38, "Gb/s", "8qp:flow least", "mean of that flow", why=SPREAD),
        Quantity(f"{EIGHT}, fastest incast flow", 80, "Gb/s", "8qp:flow most", "mean of that flow", why=SPREAD),
    ),
    charts=(chart("mrc", "MRC", 389, 56), chart("1qp", ONE, 320, 57), chart("8qp", EIGHT, 363, 38, 80)),
    compression=f"A second of the paper, which is one of its samples, takes {SECOND} base round trips.",
)
