"""The paper's production jobs in small: a ring all-reduce that never pauses, on four planes, while something breaks."""

from collections.abc import Callable, Sequence

from judging import Run
from paper.clock import Clock
from paper.cluster import JOB
from paper.figure import Measured, Part
from paper.parameters import MRC_JOB
from scenarios import TimedFault, Workload

SIZE = 8_388_608
"""Large enough that the ring waits for bandwidth and not for latency."""
QPS = 8
UNIT = 20
"""Round trips in a unit of these figures' time."""


def clock(short: bool) -> Clock:
    """Time in units of round trips."""
    return Clock.round_trips(JOB, 8 if short else UNIT)


def job(time: Clock, length: float, faults: Sequence[TimedFault], measure: Callable[[Run], Measured]) -> Part:
    """The run "job" of a figure."""
    return Part(
        name="job",
        plan=JOB,
        transport=MRC_JOB,
        workloads=[Workload("all_reduce", {"size": SIZE, "rounds": 0, "qps": QPS})],
        phases=time.phases(length),
        faults=faults,
        measure=measure,
    )


def failed_qps(run: Run) -> int:
    """Queue pairs that went to ERROR."""
    return sum(str(line["new"]).upper() == "ERROR" for line in run.kind("qp"))


def qps(run: Run) -> set[tuple[str, int]]:
    """All queue pairs that sent data: (host, number)."""
    return {
        (host, int(row["qp"]))
        for host, samples in run.agent_samples.items()
        for row in samples[-1]["qps"]
        if row["acked_bytes"]
    }


def hit_qps(run: Run) -> set[tuple[str, int]]:
    """Queue pairs that gave a path up."""
    return {
        (str(line["node"]), int(line["qp"])) for line in run.kind("ev") if str(line["new"]).upper() == "ASSUMED_BAD"
    }


def lost_packets(run: Run) -> int:
    """Packets that senders took for lost, of all queue pairs."""
    return sum(int(line["packets"]) for line in run.kind("repair"))
