"""The workload of the paper's single-pair tests: perftest's `ib_write_bw` with four queue pairs, one way or both."""

from __future__ import annotations

from scenarios.scenario import Workload

SIZE = 262_144
DEPTH = 16


def stream(
    sender: str, receiver: str, *, bidirectional: bool = False, qps: int = 4, size: int = SIZE, name: str = "main"
) -> Workload:
    """Writes without end from one host to another, and back if it is bidirectional."""
    options = {"size": size, "depth": DEPTH, "qps": qps, "bidirectional": bidirectional, "messages": 0}
    return Workload("write_bw", options, ranks=(sender, receiver), name=name)
