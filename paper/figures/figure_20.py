"""Figure 20: eight hosts write to eight others, each to one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from judging.run import Run
from paper import measuring
from paper.clock import Clock
from paper.cluster import D
from paper.figure import Chart, Experiment, Figure, Measured, PaperCurve, Part, Quantity
from paper.parameters import MRC, PFC, PFC_8QP, PFC_DCQCN_8QP
from paper.streams import stream
from paper.whys import CUT_RATES, SHARED_UPLINK
from running.transport_choice import TransportChoice
from topo.plan import Plan

LENGTH, SHORT_LENGTH = 300.0, 3.0  # round trips
FLOWS = 8
SEEDS = (2, 3, 4)  # of experiments: other places in the hash
LATE_MARKS = replace(D, queues=replace(D.queues, ecn_min=4 * D.queues.ecn_min, ecn_max=4 * D.queues.ecn_max))
PAPER = {
    "mrc": (390.0,) * 8,
    "pfc-1qp": (131.0, 131.0, 131.0, 196.0, 196.0, 391.0, 391.0, 391.0),
    "pfc-8qp": (263.0, 263.0, 263.0, 314.0, 353.0, 353.0, 388.0, 392.0),
    "dcqcn-8qp": (392.0,) * 8,
}
"""Gb/s of each flow, the slowest first."""
TITLES = {
    "mrc": "MRC",
    "pfc-1qp": "RoCE with PFC, 1 QP",
    "pfc-8qp": "RoCE with PFC, 8 QPs",
    "dcqcn-8qp": "RoCE with PFC and DCQCN, 8 QPs",
}


def parts(short: bool) -> Sequence[Part]:
    return [
        permuted("mrc", MRC, 8, short),
        permuted("pfc-1qp", PFC, 1, short),
        permuted("pfc-8qp", PFC_8QP, 8, short),
        permuted("dcqcn-8qp", PFC_DCQCN_8QP, 8, short),
        *(permuted(f"pfc-1qp-seed-{seed}", PFC, 1, short, seed) for seed in SEEDS),
        permuted("pfc-8qp-seed-2", PFC_8QP, 8, short, 2),
        permuted("dcqcn-8qp-seed-2", PFC_DCQCN_8QP, 8, short, 2),
        permuted("dcqcn-8qp-marks", PFC_DCQCN_8QP, 8, short, plan=LATE_MARKS),
    ]


def permuted(name: str, transport: TransportChoice, qps: int, short: bool, seed: int = 1, plan: Plan = D) -> Part:
    """The hosts of two racks write to those of the two others, so that each rack's four uplinks carry four flows."""
    clock = Clock.round_trips(plan, short=short)
    length = SHORT_LENGTH if short else LENGTH
    senders = [f"h{index}" for index in range(FLOWS)]

    def measure(run: Run) -> Measured:
        flows = sorted(measuring.rate(run, clock, 0, length, [sender]) for sender in senders)
        numbers = {f"flow {number}": value for number, value in enumerate(flows)}
        numbers["all"] = sum(flows)
        return Measured(numbers, {"flows": list(enumerate(flows, 1))})

    return Part(
        name=name,
        plan=plan,
        transport=transport,
        workloads=[stream(sender, f"h{number + FLOWS}", qps=qps, name=sender) for number, sender in enumerate(senders)],
        phases=clock.phases(length),
        measure=measure,
        seed=seed,
    )


WHY = {"pfc-1qp": SHARED_UPLINK, "pfc-8qp": SHARED_UPLINK, "dcqcn-8qp": CUT_RATES}


def quantities(part: str) -> list[Quantity]:
    flows = PAPER[part]
    title = TITLES[part]
    return [
        Quantity(f"{title}, all flows", sum(flows), "Gb/s", f"{part}:all", "sum of the means", why=WHY.get(part, "")),
        *(
            Quantity(
                f"{title}, flow {number + 1}",
                gbps,
                "Gb/s",
                f"{part}:flow {number}",
                "mean; the slowest is 1",
                why=WHY.get(part, ""),
            )
            for number, gbps in enumerate(flows)
        ),
    ]


FIGURE = Figure(
    name="20",
    title="Permutation of 8 to 8 hosts",
    caption=(
        "Cluster D. Eight hosts of two racks write to the eight of the two others, one each. Four uplinks carry the"
        " four flows of a rack; RoCE's flows or queue pairs are hashed to them."
    ),
    parts=parts,
    quantities=tuple(quantity for part in PAPER for quantity in quantities(part)),
    charts=tuple(
        Chart(
            x="flow, the slowest first",
            y="Gb/s",
            title=TITLES[part],
            ours={f"{part}:flows": "flows"},
            paper=[PaperCurve("flows", list(enumerate(flows, 1)))],
        )
        for part, flows in PAPER.items()
    ),
    experiments=(
        *(
            Experiment(f"seed {seed} of the hash", f"RoCE with PFC, 1 QP, {name}", f"pfc-1qp-seed-{seed}:{number}")
            for seed in SEEDS
            for name, number in (("all flows", "all"), ("flow 1", "flow 0"), ("flow 4", "flow 3"), ("flow 6", "flow 5"))
        ),
        *(
            Experiment("seed 2 of the hash", f"RoCE with PFC, 8 QPs, {name}", f"pfc-8qp-seed-2:{number}")
            for name, number in (("all flows", "all"), ("flow 1", "flow 0"), ("flow 2", "flow 1"), ("flow 3", "flow 2"))
        ),
        *(
            Experiment(knob, f"RoCE with PFC and DCQCN, 8 QPs, {name}", f"dcqcn-8qp-{run}:{number}")
            for knob, run in (("seed 2 of the hash", "seed-2"), ("marks at four times the queue", "marks"))
            for name, number in (("all flows", "all"), ("flow 1", "flow 0"), ("flow 2", "flow 1"))
        ),
    ),
    compression=f"The means are of {LENGTH:g} base round trips; the paper's are of seconds.",
)
