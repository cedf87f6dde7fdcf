"""The paper's test of a single pair: two hosts write to each other both ways while something breaks."""

from collections.abc import Callable, Sequence

from judging import Run
from paper import measuring, profile
from paper.clock import Clock
from paper.figure import Measured, Part
from paper.parameters import MRC
from paper.streams import stream
from running.transport_choice import TransportChoice
from scenarios import TimedFault

__all__ = ["pair"]

SAMPLE_S = 0.22
"""The paper samples the NICs' counters this often."""
CX8 = profile.load("cx8")
TRANSIENT_ROUND_TRIPS = 30
"""In which a transient is looked for: a window that was cut is whole again long before."""


def pair(
    clock: Clock,
    length: float,
    faults: Sequence[TimedFault],
    measure: Callable[[Run], Measured],
    hosts: tuple[str, str] = ("h0", "h2"),
    *,
    bidirectional: bool = True,
    sample_paths: bool = False,
    name: str = "mrc",
    qps: int = 4,
    transport: TransportChoice = MRC,
) -> Part:
    """A run of a figure of cluster B: four queue pairs each way, unless there are to be others."""
    return Part(
        name=name,
        plan=clock.plan,
        transport=transport,
        workloads=[stream(*hosts, bidirectional=bidirectional, qps=qps, host=CX8.message)],
        phases=clock.phases(length),
        faults=faults,
        measure=measure,
        sample_paths=sample_paths,
    )


def lowest_sample(run: Run, clock: Clock, changes: Sequence[float], steady_gbps: float) -> float:
    """The lowest rate that a sample of the paper's length would show, Gb/s: one with the costliest of the transients.

    `changes` are the instants after which something may be missing, in units of the clock.
    """
    until = TRANSIENT_ROUND_TRIPS * clock.plan.base_rtt_ns / clock.unit_ns
    costs = [measuring.deficit_bits(run, clock, at, at + until, steady_gbps) for at in changes]
    return measuring.sample_gbps(steady_gbps, max(costs), SAMPLE_S)
