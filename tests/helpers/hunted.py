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
"""Cases that hunts found, shrunk, each with the fault behind it, whose rule has no narrower test."""
