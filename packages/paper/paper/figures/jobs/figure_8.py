"""Figure 8: a T1 switch stops forwarding under a job, and is rebooted twelve minutes later.

The paper's jobs had 50,000 and 75,000 GPUs. Here a queue pair has all of the 512 paths of a production fabric and there
are few NICs, so what is compared is per queue pair, per NIC, or a share.
"""

import itertools
from collections.abc import Sequence

from judging import SECOND_NS, Run
from paper import measuring
from paper.breaking import setting
from paper.clock import LEAD, SHOWN, Clock
from paper.cluster import PRODUCTION
from paper.figure import Measured, Part
from paper.job import failed_qps
from paper.parameters import MRC
from scenarios import Phase, Workload

UNIT, SHORT_UNIT = 10, 5  # round trips
STOPPED, BACK, END = 2.0, 10.0, 12.0
T1 = "p1s77"
PAPER_SAMPLE_S = 60.0
MRC_EVS = 128  # in rotation
HOSTS = tuple(f"h{index}" for index in range(PRODUCTION.host_count))
QPS_TO_EACH = 8
LEAD_ROUND_TRIPS = 12
"""Before a figure's time begins. The job is in its stride after a few: no window is in anybody's way here."""
JOB = "job"
JOB_OPTIONS = {"size": 8 << 20, "rounds": 0, "qps": QPS_TO_EACH}
"""As in a job, every NIC waits for the slowest of a round."""


def parts(short: bool) -> Sequence[Part]:
    clock = Clock.round_trips(PRODUCTION, SHORT_UNIT if short else UNIT)

    def measure(run: Run) -> Measured:
        stopped_ns, back_ns = clock.run_ns(run, STOPPED), clock.run_ns(run, BACK)
        peers = queue_pairs(run)
        crossing = {key for key, peer in peers.items() if across(key[0], peer)}
        abandoning = hit(run, stopped_ns, back_ns) & crossing
        lost = lost_packets(run, stopped_ns - PRODUCTION.base_rtt_ns, back_ns)
        lengths = rounds(run, clock)
        usual = measuring.median(length for end, length in lengths if 0 <= end < STOPPED)
        failure_s = longer_s(clock, lengths, usual, STOPPED, STOPPED + 2)
        return_s = longer_s(clock, lengths, usual, BACK, END)
        numbers = {
            "share hit": len(abandoning) / len(crossing),
            "lost a queue pair hit": lost / max(1, len(abandoning)),
            "sample at the failure": 1 - failure_s / PAPER_SAMPLE_S,
            "sample at the return": 1 - return_s / PAPER_SAMPLE_S,
            "round trips longer": failure_s * SECOND_NS / PRODUCTION.base_rtt_ns,
            "failed": failed_qps(run),
            "hit late": len(hit(run, (stopped_ns + back_ns) // 2, back_ns) & crossing),
        }
        shown = [(end, usual / length) for end, length in lengths if end >= 0]
        return Measured(numbers, {"rate": shown})

    run = Part(
        name="mrc",
        plan=PRODUCTION,
        transport=MRC,
        workloads=[Workload("all_to_all", JOB_OPTIONS, ranks=HOSTS, name=JOB)],
        phases=phases(clock, END),
        faults=[clock.fault(STOPPED, "switch-crash", T1, until=BACK)],
        measure=measure,
    )
    return [run, setting(run, "half", {"evs_active": MRC_EVS // 2})]


def phases(clock: Clock, length: float) -> tuple[Phase, Phase]:
    """As a clock's, with a shorter lead-in."""
    return Phase(LEAD, Clock.round_trips(PRODUCTION).lab_s(LEAD_ROUND_TRIPS)), Phase(SHOWN, clock.lab_s(length))


def lost_packets(run: Run, start_ns: int, stop_ns: int) -> int:
    """Data packets sent between two instants that were lost, as their senders found and repaired them."""
    found = 0
    for line in run.kind("repair"):
        if start_ns <= line["sent_ns"] < stop_ns:
            found += int(line["packets"]) - int(line["late"])
    return found


def hit(run: Run, start_ns: int, stop_ns: int) -> set[tuple[str, int]]:
    """The queue pairs, by host and number, that gave an EV up for a loss between two instants."""
    return {
        (str(line["node"]), int(line["qp"]))
        for line in run.kind("ev")
        if line["new"] == "assumed_bad" and start_ns <= line["t_ns"] < stop_ns
    }


def queue_pairs(run: Run) -> dict[tuple[str, int], str]:
    """The peer of every queue pair, by host and number."""
    return {
        (host, int(qp["qp"])): str(qp["peer"])
        for host, samples in run.agent_samples.items()
        for line in samples[-1:]
        for qp in line["qps"]
    }


def across(host: str, peer: str) -> bool:
    """Whether two NICs are under different leaves."""
    return PRODUCTION.leaf_of(PRODUCTION.host(host)) != PRODUCTION.leaf_of(PRODUCTION.host(peer))


def rounds(run: Run, clock: Clock) -> list[tuple[float, float]]:
    """(end, length) of each round of the job, in units of the clock; a round begins when the one before has ended."""
    ends: dict[int, int] = {}
    for line in run.kind("step"):
        if line["workload"] == JOB:
            ends[int(line["step"])] = max(ends.get(int(line["step"]), 0), int(line["t_ns"]))
    times = [clock.units(run, ends[step]) for step in sorted(ends)]
    return [(after, after - before) for before, after in itertools.pairwise(times)]


def longer_s(clock: Clock, lengths: Sequence[tuple[float, float]], usual: float, start: float, stop: float) -> float:
    """By how much rounds that end between two instants took longer than usual, real seconds."""
    spent = sum(length - usual for end, length in lengths if start <= end < stop)
    return max(0.0, spent) * clock.unit_ns / SECOND_NS
