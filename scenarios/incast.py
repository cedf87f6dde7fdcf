"""Seven hosts write to one, beside a victim flow that shares no NIC with them."""

from collections.abc import Sequence

from judging import SECOND_NS, PaperRow, checks
from judging.checks import Check
from scenarios import places
from scenarios.scenario import Phase, Scenario, Setting, Workload, phases

SENDERS = 7
IN_FLIGHT = 8 * 262_144
"""Bytes that a sender of the incast has posted at a time: with more, the incast would outlast the pause behind it."""


def hosts(setting: Setting) -> tuple[list[str], tuple[str, str]]:
    """The incast (receiver first, senders under other leaves) and the victim pair, one leaf with the receiver."""
    plan = setting.plan
    under_first = places.hosts_under(plan, 0)
    others = [host for host in plan.hosts() if host.name not in under_first]
    if len(under_first) < 2 or len(others) < SENDERS + 1:
        raise ValueError(f"incast needs 2 hosts per leaf and {SENDERS + 1} elsewhere; plan {plan.name!r} has too few")
    # Senders from every other leaf in turn, so that no uplink is the bottleneck instead of the receiver.
    spread = [host.name for host in sorted(others, key=lambda host: (plan.downlink_of(host), host))]
    senders, victim_source = spread[:SENDERS], spread[SENDERS]
    return [under_first[0], *senders], (victim_source, under_first[1])


def workloads(setting: Setting) -> Sequence[Workload]:
    incast, victim = hosts(setting)
    pairs, lasts_ns = setting.queue_pairs, round(setting.phases["faults"] * setting.pace * SECOND_NS)
    stream = {"size": 262144, "depth": 8, "qps": pairs, "messages": 0}
    depth = max(1, 8 // pairs)  # of each queue pair
    burst = {**stream, "size": IN_FLIGHT // (pairs * depth), "depth": depth, "duration_ns": lasts_ns}
    return [
        Workload("write_bw", stream, ranks=victim, name="victim"),
        Workload("incast", burst, ranks=tuple(incast), name="incast", phase="faults"),
    ]


def judge(setting: Setting) -> Sequence[Check]:
    own = [checks.flow_kept("victim", 0.95), checks.flows_even("incast", 0.10)]
    if not setting.single_plane and setting.plan.trimming.enabled:
        own += [checks.switches_trimmed(), checks.retransmission_timeouts(0)]
    return [*checks.always(), *own]


SCENARIO = Scenario(
    name="incast",
    title="A neighbour does not notice seven writing to one",
    description=(
        "First the victim flow runs alone. Then seven hosts write to one host as fast as they may. Afterwards the "
        "victim is alone again: before and after are the reference. The victim's receiver sits under the same leaf "
        "but shares no NIC with the incast, so it should "
        "not notice. Run it again with --set trimming.enabled=false to see what trimming is for."
    ),
    plan="rack",
    workloads=workloads,
    checks=judge,
    phases=phases(Phase("pause", 4.0), warmup_s=3.0, reference_s=12.0, faults_s=18.0, heal_s=12.0),
    settings={"rcv_penalty": True},  # without it the flows change places for hundreds of round trips (mrc-cx8)
    paper=(
        PaperRow("18", "7:1 incast and a victim, MRC", "victim 389 of 390 Gb/s, incast flows 56 Gb/s each (55–56)"),
        PaperRow("18", "the same, RoCE with DCQCN, 1 QP", "victim −25 %; with 8 QPs dips to 62 Gb/s for a second"),
        PaperRow("21", "the same, RoCE with PFC only", "victim 25 to 97 Gb/s"),
    ),
)
