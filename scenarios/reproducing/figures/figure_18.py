"""Figure 18: seven hosts write to one, beside a victim flow."""

from __future__ import annotations

from collections.abc import Sequence

from scenarios.reproducing.figure import Chart, Figure, PaperCurve, Part, Quantity
from scenarios.reproducing.incast import LENGTH_S, LOWEST, SECOND, flow_curves, seven_to_one
from scenarios.reproducing.parameters import MRC

QPS = 8
NO_PFC = "The paper's RoCE is lossless: this run needs a baseline with PFC (802.1Qbb), which is not there yet."


def parts(short: bool) -> Sequence[Part]:
    return [seven_to_one("mrc", MRC, QPS, short)]


FIGURE = Figure(
    name="18",
    title="7:1 incast and a victim flow",
    caption=(
        "Cluster D. Seven hosts of three racks write to one host of the fourth, and an eighth, the victim, to another"
        f" host of that rack. MRC has {QPS} queue pairs a flow."
    ),
    parts=parts,
    quantities=(
        Quantity("MRC, victim", 389, "Gb/s", "mrc:victim", "mean"),
        Quantity("MRC, victim, lowest", 386, "Gb/s", "mrc:victim lowest", LOWEST),
        Quantity("MRC, incast flow", 56, "Gb/s", "mrc:flow mean", "mean of the seven"),
        Quantity("MRC, slowest incast flow", 55, "Gb/s", "mrc:flow least", "mean of that flow"),
        Quantity("MRC, fastest incast flow", 56, "Gb/s", "mrc:flow most", "mean of that flow"),
        Quantity("RoCE with PFC and DCQCN, 1 QP, victim", 320, "Gb/s", None, "mean", why=NO_PFC),
        Quantity("RoCE with PFC and DCQCN, 1 QP, victim, lowest", 285, "Gb/s", None, LOWEST, why=NO_PFC),
        Quantity("RoCE with PFC and DCQCN, 1 QP, incast flow", 57, "Gb/s", None, "mean of the seven", why=NO_PFC),
        Quantity("RoCE with PFC and DCQCN, 8 QPs, victim", 363, "Gb/s", None, "mean", why=NO_PFC),
        Quantity("RoCE with PFC and DCQCN, 8 QPs, victim, lowest", 62, "Gb/s", None, LOWEST, why=NO_PFC),
    ),
    charts=(
        Chart(
            x="seconds of the paper",
            y="Gb/s",
            title="MRC",
            ours=flow_curves("mrc"),
            paper=[
                PaperCurve("victim", [(second, 389) for second in range(2, LENGTH_S, 3)]),
                PaperCurve("incast", [(second, 56) for second in range(2, LENGTH_S, 3)]),
            ],
        ),
    ),
    compression=f"A second of the paper, which is one of its samples, takes {SECOND} base round trips.",
)
