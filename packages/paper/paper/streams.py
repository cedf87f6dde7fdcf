"""The workloads of the paper's single-pair tests: perftest's `ib_write_bw` with four queue pairs, one way or both, and
writes one at a time."""

from collections.abc import Mapping
from types import MappingProxyType

from scenarios import Workload

SIZE = 262_144
DEPTH = 16


def stream(
    sender: str,
    receiver: str,
    *,
    bidirectional: bool = False,
    qps: int = 4,
    size: int = SIZE,
    name: str = "main",
    host: Mapping[str, int] = MappingProxyType({}),
) -> Workload:
    """Writes without end from one host to another, and back if it is bidirectional; `host` is `Profile.message`."""
    options = {"size": size, "depth": DEPTH, "qps": qps, "bidirectional": bidirectional, "messages": 0, **host}
    return Workload("write_bw", options, ranks=(sender, receiver), name=name)


def one_at_a_time(sender: str, receiver: str, messages: int, phase: str, host: Mapping[str, int]) -> Workload:
    """So many writes of 2 bytes, each posted when the one before is complete; `host` is `Profile.message`."""
    options = {"size": 2, "messages": messages, "depth": 1, **host}
    return Workload("write_bw", options, ranks=(sender, receiver), phase=phase)
