"""Cases that hunts have found, shrunk: a test attempts each of them again."""

from endpoint.mrc.presets import CX8
from scenarios.scenario import TimedFault, Workload
from studies.hunting.case import Case

INCAST = Workload("incast", {"depth": 8, "qps": 2, "size": 1875}, ("h1", "h0", "h3", "h2"), name="load0")
SLOWLY = {"qps": 1, "rate_bps": 100_000}
FOUND = {
    # More packets were trimmed than a port's share for trimmed packets carries: the check was wrong.
    "small packets": Case(
        1630215900, {"planes": 1, "leaves": 2, "spines": 2, "hosts_per_leaf": 2}, (INCAST,), (),
        {"packets": {"pmtu_bytes": 512}}, reference_s=0.5, faults_s=0.3, after_s=2.0,
    ),
    # The first packets waited in full queues, later ones found them drained: the reorder window was too short.
    "queues that drain": Case(
        1673075432, {"planes": 2, "leaves": 3, "spines": 3, "hosts_per_leaf": 2},
        (
            Workload("mix", {**SLOWLY, "depth": 2, "sizes": [[1, 1], [5000, 1]]}, ("h4", "h0"), name="a"),
            Workload("incast", {**SLOWLY, "depth": 1, "size": 100_000}, ("h2", "h5", "h0", "h1"), name="b"),
        ), (), reference_s=0.5, faults_s=0.3, after_s=2.0,
    ),
    # The last path in rotation was dead; the path that was out, sound again, was probed ever more seldom.
    "a sound path waits on the bench": Case(
        2107604908, {"planes": 1, "leaves": 2, "spines": 2, "hosts_per_leaf": 1},
        (Workload("incast", {"depth": 8, "qps": 1, "size": 64}, ("h1", "h0"), name="load0"),),
        (
            TimedFault(0.677, "switch-crash", "p0l1", 0.42),
            TimedFault(1.07, "switch-stop", "p0s1", 1.0),
            TimedFault(1.317, "port-down", "h0.p0", 0.01),
            TimedFault(1.738, "port-down", "h0.p0", 0.02),
            TimedFault(2.334, "port-down", "h0.p0", 0.375),
        ), reference_s=0.75, after_s=2.0,
    ),
    # Late arrivals had widened the reorder window, so that the timer came before the probe that would have asked.
    "a timer before a probe": Case(
        463510366, {"planes": 1, "leaves": 2, "spines": 2, "hosts_per_leaf": 2},
        (Workload("mix", {"depth": 2, "qps": 2, "rate_bps": 1_600_000, "sizes": [[40000, 1]], "immediate_every": 2},
                  ("h2", "h0"), name="load0"),),
        (TimedFault(0.698, "port-down", "h2.p0", 0.2),), {"packets": {"pmtu_bytes": 512}},
        reference_s=0.5, faults_s=2.0, after_s=3.0,
    ),
    # Askings had become rarer than timeouts, and each timeout tried one path of three.
    "timeouts without probes": Case(
        151950286, {"planes": 3, "leaves": 2, "spines": 1, "hosts_per_leaf": 1},
        (Workload("all_to_all", {"size": 4096, "rounds": 0, "qps": 2}, ("h0", "h1"), name="load0"),),
        (
            TimedFault(1.483, "switch-crash", "p1s0", 0.25),
            TimedFault(1.611, "switch-crash", "p0l0", 1.17),
            TimedFault(1.759, "switch-crash", "p2l0", 2.6),
            TimedFault(2.774, "switch-crash", "p1s0", 0.79),
        ), {"packets": {"pmtu_bytes": 1024}}, faults_s=5.0, after_s=2.0,
    ),
    # Two queue pairs on single paths left a port that was lost and met on the other: the check was wrong.
    "single paths that meet": Case(
        1905974663, {"planes": 2, "leaves": 2, "spines": 2, "hosts_per_leaf": 1},
        (Workload("incast", {"depth": 8, "qps": 2, "size": 15000}, ("h0", "h1"), name="load0"),),
        (TimedFault(0.0, "port-down", "h0.p1", 0.01),), settings={"selection": "single_path"},
        reference_s=0.5, faults_s=0.3, after_s=2.0,
    ),
    # The last path in rotation was dead; the path that was out had relapsed, and needed sixteen probes.
    "a relapse keeps the only sound path out": Case(
        799063767, {"planes": 1, "leaves": 2, "spines": 2, "hosts_per_leaf": 1},
        (Workload("write_bw", {"depth": 1, "qps": 1, "rate_bps": 100_000, "size": 1875}, ("h0", "h1"), name="load0"),),
        (
            TimedFault(0.0, "drain", "p0l1", 0.001),
            TimedFault(1.882, "link-down", "p0l1-p0s0", 0.68),
            TimedFault(2.416, "link-down", "p0l0-p0s1", 2.19),
        ), settings={"probes_to_resurrect": 8}, reference_s=0.5, faults_s=5.0, after_s=2.0,
    ),
    # More packets were trimmed than a port's share carries, until the end, so that some path was always out.
    "crowded until the end": Case(
        80443122, {"planes": 3, "leaves": 2, "spines": 3, "hosts_per_leaf": 2},
        (Workload("incast", {"depth": 1, "messages": 0, "qps": 2, "rate_bps": 4_000_000, "size": 100_000},
                  ("h2", "h0", "h1", "h3"), name="load0"),),
        (TimedFault(0.0, "link-down", "p1l1-p1s2", 0.01),), {"packets": {"pmtu_bytes": 512}},
        reference_s=0.5, faults_s=1.0, after_s=2.0,
    ),
    # Queues were full: each answer came after the next probe, which had taken the one before for unanswered.
    "answers slower than probes": Case(
        188278189, {"planes": 2, "leaves": 3, "spines": 2, "hosts_per_leaf": 2},
        (Workload("incast", {"depth": 8, "messages": 0, "qps": 1, "rate_bps": 0, "size": 30_000}, ("h1", "h0", "h5"),
                  name="load0"),),
        (TimedFault(0.0, "port-down", "h5.p1", 0.01),), settings={"probes_to_resurrect": 8, "rcv_penalty": False},
        reference_s=0.5, faults_s=0.3, after_s=2.0,
    ),
    # Between two writes of a queue pair that was held back to a rate there came an outage: the check was wrong.
    "nothing to send": Case(
        2019789390, {"planes": 1, "leaves": 2, "spines": 1, "hosts_per_leaf": 1},
        (
            Workload("mix", {"depth": 1, "immediate_every": 1, "messages": 0, "qps": 1, "rate_bps": 100_000,
                             "sizes": [[64, 3], [4096, 2], [20000, 1]]}, ("h1", "h0"), name="load0"),
        ),
        (TimedFault(3.583, "port-down", "h0.p0", 0.59), TimedFault(4.192, "port-down", "h0.p0", 0.05)),
        reference_s=0.5, faults_s=5.0, after_s=2.0,
    ),
    # The pair that was named waited for others: the check was wrong. Those were slow: a port of their own that had been
    # down taught a queue pair to wait for four round trips, and each path that probes brought back was given up at once
    # for packets from before (tests/endpoint/mrc/test_reordering.py, test_ev_state.py).
    "outages on end": Case(
        1159962773, {"planes": 1, "leaves": 2, "spines": 2, "hosts_per_leaf": 2},
        (
            Workload("all_reduce", {"size": 32768, "rounds": 0, "qps": 1}, ("h0", "h1", "h2"), name="load0"),
            Workload("write_bw", {"depth": 2, "messages": 0, "qps": 1, "rate_bps": 500_000, "size": 4096},
                     ("h1", "h0"), name="load1"),
        ),
        (
            TimedFault(0.809, "link-down", "h1-p0l0", 0.7),
            TimedFault(1.641, "link-down", "p0l1-p0s0", 0.149),
            TimedFault(1.818, "link-down", "p0l1-p0s1", 0.555),
            TimedFault(2.45, "link-down", "p0l0-p0s0", 0.036),
        ), faults_s=2.5, after_s=2.0,
    ),
    # Trimmed packets beyond their share, whose counter a crash took away: the check was blind.
    "a crash wipes a counter": Case(
        587258763, {"planes": 1, "leaves": 2, "spines": 2, "hosts_per_leaf": 2},
        (Workload("incast", {"depth": 2, "qps": 2, "rate_bps": 4_000_000, "messages": 0, "size": 12_500},
                  ("h1", "h0", "h2", "h3"), name="load0"),),
        (TimedFault(0.0, "switch-crash", "p0l0", 0.017),), {"packets": {"pmtu_bytes": 512}},
        reference_s=0.5, faults_s=0.3, after_s=2.0,
    ),
    # A slow plane counted twice in the longest round trip to expect: nobody asked for the hole in a window for so long.
    "a slow link, and a hole": Case(
        211287785, {"planes": 2, "leaves": 2, "spines": 1, "hosts_per_leaf": 1},
        (Workload("incast", {"depth": 8, "qps": 2, "size": 30_000}, ("h0", "h1"), name="load1", phase="warmup"),),
        (TimedFault(0.0, "rate", "p1l0>h0", 1.7, 1.0, seed=1), TimedFault(0.0, "blackhole", "h1>p1l1", 0.2)),
        reference_s=0.5, faults_s=2.5, after_s=2.0,
    ),
    # Writes of one packet met the same dead plane four times in a row: what was lost was sent again by any plane.
    "a dead plane, packet by packet": Case(
        211287785, {"planes": 2, "leaves": 2, "spines": 2, "hosts_per_leaf": 1},
        (
            Workload("write_bw", {"size": 64, "depth": 1, "qps": 2, "rate_bps": 100_000}, ("h1", "h0"), name="load0",
                     phase="warmup"),
            Workload("incast", {"depth": 4, "qps": 1, "size": 15_000}, ("h0", "h1"), name="load1", phase="warmup"),
        ),
        (TimedFault(0.27, "rate", "p1l0>h0", 1.7, 1.0, seed=1), TimedFault(2.316, "blackhole", "h1>p1l1", 1.7)),
        settings={"sack_threshold_bytes": 0}, reference_s=0.5, faults_s=5.0, after_s=2.0,
    ),
    # The answer to a probe proved nothing yet, and the next probe went by the deadline from before that answer.
    "a slow link, and an answer too early": Case(
        211287785, {"planes": 2, "leaves": 2, "spines": 2, "hosts_per_leaf": 1},
        (Workload("incast", {"depth": 8, "qps": 2, "size": 30_000}, ("h0", "h1"), name="load1", phase="warmup"),),
        (TimedFault(0.0, "rate", "p1l0>h0", 0.8, 1.0, seed=1), TimedFault(0.29, "blackhole", "h1>p1l1", 0.4)),
        reference_s=0.5, faults_s=1.25, after_s=2.0,
    ),
    # Writes of one packet, trimmed in each round trip behind the same burst of two other queue pairs.
    "in step with what trims": Case(
        1644543969, {"planes": 2, "leaves": 1, "spines": 1, "hosts_per_leaf": 2},
        (
            Workload("write_bw", {"depth": 4, "qps": 2, "rate_bps": 150_000, "messages": 0, "size": 64}, ("h1", "h0"),
                     name="load0", phase="warmup"),
            Workload("all_to_all", {"size": 2048, "rounds": 0, "qps": 1}, ("h0", "h1"), name="load1", phase="warmup"),
        ),
        (TimedFault(0.0, "port-down", "h1.p1", 0.01), TimedFault(1.13, "port-down", "h0.p1", 2.37)),
        {"queues": {"trim_lasthop": 0.2}}, reference_s=0.5, faults_s=5.0, after_s=2.0,
    ),
    # Both probes went by the plane that was dead, and a slow link had made the timer long.
    "one dead plane asked twice": Case(
        1195848426, {"planes": 3, "leaves": 2, "spines": 1, "hosts_per_leaf": 2},
        (
            Workload("permutation", {"depth": 1, "qps": 2, "rate_bps": 2_000_000, "messages": 0, "size": 100_000},
                     ("h0", "h2"), name="load0", phase="warmup"),
        ),
        (TimedFault(0.0, "rate", "p0l0-p0s0", 1.7, 0.31, seed=1), TimedFault(1.45, "switch-crash", "p2l1", 1.4)),
        reference_s=0.5, faults_s=5.0, after_s=2.0,
    ),
    # The original had come, by the echoed EV, when its copy could have been answered: the path stayed out (preset CX8).
    "an original taken for its copy": Case(
        996319623, {},
        (
            Workload("incast", {"depth": 8, "qps": 2, "rate_bps": 0, "messages": 0, "size": 30_000}, ("h0", "h1", "h2"),
                     name="load0", phase="warmup"),
        ), (), settings=CX8, reference_s=0.5, faults_s=0.3, after_s=2.0,
        parts={"cables": [
            *([f"h{number}", f"p{plane}l{number}"] for plane in range(2) for number in range(4)),
            ["p0l0", "p0l1"], ["p0l0", "p0l3"], ["p0l1", "p0l2"], ["p0l2", "p0l3", 0.25],
            ["p1l0", "p1l1"], ["p1l0", "p1l3"], ["p1l1", "p1l2"], ["p1l2", "p1l3"],
        ]},
    ),
}  # fmt: skip
"""What hunts have found, shrunk, and what was wrong."""
