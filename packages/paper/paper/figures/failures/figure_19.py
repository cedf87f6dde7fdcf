"""Figure 19: failures between leaves and spines under a NIC of one plane (Thor Ultra)."""

from collections.abc import Sequence

from judging import Run
from paper import measuring
from paper.breaking import oblivious, single_path
from paper.clock import Clock
from paper.cluster import D_SLOW, D
from paper.figure import Measured, Part
from paper.parameters import MRC
from paper.streams import stream
from scenarios import TimedFault
from topo import Plan

STEP = 80  # round trips
SETTLE = 0.3  # of a step: what a plateau's mean leaves out after each change


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
