"""The failures as scenarios on one plan: a training loop and one kind of fault at a random instant."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from judging import checks
from judging.checks import Check
from scenarios import Scenario, Setting, TimedFault, Workload, only_training, phases
from topo.graph import links

PHASES = phases(warmup_s=2.4, reference_s=3.6, faults_s=4.8, heal_s=0.6)
BEGINS_S = (0.3, 1.5)
"""A step is 1.17 s: the fault meets it while hosts communicate, or seldom while they compute."""
GREY_PERCENT = 20.0
FLAPS, DOWN_S = 3, (0.3, 0.7)
PORT_DOWN_S = 2.0
SENT_BYTES = 8 * 262_144
"""The bytes that a sender of the incast has posted at a time."""

Timeline = Callable[[Setting], Sequence[TimedFault]]


def fabric_links(setting: Setting) -> list[str]:
    """The links between switches, as faults name them."""
    nodes = [(link.a.node.name, link.b.node.name) for link in links(setting.plan)]
    return ["-".join(pair) for pair in nodes if not any(name.startswith("h") for name in pair)]


def dead_link(setting: Setting) -> Sequence[TimedFault]:
    """A link goes down and stays down."""
    rng = setting.new_rng()
    return [TimedFault(rng.uniform(*BEGINS_S), "link-down", rng.choice(fabric_links(setting)))]


def flap(setting: Setting) -> Sequence[TimedFault]:
    """Links go down one after another, each for half a second."""
    rng = setting.new_rng()
    part_s = (setting.phases["faults"] - BEGINS_S[0]) / FLAPS
    chosen = rng.sample(fabric_links(setting), FLAPS)
    return [
        TimedFault(part_s * index + rng.uniform(0.1, 0.5) * part_s, "link-down", link, rng.uniform(*DOWN_S))
        for index, link in enumerate(chosen)
    ]


def grey_link(setting: Setting) -> Sequence[TimedFault]:
    """A link loses a fifth of its packets, and both ends report it up."""
    rng = setting.new_rng()
    at_s, link = rng.uniform(*BEGINS_S), rng.choice(fabric_links(setting))
    return [TimedFault(at_s, "loss", link, value=GREY_PERCENT, seed=rng.randrange(1, 1 << 32))]


def lost_spine(setting: Setting) -> Sequence[TimedFault]:
    """A spine loses its tables and stays up, so that no port goes down."""
    rng = setting.new_rng()
    spines = [switch.name for switch in setting.plan.switches() if switch.role == "spine"]
    return [TimedFault(rng.uniform(*BEGINS_S), "switch-crash", rng.choice(spines))]


def lost_nic_port(setting: Setting) -> Sequence[TimedFault]:
    """A port of a NIC goes down, and comes back two seconds later."""
    rng = setting.new_rng()
    port = f"h{rng.randrange(setting.plan.host_count)}.p{rng.randrange(setting.plan.planes)}"
    return [TimedFault(rng.uniform(*BEGINS_S), "port-down", port, PORT_DOWN_S)]


def no_fault(setting: Setting) -> Sequence[TimedFault]:
    """All hosts of other leaves but one begin to write to one host."""
    return []


def incast(setting: Setting) -> Sequence[Workload]:
    """A stream to the receiver's neighbour throughout, and the incast in the phase of faults."""
    plan, pairs = setting.plan, setting.queue_pairs
    others = [host.name for host in plan.hosts() if plan.leaf_of(host) != 0]
    receiver, neighbour = (plan.host_at(0, downlink).name for downlink in range(2))
    stream = {"size": 262144, "depth": 8, "qps": pairs, "messages": 0}
    depth = max(1, 8 // pairs)
    burst = {**stream, "depth": depth, "size": SENT_BYTES // (pairs * depth)}
    burst["duration_ns"] = round(setting.phases["faults"] * setting.pace * 1e9)
    return [
        Workload("write_bw", stream, ranks=(others[-1], neighbour), name="stream"),
        Workload("incast", burst, ranks=(receiver, *others[:-1]), name="incast", phase="faults"),
    ]


def judge(setting: Setting) -> Sequence[Check]:
    """The claims that every answer must keep: right bytes, and no queue pair that gives up."""
    return [checks.bytes_right(), checks.no_qp_error()]


FAILURES: Mapping[str, Timeline] = {
    "dead-link": dead_link,
    "flap": flap,
    "grey-link": grey_link,
    "lost-spine": lost_spine,
    "lost-nic-port": lost_nic_port,
    "incast": no_fault,
}
"""Each failure's timeline."""


def failing(name: str) -> Scenario:
    """The scenario of a failure. The load is the training loop, but for the incast."""
    timeline = FAILURES[name]
    title = str(timeline.__doc__).strip().rstrip(".")
    workloads = incast if name == "incast" else only_training
    return Scenario(
        name, title, title + ".", plan="lab", workloads=workloads, checks=judge, timeline=timeline, phases=PHASES
    )


def file_of(name: str) -> Path:
    """The scenario file of a failure, as `./lab run` takes it."""
    return Path(__file__).parent / f"{name.replace('-', '_')}.py"
