"""Figure 22: fifteen flows to one host, begun one by one, under three settings of DCQCN."""

from collections.abc import Sequence
from dataclasses import replace

from judging import Run
from paper import measuring
from paper.clock import LEAD, SHOWN, Clock
from paper.cluster import D
from paper.figure import Measured, Part
from paper.parameters import PFC_DCQCN, for_roce
from paper.streams import DEPTH, SIZE
from scenarios import Phase, Workload
from topo import Plan

FLOWS = 15
ROCE = for_roce(D)
STEP, SHORT_STEP = 300, 1  # round trips between two flows' beginnings, for the paper's 5 s
STEP_S = 5
LATE = 0.4  # of a step: what its mean leaves out
SETTINGS = {"default": "default", "aggressive": "aggressive", "most": "most_aggressive"}
LAST_HOP = ("p0l0", 1)  # the leaf's port towards h0
MB = 1e6


def parts(short: bool) -> Sequence[Part]:
    return [
        *(begun_one_by_one(name, setting, short) for name, setting in SETTINGS.items()),
        begun_one_by_one("default-mrc", "default", short, D),
    ]


def begun_one_by_one(name: str, setting: str, short: bool, plan: Plan = ROCE) -> Part:
    """Flow n begins after n steps; from the last one on there is a step more."""
    clock = Clock.round_trips(plan, SHORT_STEP if short else STEP, short)
    names = [SHOWN, *(f"flow {number + 1}" for number in range(1, FLOWS))]
    options = {"size": SIZE, "depth": DEPTH, "messages": 0}

    def measure(run: Run) -> Measured:
        steps = [measuring.rate(run, clock, step + LATE, step + 1) for step in range(FLOWS)]
        queue = measuring.queue_curve(run, clock, *LAST_HOP)
        levels = [measuring.mean(b / MB for at, b in queue if step + LATE <= at < step + 1) for step in range(FLOWS)]
        numbers = {
            "few": measuring.mean(steps[1:10]),
            "many": measuring.mean(steps[11:]),
            "queue of few": measuring.mean(levels[1:10]),
            "queue of many": measuring.mean(levels[11:]),
            "queue at most": max((b / MB for _, b in queue), default=0.0),
        }
        curves = {
            "rate": [(at * STEP_S, value) for at, value in measuring.curve(run, clock, 0, FLOWS, 0.2)],
            "queue": [(at * STEP_S, b / MB) for at, b in queue if at >= 0],
        }
        return Measured(numbers, curves)

    return Part(
        name=name,
        plan=plan,
        transport=replace(
            PFC_DCQCN, name=f"roce-pfc-dcqcn-{name}", settings={**PFC_DCQCN.settings, "dcqcn_setting": setting}
        ),
        workloads=[
            Workload("write_bw", options, ranks=(f"h{number + 1}", "h0"), name=f"flow{number + 1}", phase=phase)
            for number, phase in enumerate(names)
        ],
        phases=[Phase(LEAD, clock.lab_s(0.05)), *(Phase(phase, clock.lab_s(1)) for phase in names)],
        measure=measure,
        sample_s=max(clock.lab_s(0.05), Clock.round_trips(plan).lab_s(1.01)),
        sample_switches=True,
    )
