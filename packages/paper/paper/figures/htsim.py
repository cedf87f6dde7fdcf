"""The validation set of public uet-htsim: a second oracle that anyone can run, on links of 100 Gb/s."""

from collections.abc import Sequence
from dataclasses import replace

from judging import Run
from paper import parameters
from paper.figure import Measured, Part
from paper.parameters import MRC, mrc
from running.transport_choice import TransportChoice
from scenarios import Phase, TimedFault, Workload
from topo import Plan
from topo.plan import Links

GBPS = 1_000_000_000
MESSAGE, MESSAGES = 61 * 4096, 8  # 1,998,848 bytes: the simulator's 2 MB in whole packets
SLOW_LINKS = 8
SEEDS = (2, 3)  # of experiments: other paths for every flow
LINKS = Links(
    host_rate_bps=100 * GBPS,
    fabric_rate_bps=100 * GBPS,
    host_delay_ns=1_500,
    fabric_delay_ns=1_500,
    mtu_bytes=parameters.MTU_BYTES,
    hardware_rate_bps=100 * GBPS,
)
OBLIVIOUS, SINGLE = mrc({"selection": "oblivious"}), mrc({"selection": "single_path"})


def plan(leaves: int, hosts_per_leaf: int) -> Plan:
    """Leaf and spine with full bisection, 12 µs there and back without serialisation."""
    return Plan(
        name=f"htsim-{leaves * hosts_per_leaf}",
        planes=1,
        leaves=leaves,
        spines=hosts_per_leaf,
        hosts_per_leaf=hosts_per_leaf,
        links=LINKS,
        packets=parameters.PACKETS,
        queues=parameters.QUEUES,
        trimming=parameters.TRIMMING,
    )


def last_fct_us(run: Run) -> Measured:
    """When the last flow was complete at its sender, µs after all began."""
    began_ns = run.phases["faults"].start_ns
    ends_ns = [int(line["t_ns"]) for line in run.kind("workload") if line["state"] == "stop"]
    return Measured({"fct": (max(ends_ns) - began_ns) / 1000})


def flows(
    name: str,
    fabric: Plan,
    choice: TransportChoice,
    kind: str,
    expected_us: float,
    ranks: int | None = None,
    slow: Sequence[str] = (),
    slow_gbps: float = 10.0,
    seed: int = 1,
) -> Part:
    """Flows of 2 MB that begin together; `slow` links (or directions of links) above the leaves run at another rate."""
    length_s = 3 * expected_us / 1e6 / fabric.pace
    options = {"size": MESSAGE, "messages": MESSAGES, "depth": 3}
    if kind == "permutation":
        options["shift"] = fabric.host_count // 2 + 1
    hosts = None if ranks is None else tuple(f"h{number}" for number in range(ranks))
    faults = [TimedFault(0.0, "rate", link, value=slow_gbps * 1000, phase="warmup") for link in slow]
    return Part(
        name=name,
        plan=fabric,
        transport=choice,
        workloads=[Workload(kind, options, ranks=hosts, phase="faults")],
        phases=[Phase("warmup", 0.1), Phase("faults", length_s)],
        measure=last_fct_us,
        faults=faults,
        sample_s=length_s / 4,
        seed=seed,
    )


def parts(short: bool) -> Sequence[Part]:
    large = plan(4, 4) if short else plan(32, 32)
    slow = [f"p0l{number}-p0s{number}" for number in range(2 if short else SLOW_LINKS)]
    down = [f"p0s{number}>p0l{number}" for number in range(len(slow))]
    pair = replace(plan(2, 1), spines=32)
    return [
        flows("single", pair, MRC, "write_bw", 176.2),
        flows("incast-15", plan(4, 4), MRC, "incast", 2478.5),
        flows("incast-127", plan(4, 4) if short else plan(8, 16), MRC, "incast", 21_029),
        flows("feedback", large, MRC, "permutation", 200.5),
        flows("oblivious", large, OBLIVIOUS, "permutation", 212.8),
        flows("single-path", large, SINGLE, "permutation", 889.9),
        flows("slow-feedback", large, MRC, "permutation", 219.6, slow=slow),
        flows("slow-oblivious", large, OBLIVIOUS, "permutation", 280.8, slow=slow),
        *(flows(f"single-path-seed-{seed}", large, SINGLE, "permutation", 889.9, seed=seed) for seed in SEEDS),
        flows("slow-down", large, OBLIVIOUS, "permutation", 280.8, slow=down),
        flows("slow-quarter", large, OBLIVIOUS, "permutation", 280.8, slow=slow, slow_gbps=25.0),
        flows("slow-down-quarter", large, OBLIVIOUS, "permutation", 280.8, slow=down, slow_gbps=25.0),
        *(
            flows(f"slow-down-quarter-seed-{seed}", large, OBLIVIOUS, "permutation", 280.8, None, down, 25.0, seed=seed)
            for seed in SEEDS
        ),
    ]
