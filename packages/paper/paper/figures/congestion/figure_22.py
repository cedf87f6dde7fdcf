"""Figure 22: fifteen flows to one host, begun one by one, under three settings of DCQCN."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from judging import Run
from paper import measuring, readings
from paper.clock import LEAD, SHOWN, Clock
from paper.cluster import D
from paper.explanations import MARKS, UNFILLED
from paper.figure import Chart, Experiment, Failing, Figure, Measured, Order, PaperCurve, Part, Quantity
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


TITLES = {"default": "default", "aggressive": "aggressive", "most": "most aggressive"}
READ = readings.of("22")
MANY, FEW_QUEUE, MANY_QUEUE, LONGEST = (
    "rate with more than 11 flows",
    "queue with 2 to 10 flows",
    "queue with more than 11 flows",
    "longest queue",
)
RATE, QUEUE = "payload of all flows, mean", "mean of what waits at the last hop"


def quantities(part: str) -> list[Quantity]:
    """A setting's rate, and its queue: two lengths of the default's, of the others no more than a greatest one."""
    title = TITLES[part]
    other = "most" if part == "default" else "default"
    found = [
        READ.quantity(
            f"{title}, {MANY}",
            f"{part}:many",
            RATE,
            why=MARKS,
            fails=Failing(f"the setting {TITLES[other]}", f"{other}:many"),
        )
    ]
    if part != "default":
        bound = READ.quantity(
            f"{title}, {LONGEST}",
            f"{part}:queue at most",
            "the longest that waited at the last hop",
            at_most=True,
            why=MARKS,
            fails=Failing("the setting default", "default:queue at most"),
        )
        return [*found, bound]
    few = READ.quantity(
        f"{title}, {FEW_QUEUE}",
        f"{part}:queue of few",
        QUEUE,
        why=MARKS,
        fails=Failing("the setting most aggressive", "most:queue of few"),
    )
    return [
        *found,
        few,
        READ.quantity(f"{title}, {MANY_QUEUE}", f"{part}:queue of many", QUEUE, why=UNFILLED, calibrates=True),
    ]


def charts(part: str) -> list[Chart]:
    rate = READ[f"{TITLES[part]}, {MANY}"].value
    levels = (FEW_QUEUE, MANY_QUEUE) if part == "default" else (LONGEST, LONGEST)
    few, many = (READ[f"{TITLES[part]}, {level}"].value for level in levels)
    at = [5 + 10 * step for step in range(7)]
    rates = PaperCurve(TITLES[part], [(second, rate) for second in at])
    queues = PaperCurve(TITLES[part], [(second, few if second < 50 else many) for second in at])
    return [
        Chart("seconds of the paper", "all flows, Gb/s", {f"{part}:rate": TITLES[part]}, [rates], TITLES[part]),
        Chart("seconds of the paper", "queue, MB", {f"{part}:queue": TITLES[part]}, [queues]),
    ]


FIGURE = Figure(
    name="22",
    title="15:1 incast under three settings of DCQCN",
    caption=(
        "Cluster D. Fifteen hosts write to one, the next of them every 5 s of the paper, on a queue pair each. RoCE has"
        " PFC and DCQCN in three settings, which the paper does not give in numbers; those here have sources of their"
        " own (endpoint/roce/dcqcn_setting.py)."
    ),
    parts=parts,
    quantities=tuple(quantity for part in TITLES for quantity in quantities(part)),
    charts=tuple(chart for part in TITLES for chart in charts(part)),
    orders=(Order(f"default, {MANY}", f"aggressive, {MANY}"), Order(f"aggressive, {MANY}", f"most aggressive, {MANY}")),
    experiments=tuple(
        Experiment(knob, f"default, {name}", f"{run}:{number}")
        for knob, run in (("buffer, marks and pauses as MRC's fabrics have them", "default-mrc"),)
        for name, number in (
            ("rate with more than 11 flows", "many"),
            ("queue with 2 to 10 flows", "queue of few"),
            ("queue with more than 11 flows", "queue of many"),
        )
    ),
    compression=f"The paper's 5 s between two flows take {STEP} base round trips.",
    source="the text and raster plots of figure 22 of arXiv:2605.04333 (error about 10 %)",
)
