"""Completion times of the messages of schedules: when each began at its sender and was whole at its receiver."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from judging.arrays import np
from judging.run import SECOND_NS, Run

__all__ = ["completions"]


@dataclass(frozen=True, slots=True)
class MessageCompletion:
    """One message. Times are the journal's; `line` is its place in the file, and `ideal_ns` what it takes alone."""

    workload: str
    source: str
    target: str
    line: int
    bytes: int
    start_ns: int
    acknowledged_ns: int
    received_ns: int | None
    ideal_ns: float

    @property
    def sender_ns(self) -> int:
        """Until the sender had the last acknowledgement, which is when simulators say that a flow has finished."""
        return self.acknowledged_ns - self.start_ns

    @property
    def took_ns(self) -> int:
        """Until the receiver had every byte; where its line is missing, until the sender knew."""
        return (self.acknowledged_ns if self.received_ns is None else self.received_ns) - self.start_ns

    @property
    def slowdown(self) -> float:
        """How many times longer it took than alone."""
        return self.took_ns / self.ideal_ns


def completions(run: Run) -> list[MessageCompletion]:
    """All messages that their senders completed, in that order."""
    received = {
        (line.get("workload"), line["peer"], line["node"], line["message"]): int(line["end_ns"])
        for line in run.kind("message")
        if line.get("state") == "received"
    }
    messages = []
    for line in run.kind("message"):
        if line.get("state") != "sent":
            continue
        key = (line.get("workload"), line["node"], line["peer"], line["message"])
        size = int(line["bytes"])
        times = int(line["start_ns"]), int(line["end_ns"]), received.get(key)
        where = str(line.get("workload")), str(line["node"]), str(line["peer"]), int(line.get("line", 0))
        messages.append(MessageCompletion(*where, size, *times, ideal(run, where[1], where[2], size)))
    return messages


def ideal(run: Run, source: str, target: str, size: int) -> float:
    """The completion time of a message that meets no other, ns, without headers.

    Its bytes leave by all ports of the host together; its last packet crosses the other links one after the other.
    """
    options = run.options
    rate_bps, port_bps = float(options.get("host_rate_bps") or 1), float(options.get("port_rate_bps") or 1)
    crossed, delay_ns = between(options, int(source[1:]), int(target[1:]))
    last_bytes = min(size, int(options.get("pmtu_bytes") or size))
    return max(1.0, delay_ns + (size / rate_bps + crossed * last_bytes / port_bps) * 8 * SECOND_NS)


def between(options: Mapping[str, Any], source: int, target: int) -> tuple[int, float]:
    """The switches between two hosts, given by index, and the propagation of all links between them, ns."""
    fabric, delays = options.get("fabric") or {}, options.get("delay_ns") or {}
    if "crossed" in fabric:
        crossed = int(fabric["crossed"][fabric["leaf_of"][source]][fabric["leaf_of"][target]])
        return crossed, float(delays.get("local") or 0) + (crossed - 1) * float(fabric["link_delay_ns"])
    per_leaf = int(options.get("hosts") or 1) // int(fabric.get("leaves") or 1)
    local = source // per_leaf == target // per_leaf
    return (1 if local else 3), float(delays.get("local" if local else "fabric") or 0)


def by_workload(run: Run) -> dict[str, list[MessageCompletion]]:
    """All messages that their senders completed, by workload."""
    messages: dict[str, list[MessageCompletion]] = {}
    for message in completions(run):
        messages.setdefault(message.workload, []).append(message)
    return messages


def times(run: Run) -> list[dict[str, Any]]:
    """The figures of each workload that has messages (`summed`)."""
    return [summed(name, own) for name, own in by_workload(run).items()]


def summed(workload: str, own: Sequence[MessageCompletion]) -> dict[str, Any]:
    """The figures of these messages: completion times in ns, `last_ns` from the first message's start."""
    begin_ns = min(message.start_ns for message in own)
    took, sender, slowdowns = ([getattr(message, of) for message in own] for of in ("took_ns", "sender_ns", "slowdown"))
    return {
        "workload": workload,
        "count": len(own),
        "bytes": sum(message.bytes for message in own),
        "median_ns": float(np.percentile(took, 50)),
        "p99_ns": float(np.percentile(took, 99)),
        "longest_ns": max(took),
        "last_ns": max(message.start_ns + message.took_ns for message in own) - begin_ns,
        "sender_median_ns": float(np.percentile(sender, 50)),
        "sender_p99_ns": float(np.percentile(sender, 99)),
        "sender_last_ns": max(message.acknowledged_ns for message in own) - begin_ns,
        "slowdown_median": float(np.percentile(slowdowns, 50)),
        "slowdown_p99": float(np.percentile(slowdowns, 99)),
    }
