"""Load on each plane: the bytes that hosts sent on the plane, and how uneven the planes are."""

from __future__ import annotations

from collections import defaultdict

from judging.arrays import Floats, np
from judging.measures.goodput import at
from judging.measures.totals import totals
from judging.run import Run, Span

__all__ = ["bytes_sent"]

FULL_PACKET_BYTES = 4300.0


def curves(run: Run, when: Floats) -> dict[int, Floats]:
    """Bytes by plane that all hosts together had sent, at each instant of `when` (ns)."""
    found: dict[int, Floats] = defaultdict(lambda: np.zeros_like(when))
    for host in run.agent_samples:
        counted = totals(run, host)
        for plane, sent in counted.planes.items():
            found[plane] = found[plane] + at(counted.times, sent, when)
    return dict(sorted(found.items()))


def bytes_sent(run: Run, span: Span) -> dict[int, float]:
    """Bytes by plane that all hosts sent in a span."""
    edges = np.array([span.start_ns, span.stop_ns], dtype=float)
    return {plane: float(total[1] - total[0]) for plane, total in curves(run, edges).items()}


def packets_sent(run: Run, sent: dict[int, float]) -> float:
    """About how many packets the plane with the fewest bytes carried, by the mean size of hosts' packets."""
    size = packet_bytes(run)
    return min(sent.values(), default=0.0) / size if size else 0.0


def packet_bytes(run: Run) -> float:
    """The mean size of hosts' packets over the whole run; a full packet's when ports did not count packets."""
    bytes_total = packets_total = 0
    for samples in run.agent_samples.values():
        for port in samples[-1]["ports"]:
            bytes_total += int(port.get("tx_bytes", 0))
            packets_total += int(port.get("tx_packets", 0))
    return bytes_total / packets_total if packets_total else FULL_PACKET_BYTES


def spread(sent: dict[int, float]) -> float:
    """The greatest distance of a plane from the mean, as a share of the mean."""
    if not sent:
        return 0.0
    mean = sum(sent.values()) / len(sent)
    return max(abs(value - mean) for value in sent.values()) / mean if mean else 0.0
