"""Figure 20: eight hosts write to eight others, each to one."""

from __future__ import annotations

from collections.abc import Sequence

from judging import Run
from paper import measuring, readings
from paper.clock import Clock
from paper.cluster import D
from paper.explanations import CUT_RATES, SHARED_UPLINK
from paper.figure import Chart, Experiment, Failing, Figure, Measured, Order, PaperCurve, Part, Quantity
from paper.parameters import MRC, PFC, PFC_8QP, PFC_DCQCN_8QP, for_roce, mrc
from paper.streams import stream
from running.transport_choice import TransportChoice
from topo import Plan

LENGTH, STEADY_LENGTH, SHORT_LENGTH = 150.0, 60.0, 3.0
"""Round trips; without congestion control rates are steady after a few."""
FLOWS = 8
SEEDS = range(2, 21)  # other places in the hash
READ = readings.of("20")
SINGLE_PATH = mrc({"selection": "single_path"})
ROCE = for_roce(D)
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
        permuted("single", SINGLE_PATH, 1, short),
        *(permuted(f"pfc-1qp-seed-{seed}", PFC, 1, short, seed) for seed in SEEDS),
        *(permuted(f"pfc-8qp-seed-{seed}", PFC_8QP, 8, short, seed) for seed in SEEDS),
        *(permuted(f"dcqcn-8qp-seed-{seed}", PFC_DCQCN_8QP, 8, short, seed) for seed in SEEDS),
        permuted("dcqcn-8qp-marks", PFC_DCQCN_8QP, 8, short, plan=D),
    ]


def permuted(
    name: str, transport: TransportChoice, qps: int, short: bool, seed: int = 1, plan: Plan | None = None
) -> Part:
    """The hosts of two racks write to those of the two others, so that each rack's four uplinks carry four flows."""
    plan = plan or (ROCE if transport.agent == "roce" else D)
    clock = Clock.round_trips(plan, short=short)
    length = SHORT_LENGTH if short else STEADY_LENGTH if transport in (PFC, PFC_8QP) else LENGTH
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


ROWS = {f"flow {number + 1}": f"flow {number}" for number in range(FLOWS)} | {"all flows": "all"}


def quantities(part: str) -> list[Quantity]:
    """The flows of a run, the slowest first, and their sum; RoCE's as intervals over seeds of the hash."""
    other = "single" if part in ("mrc", "dcqcn-8qp") else "mrc"
    knob = "MRC on one path" if other == "single" else "MRC in place of RoCE"
    return [
        READ.quantity(
            f"{TITLES[part]}, {name}",
            f"{part}:{number}",
            "mean; the slowest is 1" if part == "mrc" else f"mean; median of {1 + len(SEEDS)} seeds of the hash",
            why=WHY.get(part, ""),
            seeds=() if part == "mrc" else (f"{part}:{number}", *(f"{part}-seed-{seed}:{number}" for seed in SEEDS)),
            fails=Failing(knob, f"{other}:{number}"),
        )
        for name, number in ROWS.items()
    ]


FIGURE = Figure(
    name="20",
    title="Permutation of 8 to 8 hosts",
    caption=(
        "Cluster D. Eight hosts of two racks write to the eight of the two others, one each. Four uplinks carry the"
        " four flows of a rack; RoCE's flows or queue pairs are hashed to them. RoCE's rows are intervals over"
        " seeds of the hash."
    ),
    parts=parts,
    quantities=tuple(quantity for part in TITLES for quantity in quantities(part)),
    charts=tuple(
        Chart(
            x="flow, the slowest first",
            y="Gb/s",
            title=TITLES[part],
            ours={f"{part}:flows": "flows"},
            paper=[PaperCurve("flows", [(n, READ[f"{TITLES[part]}, flow {n}"].value) for n in range(1, FLOWS + 1)])],
        )
        for part in TITLES
    ),
    experiments=tuple(
        Experiment("marks and pauses at MRC's queues", f"{TITLES['dcqcn-8qp']}, {name}", f"dcqcn-8qp-marks:{number}")
        for name, number in (("all flows", "all"), ("flow 1", "flow 0"), ("flow 2", "flow 1"))
    ),
    orders=tuple(
        Order(f"MRC, {name}", f"{title}, {name}")
        for title in list(TITLES.values())[1:]
        for name in ("all flows", "flow 1")
    )
    + tuple(
        Order(f"{TITLES[first]}, all flows", f"{TITLES[second]}, all flows")
        for first, second in (("dcqcn-8qp", "pfc-8qp"), ("pfc-8qp", "pfc-1qp"))
    ),
    compression=(
        f"The means are of {LENGTH:g} base round trips, with PFC alone of {STEADY_LENGTH:g}; the paper's are of"
        " seconds."
    ),
)
