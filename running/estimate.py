"""The memory and time that a run will take, and whether this machine has them, told before anything is made.

Figures for each switch, path and packet were measured (two cores, Python 3.11) and rounded up. The workloads say how
much memory they need; the number of packets is what the participating hosts could send at line rate.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple, cast

from endpoint import Transport
from endpoint.workloads import KINDS, MEMORY_BYTES_MAX, MemoryRefusedError, Setup, WorkloadError, make
from running.options import Choices
from running.spec import RunSpec
from scenarios import Workload
from topo import Plan
from topo.emulation import DRIVERS
from topo.path import path_count

__all__ = ["MEMORY_SHARE_MAX", "TooLargeError", "available_memory", "estimate", "runs_at_once", "size"]

MEGABYTE = 10**6
PROCESS_BYTES = 70 * MEGABYTE  # Python with every module that a run imports
AGENT_BYTES = 45 * MEGABYTE  # of a host in the emulated world: rings, and at most a process
PATH_BYTES = 350  # of each path to each destination, in an agent's profile
# In virtual time, where the paths to a host are made when a queue pair needs them:
VIRTUAL_SWITCH_BYTES = 200_000
VIRTUAL_PORT_BYTES = 31_000  # of a switch: its queues, its cable, the entries that lead to it
VIRTUAL_HOST_BYTES = 25_000  # a NIC without queue pairs
VIRTUAL_EV_BYTES = 2_000  # of a connection: path and state, at both ends
WINDOWS = 2  # bandwidth-delay products of every host, in frames under way and in queues
NEIGHBOURS = 2  # of a rank in a ring or a permutation
SAMPLE_BYTES = 1_500  # a port or queue pair in a line of the journal, as the judge reads it
JOURNAL_BYTES_MAX = 800 * MEGABYTE  # longer journals stay on disk; an hour of `link-flap`, 373 MB of text, took 0.9 GB
SAMPLES_A_SECOND = 10
SWITCH_ROWS_MAX = 10_000  # of ports, in the samples of switches in virtual time: 4 MB of journal, 0.4 s of processor
PACKET_SECONDS = 60e-6  # of virtual time's one processor, for a data packet with its acknowledgement and every hop
SWITCH_SECONDS = 0.03  # to build one in Mininet and install its tables
SECONDS_MAX = 24 * 3600
MEMORY_SHARE_MAX = 0.9  # of what is available: more would swap


class TooLargeError(ValueError):
    """A run that this machine cannot make; the message has the figures."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """The most that a run takes."""

    memory_bytes: int
    seconds: float

    def describe(self) -> str:
        return f"about {size(self.memory_bytes)} of memory and {duration(self.seconds)}"


def fabric_bytes(choices: Choices) -> int:
    """Memory of switches, hosts and their profiles, without the workloads."""
    plan = choices.running_plan
    if choices.world == "simulated":
        switches = plan.switch_count * VIRTUAL_SWITCH_BYTES + switch_ports(plan) * VIRTUAL_PORT_BYTES
        return PROCESS_BYTES + switches + plan.host_count * VIRTUAL_HOST_BYTES
    kinds = [plan.kind_of(switch) for switch in plan.switches()] if plan.switch_overrides else None
    each = {kind: driver.switch_bytes for kind, driver in DRIVERS.items()}
    switches = sum(each[kind] for kind in kinds) if kinds else each[plan.switch] * plan.switch_count
    paths = plan.host_count * (plan.host_count - 1) * path_count(plan, local=False)
    return PROCESS_BYTES + switches + AGENT_BYTES * plan.host_count + paths * PATH_BYTES


def switch_ports(plan: Plan) -> int:
    """The ports of all switches."""
    return plan.host_count * plan.planes + 2 * plan.topology.fabric_links


def switch_sample_s(spec: RunSpec) -> float:
    """How often switches are sampled in virtual time, in seconds of lab time: as often as hosts, in runs that are not
    large."""
    scenario = spec.scenario
    bounded_s = spec.seconds * switch_ports(spec.plan) / SWITCH_ROWS_MAX
    return scenario.sample_s if scenario.sample_switches else max(scenario.sample_s, bounded_s)


def connections_bytes(workload: Workload, choices: Choices) -> int:
    """Memory, in virtual time, of a workload's queue pairs with their paths, and of the frames under way."""
    plan = choices.running_plan
    ranks = len(ranks_of(workload, plan))
    neighbours = {"all_to_all": ranks * (ranks - 1), "incast": 2 * (ranks - 1)}  # of all ranks together
    pairs = neighbours.get(workload.kind, ranks * min(ranks - 1, NEIGHBOURS))
    queue_pairs = int(workload.options.get("qps", 1))
    under_way = ranks * WINDOWS * plan.planes * plan.plane_bdp_bytes
    return pairs * queue_pairs * path_count(plan, local=False) * VIRTUAL_EV_BYTES + under_way


