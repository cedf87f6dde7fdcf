"""Cases that hunts have found, shrunk: a test attempts each of them again."""

from typing import Any

from scenarios.scenario import TimedFault, Workload
from studies.hunting.case import Case

SMALL = {"packets": {"pmtu_bytes": 512}}


def load(kind: str, ranks: str, name: str = "load0", **options: Any) -> Workload:
    return Workload(kind, options, tuple(ranks.split()), name)


def case(
    seed: int, fabric: tuple[int, ...], workloads: list[Workload], faults: list[TimedFault], *given: Any, **others: Any
) -> Case:
    """`fabric` is planes, leaves, spines and hosts per leaf."""
    numbers = dict(zip(("planes", "leaves", "spines", "hosts_per_leaf"), fabric, strict=False))
    return Case(seed, numbers, tuple(workloads), tuple(faults), *given, **{"reference_s": 0.5, "after_s": 2.0} | others)


FOUND = {
    # The first packets waited in full queues, later ones found them drained: the reorder window was too short.
    "queues that drain": case(
        1673075432, (2, 3, 3, 2),
        [
            load("mix", "h4 h0", "a", qps=1, rate_bps=100_000, depth=2, sizes=[[1, 1], [5000, 1]]),
            load("incast", "h2 h5 h0 h1", "b", qps=1, rate_bps=100_000, depth=1, size=100_000),
        ], [], faults_s=0.3,
    ),
    # The last path in rotation was dead; the path that was out, sound again, was probed ever more seldom.
    "a sound path waits on the bench": case(
        2107604908, (1, 2, 2, 1), [load("incast", "h1 h0", depth=8, qps=1, size=64)],
        [
            TimedFault(0.677, "switch-crash", "p0l1", 0.42),
            TimedFault(1.07, "switch-stop", "p0s1", 1.0),
            TimedFault(1.317, "port-down", "h0.p0", 0.01),
            TimedFault(1.738, "port-down", "h0.p0", 0.02),
            TimedFault(2.334, "port-down", "h0.p0", 0.375),
        ], reference_s=0.75,
    ),
    # Late arrivals had widened the reorder window, so that the timer came before the probe that would have asked.
    "a timer before a probe": case(
        463510366, (1, 2, 2, 2),
        [load("mix", "h2 h0", depth=2, qps=2, rate_bps=1_600_000, sizes=[[40000, 1]], immediate_every=2)],
        [TimedFault(0.698, "port-down", "h2.p0", 0.2)], SMALL, faults_s=2.0, after_s=3.0,
    ),
    # Askings had become rarer than timeouts, and each timeout tried one path of three.
    "timeouts without probes": case(
        151950286, (3, 2, 1, 1), [load("all_to_all", "h0 h1", size=4096, rounds=0, qps=2)],
        [
            TimedFault(1.483, "switch-crash", "p1s0", 0.25),
            TimedFault(1.611, "switch-crash", "p0l0", 1.17),
            TimedFault(1.759, "switch-crash", "p2l0", 2.6),
            TimedFault(2.774, "switch-crash", "p1s0", 0.79),
        ], {"packets": {"pmtu_bytes": 1024}}, reference_s=1.5, faults_s=5.0,
    ),
    # Two queue pairs on single paths left a port that was lost and met on the other: the check was wrong.
    "single paths that meet": case(
        1905974663, (2, 2, 2, 1), [load("incast", "h0 h1", depth=8, qps=2, size=15000)],
        [TimedFault(0.0, "port-down", "h0.p1", 0.01)], settings={"selection": "single_path"}, faults_s=0.3,
    ),
    # Trimmed packets beyond their share, whose counter a crash took away: the check was blind.
    "a crash wipes a counter": case(
        587258763, (1, 2, 2, 2),
        [load("incast", "h1 h0 h2 h3", depth=2, qps=2, rate_bps=4_000_000, messages=0, size=12_500)],
        [TimedFault(0.0, "switch-crash", "p0l0", 0.017)], SMALL, faults_s=0.3,
    ),
}  # fmt: skip
"""What hunts have found, shrunk, and what was wrong, where no narrower test keeps the rule."""
