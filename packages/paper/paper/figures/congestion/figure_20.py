"""Figure 20: eight hosts write to eight others, each to one."""

from collections.abc import Sequence

from judging import Run
from paper import measuring
from paper.clock import Clock
from paper.cluster import D
from paper.figure import Measured, Part
from paper.parameters import MRC, PFC, PFC_8QP, PFC_DCQCN_8QP, for_roce, mrc
from paper.streams import stream
from running.transport_choice import TransportChoice
from topo import Plan

LENGTH, STEADY_LENGTH, SHORT_LENGTH = 150.0, 60.0, 3.0
"""Round trips; without congestion control rates are steady after a few."""
FLOWS = 8
SEEDS = range(2, 21)  # other places in the hash
SINGLE_PATH = mrc({"selection": "single_path"})
ROCE = for_roce(D)


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
