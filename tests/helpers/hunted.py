"""Cases that hunts have found, shrunk: a test attempts each of them again."""

from typing import Any

from endpoint.mrc.presets import CX8
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
    # More packets were trimmed than a port's share for trimmed packets carries: the check was wrong.
    "small packets": case(
        1630215900, (1, 2, 2, 2), [load("incast", "h1 h0 h3 h2", depth=8, qps=2, size=1875)], [], SMALL, faults_s=0.3
    ),
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
    # The last path in rotation was dead; the path that was out had relapsed, and needed sixteen probes.
    "a relapse keeps the only sound path out": case(
        799063767, (1, 2, 2, 1), [load("write_bw", "h0 h1", depth=1, qps=1, rate_bps=100_000, size=1875)],
        [
            TimedFault(0.0, "drain", "p0l1", 0.001),
            TimedFault(1.882, "link-down", "p0l1-p0s0", 0.68),
            TimedFault(2.416, "link-down", "p0l0-p0s1", 2.19),
        ], settings={"probes_to_resurrect": 8}, faults_s=5.0,
    ),
    # More packets were trimmed than a port's share carries, until the end, so that some path was always out.
    "crowded until the end": case(
        80443122, (3, 2, 3, 2),
        [load("incast", "h2 h0 h1 h3", depth=1, messages=0, qps=2, rate_bps=4_000_000, size=100_000)],
        [TimedFault(0.0, "link-down", "p1l1-p1s2", 0.01)], SMALL, faults_s=1.0,
    ),
    # Queues were full: each answer came after the next probe, which had taken the one before for unanswered.
    "answers slower than probes": case(
        188278189, (2, 3, 2, 2), [load("incast", "h1 h0 h5", depth=8, messages=0, qps=1, rate_bps=0, size=30_000)],
        [TimedFault(0.0, "port-down", "h5.p1", 0.01)],
        settings={"probes_to_resurrect": 8, "rcv_penalty": False}, faults_s=0.3,
    ),
    # Between two writes of a queue pair that was held back to a rate there came an outage: the check was wrong.
    "nothing to send": case(
        2019789390, (1, 2, 1, 1),
        [load("mix", "h1 h0", depth=1, immediate_every=1, messages=0, qps=1, rate_bps=100_000,
              sizes=[[64, 3], [4096, 2], [20000, 1]])],
        [TimedFault(3.583, "port-down", "h0.p0", 0.59), TimedFault(4.192, "port-down", "h0.p0", 0.05)], faults_s=5.0,
    ),
    # The pair that was named waited for others: the check was wrong. Those were slow: a port of their own that had been
    # down taught a queue pair to wait for four round trips, and each path that probes brought back was given up at once
    # for packets from before (tests/endpoint/mrc/test_reordering.py, test_ev_state.py).
    "outages on end": case(
        1159962773, (1, 2, 2, 2),
        [
            load("all_reduce", "h0 h1 h2", size=32768, rounds=0, qps=1),
            load("write_bw", "h1 h0", "load1", depth=2, messages=0, qps=1, rate_bps=500_000, size=4096),
        ],
        [
            TimedFault(0.809, "link-down", "h1-p0l0", 0.7),
            TimedFault(1.641, "link-down", "p0l1-p0s0", 0.149),
            TimedFault(1.818, "link-down", "p0l1-p0s1", 0.555),
            TimedFault(2.45, "link-down", "p0l0-p0s0", 0.036),
        ], reference_s=1.5, faults_s=2.5,
    ),
    # Trimmed packets beyond their share, whose counter a crash took away: the check was blind.
    "a crash wipes a counter": case(
        587258763, (1, 2, 2, 2),
        [load("incast", "h1 h0 h2 h3", depth=2, qps=2, rate_bps=4_000_000, messages=0, size=12_500)],
        [TimedFault(0.0, "switch-crash", "p0l0", 0.017)], SMALL, faults_s=0.3,
    ),
    # A slow plane counted twice in the longest round trip to expect: nobody asked for the hole in a window for so long.
    "a slow link, and a hole": case(
        211287785, (2, 2, 1, 1), [load("incast", "h0 h1", "load1", depth=8, qps=2, size=30_000)],
        [TimedFault(0.0, "rate", "p1l0>h0", 1.7, 1.0, seed=1), TimedFault(0.0, "blackhole", "h1>p1l1", 0.2)],
        faults_s=2.5,
    ),
    # Writes of one packet met the same dead plane four times in a row: what was lost was sent again by any plane.
    "a dead plane, packet by packet": case(
        211287785, (2, 2, 2, 1),
        [
            load("write_bw", "h1 h0", size=64, depth=1, qps=2, rate_bps=100_000),
            load("incast", "h0 h1", "load1", depth=4, qps=1, size=15_000),
        ],
        [TimedFault(0.27, "rate", "p1l0>h0", 1.7, 1.0, seed=1), TimedFault(2.316, "blackhole", "h1>p1l1", 1.7)],
        settings={"sack_threshold_bytes": 0}, faults_s=5.0,
    ),
    # The answer to a probe proved nothing yet, and the next probe went by the deadline from before that answer.
    "a slow link, and an answer too early": case(
        211287785, (2, 2, 2, 1), [load("incast", "h0 h1", "load1", depth=8, qps=2, size=30_000)],
        [TimedFault(0.0, "rate", "p1l0>h0", 0.8, 1.0, seed=1), TimedFault(0.29, "blackhole", "h1>p1l1", 0.4)],
        faults_s=1.25,
    ),
    # Writes of one packet, trimmed in each round trip behind the same burst of two other queue pairs.
    "in step with what trims": case(
        1644543969, (2, 1, 1, 2),
        [
            load("write_bw", "h1 h0", depth=4, qps=2, rate_bps=150_000, messages=0, size=64),
            load("all_to_all", "h0 h1", "load1", size=2048, rounds=0, qps=1),
        ],
        [TimedFault(0.0, "port-down", "h1.p1", 0.01), TimedFault(1.13, "port-down", "h0.p1", 2.37)],
        {"queues": {"trim_lasthop": 0.2}}, faults_s=5.0,
    ),
    # Both probes went by the plane that was dead, and a slow link had made the timer long.
    "one dead plane asked twice": case(
        1195848426, (3, 2, 1, 2),
        [load("permutation", "h0 h2", depth=1, qps=2, rate_bps=2_000_000, messages=0, size=100_000)],
        [TimedFault(0.0, "rate", "p0l0-p0s0", 1.7, 0.31, seed=1), TimedFault(1.45, "switch-crash", "p2l1", 1.4)],
        faults_s=5.0,
    ),
    # The original had come, by the echoed EV, when its copy could have been answered: the path stayed out (preset CX8).
    "an original taken for its copy": case(
        996319623, (), [load("incast", "h0 h1 h2", depth=8, qps=2, rate_bps=0, messages=0, size=30_000)], [],
        settings=CX8, faults_s=0.3,
        parts={"cables": [
            *([f"h{number}", f"p{plane}l{number}"] for plane in range(2) for number in range(4)),
            ["p0l0", "p0l1"], ["p0l0", "p0l3"], ["p0l1", "p0l2"], ["p0l2", "p0l3", 0.25],
            ["p1l0", "p1l1"], ["p1l0", "p1l3"], ["p1l1", "p1l2"], ["p1l2", "p1l3"],
        ]},
    ),
}  # fmt: skip
"""What hunts have found, shrunk, and what was wrong."""
