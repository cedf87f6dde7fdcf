"""Figure 9a: links between a NIC and its leaves go down one by one and come back."""

from collections.abc import Sequence

from judging import Run
from paper import measuring
from paper.breaking import kept, single_path
from paper.clock import Clock
from paper.cluster import B
from paper.figure import Measured, Part
from paper.pair import pair

STEP_ROUND_TRIPS = 60
SETTLE = 0.25  # of a step: what a plateau's mean leaves out after each change
DOWN = 7


def parts(short: bool) -> Sequence[Part]:
    clock = Clock.round_trips(B, 12 if short else STEP_ROUND_TRIPS)
    length = 2 * DOWN + 1

    def measure(run: Run) -> Measured:
        steps = [measuring.rate(run, clock, step + SETTLE, step + 1) for step in range(length)]
        numbers = {f"down {i}": steps[i] for i in range(DOWN + 1)}
        numbers["symmetric"] = max(abs(steps[i] - steps[2 * DOWN - i]) for i in range(DOWN))
        numbers["first dip"] = dip_s(run, clock, 1)
        numbers["dip"] = max(dip_s(run, clock, 1 + i) for i in range(1, DOWN))
        return Measured(numbers, {"rate": measuring.curve(run, clock, 0, length, clock.sample * 2)})

    def losing(name: str, verb: str, port: str) -> Part:
        faults = [clock.fault(1 + i, verb, port.format(i), until=2 * DOWN - i) for i in range(DOWN)]
        return pair(clock, length, faults, measure, name=name)

    run = losing("mrc", "port-down", "h0.p{}")
    return [run, losing("silent", "blackhole", "h0-p{}l0"), single_path(run), kept(run)]


def dip_s(run: Run, clock: Clock, at: float) -> float:
    """How long after a failure the rate stays below half of the plateau that follows, real seconds."""
    plateau = measuring.rate(run, clock, at + SETTLE, at + 1)
    points = measuring.curve(run, clock, at, at + 1, clock.sample)
    low = [place for place, value in points if value < plateau / 2]
    return len(low) * clock.sample * clock.unit_ns / 1e9