def estimate(spec: RunSpec) -> Estimate:
    """The estimate of a run that has not been made. WorkloadError names a workload with impossible options."""
    choices, plan, workloads, seconds = spec.choices, spec.plan, spec.workloads(), spec.seconds
    samples = seconds * SAMPLES_A_SECOND * plan.host_count * (plan.planes + 4)
    seconds *= choices.pace
    load = spec.scenario.load(spec.setting) if spec.scenario.load is not None else None
    if load is not None and load.seconds < seconds:
        seconds, samples = load.seconds, samples * load.seconds / seconds
    held = [rank_memories(workload, plan, counted=choices.transport.counted) for workload in workloads]
    memory = fabric_bytes(choices) + min(round(samples * SAMPLE_BYTES), JOURNAL_BYTES_MAX)
    memory += sum(rank.bytes for ranks in held for rank in ranks)
    if choices.world == "simulated":
        memory += min(SWITCH_ROWS_MAX, round(samples)) * SAMPLE_BYTES
        memory -= sum(rank.common_bytes for ranks in held for rank in ranks[1:])
        memory += sum(connections_bytes(workload, choices) for workload in workloads)
        sending = min(plan.host_count, max(map(len, held), default=0))
        carried = seconds * sending * spec.setting.host_rate_bps / 8 if load is None else load.bytes
        packets = carried / plan.frame_bytes_max
        took = packets * PACKET_SECONDS + plan.switch_count * SWITCH_SECONDS / 2
    else:
        took = seconds + plan.switch_count * SWITCH_SECONDS
    return Estimate(memory, took)


def check(spec: RunSpec, available_bytes: int | None = None) -> Estimate:
    """The estimate of a run that fits. TooLargeError says what does not fit, with the figures, and what would fit."""
    available = available_memory() if available_bytes is None else available_bytes
    choices, plan = spec.choices, spec.plan
    what = f"{spec.scenario.name} on plan {plan.name} ({plan.host_count:,} hosts, {plan.switch_count:,} switches)"
    refuse_memory(what, fabric_bytes(choices), available)  # before workloads of a hundred thousand hosts are made
    try:
        estimated = estimate(spec)
    except WorkloadError as error:
        raise TooLargeError(str(error)) from None
    refuse_memory(what, estimated.memory_bytes, available)
    if estimated.seconds > SECONDS_MAX:
        raise TooLargeError(
            f"{what} would take about {duration(estimated.seconds)}: shorten the phases with --time, lower the rate"
            " with --rate, or take a smaller plan"
        )
    return estimated


def refuse_memory(what: str, needed_bytes: int, available_bytes: int) -> None:
    """TooLargeError when a run would take nearly all of the memory that is available, or more."""
    if needed_bytes > MEMORY_SHARE_MAX * available_bytes:
        raise TooLargeError(
            f"{what} would take about {size(needed_bytes)} of memory, and this machine has"
            f" {size(available_bytes)} to spare: take a smaller plan (./lab topo show NAME), or fewer hosts"
        )


def runs_at_once(memory_bytes: int, available_bytes: int) -> int:
    """The number of runs, each of so much memory, that fit side by side into what is available; at least 1."""
    return max(1, int(MEMORY_SHARE_MAX * available_bytes) // memory_bytes)


def ranks_of(workload: Workload, plan: Plan) -> Sequence[str]:
    """The hosts that take part."""
    return workload.ranks if workload.ranks is not None else [f"h{index}" for index in range(plan.host_count)]


class RankMemory(NamedTuple):
    """The memory of a rank, and the part that all ranks in one process share."""

    bytes: int
    common_bytes: int


def rank_memories(workload: Workload, plan: Plan, *, counted: bool = False) -> list[RankMemory]:
    """The memory of each rank: a workload that is offered no memory refuses and says how much it needs.

    With `counted` payload that is none for messages of any size.
    """
    ranks = tuple(ranks_of(workload, plan))
    memories: list[RankMemory] = []
    alike = KINDS[workload.kind].ALIKE if workload.kind in KINDS else True
    for host in ranks[:2] if alike else ranks:
        # In the place of a NIC: before a workload registers anything, it refuses and says how much memory it needs.
        transport = cast(Transport, SimpleNamespace(counted=counted, create_cq=lambda capacity: None))
        setup = Setup(workload.name, workload.kind, host, ranks, transport, lambda *_: None, lambda: 0, -1)
        needed = memory_asked(setup, workload)
        if needed.bytes > MEMORY_BYTES_MAX:
            raise WorkloadError(
                f"workload {workload.name} ({workload.kind}) would hold {size(needed.bytes)} on {host};"
                f" a host has {size(MEMORY_BYTES_MAX)}"
            )
        memories.append(needed)
    return memories[:1] + memories[1:] * (len(ranks) - 1) if alike else memories


def memory_asked(setup: Setup, workload: Workload) -> RankMemory:
    """The memory that a workload asks for when its host has none left."""
    try:
        make(setup, workload.options)
    except MemoryRefusedError as refused:
        return RankMemory(refused.needed_bytes, refused.common_bytes)
    except WorkloadError as error:
        raise WorkloadError(f"workload {workload.name}: {error}") from None
    return RankMemory(0, 0)


def available_memory(meminfo: Path = Path("/proc/meminfo")) -> int:
    """Bytes that processes could have without swapping (proc(5), MemAvailable)."""
    for line in meminfo.read_text().splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    raise OSError(f"{meminfo} does not say how much memory is available")


def size(count: float) -> str:
    """Bytes for people."""
    steps: Sequence[tuple[float, str]] = ((1e15, "PB"), (1e12, "TB"), (1e9, "GB"), (1e6, "MB"))
    for unit_bytes, unit in steps:
        if count >= unit_bytes:
            return f"{count / unit_bytes:,.3g} {unit}"
    return f"{count:.0f} bytes"


def duration(seconds: float) -> str:
    """Seconds for people."""
    for unit_seconds, unit in ((86_400.0, "days"), (3600.0, "hours"), (60.0, "minutes")):
        if seconds >= 2 * unit_seconds:
            return f"{seconds / unit_seconds:.0f} {unit}"
    return f"{max(1.0, seconds):.0f} s"
