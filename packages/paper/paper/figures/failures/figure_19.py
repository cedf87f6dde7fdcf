"""Figure 19: failures between leaves and spines under a NIC of one plane (Thor Ultra)."""

from __future__ import annotations

from collections.abc import Sequence

from judging import Run
from paper import measuring, readings
from paper.breaking import OBLIVIOUS, SINGLE_PATH, fails, oblivious, single_path
from paper.clock import Clock
from paper.cluster import D_SLOW, D
from paper.figure import Chart, Figure, Measured, PaperCurve, Part
from paper.parameters import MRC
from paper.streams import stream
from scenarios import TimedFault
from topo import Plan

STEP = 80  # round trips
SETTLE = 0.3  # of a step: what a plateau's mean leaves out after each change
READ = readings.of("19")
ONE_BY_ONE = [READ[f"b, step {n}"].value for n in range(7)]
AT_ONCE = [READ[f"c, step {n}"].value for n in range(3)]


def stepped(name: str, plan: Plan, short: bool, down: Sequence[tuple[int, int]]) -> Part:
    """One flow; the link to spine i is down between two steps."""
    clock = Clock.round_trips(plan, 15 if short else STEP)
    length = 1 + max(until for _, until in down)
    faults: list[TimedFault] = [
        clock.fault(at, "link-down", f"p0l0-p0s{spine}", until=until) for spine, (at, until) in enumerate(down)
    ]

    def measure(run: Run) -> Measured:
        steps = [measuring.rate(run, clock, step + SETTLE, step + 1) for step in range(length)]
        numbers = {f"step {number}": value for number, value in enumerate(steps)}
        return Measured(numbers, {"rate": measuring.curve(run, clock, 0, length, 2 * clock.sample)})

    return Part(
        name=name,
        plan=plan,
        transport=MRC,
        workloads=[stream("h0", "h4")],
        phases=clock.phases(length),
        faults=faults,
        measure=measure,
    )


def parts(short: bool) -> Sequence[Part]:
    a = stepped("a", D, short, [(1, 4), (2, 4), (3, 4)])
    b = stepped("b", D_SLOW, short, [(1, 6), (2, 5), (3, 4)])
    c = stepped("c", D_SLOW, short, [(1, 2), (1, 2)])
    return [a, b, c, oblivious(a), single_path(b), single_path(c)]


def chart(part: str, title: str, levels: Sequence[float]) -> Chart:
    points = [(step + 0.6, level) for step, level in enumerate(levels)]
    return Chart("step", "Gb/s", {f"{part}:rate": "MRC"}, [PaperCurve("MRC", points)], title)


HOW = "mean of the last 70 % of the step"
FIGURE = Figure(
    name="19",
    title="T0–T1 failures under a NIC of one plane",
    caption=(
        "One flow of 4 queue pairs from rack to rack of cluster D. (a) Links of 400 Gb/s above the leaves, three of"
        " four down one after the other. (b) Links of 100 Gb/s, three down one by one and back. (c) Two of them down"
        " at once and back."
    ),
    parts=parts,
    quantities=(
        *(
            READ.quantity(f"a, {n} links down", f"a:step {n}", HOW, fails=fails(f"step {n}", OBLIVIOUS, "a"))
            for n in range(4)
        ),
        *(
            READ.quantity(f"{part}, step {n}", f"{part}:step {n}", HOW, fails=fails(f"step {n}", SINGLE_PATH, part))
            for part, steps in (("b", ONE_BY_ONE), ("c", AT_ONCE))
            for n in range(len(steps))
        ),
    ),
    charts=(
        chart("a", "a: links of 400 Gb/s", [384] * 5),
        chart("b", "b: links of 100 Gb/s, one by one", ONE_BY_ONE),
        chart("c", "c: links of 100 Gb/s, two at once", AT_ONCE),
    ),
    compression=f"A step of the paper, some seconds, takes {STEP} base round trips.",
)
