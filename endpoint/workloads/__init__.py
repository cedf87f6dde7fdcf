"""Workloads: the work of hosts, one kind per file, found here by its name."""

from collections.abc import Mapping
from typing import Any

from endpoint.workloads import options as option
from endpoint.workloads.collective import AllToAll
from endpoint.workloads.options import WorkloadError
from endpoint.workloads.ring import AllGather, AllReduce, Training
from endpoint.workloads.schedule import ScheduleWorkload
from endpoint.workloads.stream import Incast, Mix, Permutation, StreamWorkload, WriteBw
from endpoint.workloads.workload import MEMORY_BYTES_MAX, MemoryRefusedError, Setup, Workload
from endpoint.workloads.write_lat import WriteLat

__all__ = [
    "KINDS", "MEMORY_BYTES_MAX", "MemoryRefusedError", "Setup", "StreamWorkload", "Workload", "WorkloadError",
    "defaults", "make",
]  # fmt: skip

KINDS: dict[str, type[Workload]] = {
    "write_bw": WriteBw,
    "write_lat": WriteLat,
    "mix": Mix,
    "permutation": Permutation,
    "incast": Incast,
    "all_reduce": AllReduce,
    "all_gather": AllGather,
    "all_to_all": AllToAll,
    "training": Training,
    "schedule": ScheduleWorkload,
}
"""The workloads by their names in scenarios and on the command line."""


def make(setup: Setup, options: Mapping[str, Any]) -> Workload:
    """The workload of `setup.kind`. Raises WorkloadError for an unknown kind, bad options or bad ranks."""
    kind = KINDS.get(setup.kind)
    if kind is None:
        raise WorkloadError(f"there is no workload {setup.kind!r}; valid: {', '.join(KINDS)}")
    ranks = setup.ranks
    if not kind.RANKS_MIN <= len(ranks) <= kind.RANKS_MAX:
        allowed = str(kind.RANKS_MIN) if kind.RANKS_MIN == kind.RANKS_MAX else f"{kind.RANKS_MIN} to {kind.RANKS_MAX}"
        raise WorkloadError(f"{setup.kind} takes {allowed} ranks, not {len(ranks)}")
    if len(set(ranks)) != len(ranks) or setup.host not in ranks:
        raise WorkloadError(f"ranks {list(ranks)} must name {setup.host} and each host once")
    return kind(setup, option.parse(setup.kind, kind.OPTIONS, options, len(ranks)))


def defaults() -> dict[str, dict[str, Any]]:
    """Per kind its options with their defaults."""
    return {name: option.defaults(kind.OPTIONS) for name, kind in KINDS.items()}
