"""Figure 18: seven hosts write to one, beside a victim flow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from paper import readings
from paper.breaking import IN_FRAMES, IN_FRAMES_WORDS, host_in_frames
from paper.cluster import D
from paper.explanations import DIPS, ONE_PATH, SPREAD
from paper.figure import Chart, Experiment, Failing, Figure, Order, PaperCurve, Part, Quantity
from paper.incast import LENGTH_S, LOWEST, SHORT_SECOND, flow_curves, seven_to_one
from paper.parameters import MRC, PFC_8QP, PFC_DCQCN, PFC_DCQCN_8QP

SECOND = 20
"""Round trips to a second of the paper."""
SEEDS = range(2, 21)  # other places in the hash
READ = readings.of("18")
AGGRESSIVE = replace(
    PFC_DCQCN_8QP, name="roce-pfc-dcqcn-aggressive", settings={**PFC_DCQCN_8QP.settings, "dcqcn_setting": "aggressive"}
)
ONE, EIGHT = "RoCE with PFC and DCQCN, 1 QP", "RoCE with PFC and DCQCN, 8 QPs"


def parts(short: bool) -> Sequence[Part]:
    second = SHORT_SECOND if short else SECOND
    return [
        seven_to_one("mrc", MRC, 1, second),
        seven_to_one("1qp", PFC_DCQCN, 1, second),
        seven_to_one("8qp", PFC_DCQCN_8QP, 8, second),
        seven_to_one("pfc", PFC_8QP, 8, second),
        *(seven_to_one(f"1qp-seed-{seed}", PFC_DCQCN, 1, second, seed) for seed in SEEDS),
        *(seven_to_one(f"8qp-seed-{seed}", PFC_DCQCN_8QP, 8, second, seed) for seed in SEEDS),
        seven_to_one("8qp-aggressive", AGGRESSIVE, 8, second),
        seven_to_one(f"mrc-{IN_FRAMES}", MRC, 1, second, cluster=host_in_frames(D)),
    ]


def chart(part: str, title: str, victim_gbps: float, *flows_gbps: float) -> Chart:
    seconds = range(2, LENGTH_S, 3)
    paper = [
        PaperCurve("victim", [(at, victim_gbps) for at in seconds]),
        PaperCurve("incast", [(at, value) for value in flows_gbps for at in seconds]),
    ]
    return Chart("seconds of the paper", "Gb/s", flow_curves(part), paper, title)


NUMBERS = {
    "victim": "victim",
    "victim, lowest": "victim lowest",
    "incast flow": "flow mean",
    "slowest incast flow": "flow least",
    "fastest incast flow": "flow most",
}


def hashed(title: str, part: str, name: str, why: str) -> Quantity:
    """A quantity of RoCE: the interval over the seeds of the hash."""
    number = NUMBERS[name]
    return READ.quantity(
        f"{title}, {name}",
        f"{part}:{number}",
        f"median of {1 + len(SEEDS)} seeds of the hash",
        why=why,
        seeds=(f"{part}:{number}", *(f"{part}-seed-{seed}:{number}" for seed in SEEDS)),
        fails=Failing(
            *(("MRC in place of RoCE", f"mrc:{number}") if "victim" in name else ("PFC alone", f"pfc:{number}"))
        ),
    )


FIGURE = Figure(
    name="18",
    title="7:1 incast and a victim flow",
    caption=(
        "Cluster D. Seven hosts of three racks write to one host of the fourth, and an eighth, the victim, to another"
        " host of that rack. MRC has one queue pair per flow; RoCE is lossless by PFC and has DCQCN. Its rows are"
        " intervals over seeds of the hash."
    ),
    parts=parts,
    quantities=(
        *(
            READ.quantity(
                f"MRC, {name}",
                f"mrc:{number}",
                how,
                why=(
                    "Without the receiver's penalty, a rule of the lab's own that these figures leave out, NSCC has not"
                    " made seven flows even within the 600 round trips of the run. The paper's run has millions."
                ),
                fails=Failing("RoCE with PFC alone", f"pfc:{number}"),
            )
            for name, number, how in (
                ("victim", "victim", "mean"),
                ("victim, lowest", "victim lowest", LOWEST),
                ("incast flow", "flow mean", "mean of the seven"),
                ("slowest incast flow", "flow least", "mean of that flow"),
                ("fastest incast flow", "flow most", "mean of that flow"),
            )
        ),
        *(
            hashed(ONE, "1qp", name, ONE_PATH)
            for name in ("victim", "victim, lowest", "incast flow", "slowest incast flow")
        ),
        hashed(EIGHT, "8qp", "victim", ""),
        hashed(EIGHT, "8qp", "victim, lowest", DIPS),
        hashed(EIGHT, "8qp", "slowest incast flow", SPREAD),
        hashed(EIGHT, "8qp", "fastest incast flow", SPREAD),
    ),
    experiments=(
        *(
            Experiment("DCQCN's next setting", f"{EIGHT}, {name}", f"8qp-aggressive:{number}")
            for name, number in NUMBERS.items()
            if name != "incast flow"
        ),
        *(Experiment(IN_FRAMES_WORDS, f"MRC, {name}", f"mrc-{IN_FRAMES}:{number}") for name, number in NUMBERS.items()),
    ),
    orders=(
        *(
            Order(f"MRC, {name}", f"{title}, {name}")
            for title in (ONE, EIGHT)
            for name in ("victim", "victim, lowest", "slowest incast flow")
        ),
        Order(f"{EIGHT}, victim", f"{ONE}, victim"),
    ),
    charts=(chart("mrc", "MRC", 389, 56), chart("1qp", ONE, 320, 57), chart("8qp", EIGHT, 363, 38, 80)),
    compression=f"A second of the paper takes {SECOND} base round trips.",
)
