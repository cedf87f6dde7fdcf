"""Figure 18: seven hosts write to one, beside a victim flow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from paper.figure import Chart, Experiment, Figure, PaperCurve, Part, Quantity
from paper.incast import LENGTH_S, LOWEST, SECOND, flow_curves, seven_to_one
from paper.parameters import MRC, PFC_DCQCN, PFC_DCQCN_8QP
from paper.whys import DIPS, ONE_PATH, SPREAD

QPS = 8
SEEDS = (2, 3, 4)  # of experiments: other places in the hash
AGGRESSIVE = replace(
    PFC_DCQCN_8QP, name="roce-pfc-dcqcn-aggressive", settings={**PFC_DCQCN_8QP.settings, "dcqcn_setting": "aggressive"}
)
ONE, EIGHT = "RoCE with PFC and DCQCN, 1 QP", "RoCE with PFC and DCQCN, 8 QPs"


def parts(short: bool) -> Sequence[Part]:
    return [
        seven_to_one("mrc", MRC, QPS, short),
        seven_to_one("1qp", PFC_DCQCN, 1, short),
        seven_to_one("8qp", PFC_DCQCN_8QP, 8, short),
        *(seven_to_one(f"1qp-seed-{seed}", PFC_DCQCN, 1, short, seed) for seed in SEEDS),
        seven_to_one("8qp-seed-2", PFC_DCQCN_8QP, 8, short, 2),
        seven_to_one("8qp-aggressive", AGGRESSIVE, 8, short),
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
        Quantity(f"{ONE}, victim", 320, "Gb/s", "1qp:victim", "mean", why=ONE_PATH),
        Quantity(f"{ONE}, victim, lowest", 285, "Gb/s", "1qp:victim lowest", LOWEST, why=ONE_PATH),
        Quantity(f"{ONE}, incast flow", 57, "Gb/s", "1qp:flow mean", "mean of the seven", why=ONE_PATH),
        Quantity(f"{ONE}, slowest incast flow", 51, "Gb/s", "1qp:flow least", "mean of that flow", why=ONE_PATH),
        Quantity(f"{EIGHT}, victim", 363, "Gb/s", "8qp:victim", "mean"),
        Quantity(f"{EIGHT}, victim, lowest", 62, "Gb/s", "8qp:victim lowest", LOWEST, why=DIPS),
        Quantity(f"{EIGHT}, slowest incast flow", 38, "Gb/s", "8qp:flow least", "mean of that flow", why=SPREAD),
        Quantity(f"{EIGHT}, fastest incast flow", 80, "Gb/s", "8qp:flow most", "mean of that flow", why=SPREAD),
    ),
    experiments=(
        *(
            Experiment(f"seed {seed} of the hash", f"{ONE}, {name}", f"1qp-seed-{seed}:{number}")
            for seed in SEEDS
            for name, number in (("victim", "victim"), ("slowest incast flow", "flow least"))
        ),
        *(
            Experiment(knob, f"{EIGHT}, {name}", f"8qp-{run}:{number}")
            for knob, run in (("seed 2 of the hash", "seed-2"), ("DCQCN's next setting", "aggressive"))
            for name, number in (
                ("victim", "victim"),
                ("victim, lowest", "victim lowest"),
                ("slowest incast flow", "flow least"),
                ("fastest incast flow", "flow most"),
            )
        ),
    ),
    charts=(chart("mrc", "MRC", 389, 56), chart("1qp", ONE, 320, 57), chart("8qp", EIGHT, 363, 38, 80)),
    compression=f"A second of the paper, which is one of its samples, takes {SECOND} base round trips.",
)
