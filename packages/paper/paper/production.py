"""A job on a fabric with as many paths as the production fabrics have: its traffic, losses, and what was hit.

The paper's jobs had 50,000 and 75,000 GPUs. Here a queue pair has all of its 512 paths and there are few NICs, so what
is compared is per queue pair, per NIC, or a share.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from judging import SECOND_NS, Run
from paper.clock import LEAD, SHOWN, Clock
from paper.cluster import PRODUCTION
from scenarios import Phase, Workload

HOSTS = tuple(f"h{index}" for index in range(PRODUCTION.host_count))
QPS_TO_EACH = 8
LEAD_ROUND_TRIPS = 12
"""Before a figure's time begins. The job is in its stride after a few: no window is in anybody's way here."""
JOB = "job"


def all_to_all(size: int = 8 << 20) -> Workload:
    """Rounds of an all-to-all: as in a job, every NIC waits for the slowest of a round."""
    return Workload("all_to_all", {"size": size, "rounds": 0, "qps": QPS_TO_EACH}, ranks=HOSTS, name=JOB)


def phases(clock: Clock, length: float) -> tuple[Phase, Phase]:
    """As a clock's, with a shorter lead-in."""
    return Phase(LEAD, Clock.round_trips(PRODUCTION).lab_s(LEAD_ROUND_TRIPS)), Phase(SHOWN, clock.lab_s(length))


def lost_packets(run: Run, start_ns: int, stop_ns: int) -> int:
    """Data packets sent between two instants that were lost, as their senders found and repaired them."""
    lost = 0
    for line in run.kind("repair"):
        if start_ns <= line["sent_ns"] < stop_ns:
            lost += int(line["packets"]) - int(line["late"])
    return lost


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
