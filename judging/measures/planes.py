"""Load on each plane: the bytes that hosts sent on the plane, and how uneven the planes are."""

from collections import defaultdict

from judging.arrays import Floats, np
from judging.measures.goodput import at, totals
from judging.run import Run, Span

__all__ = ["bytes_sent"]

FULL_PACKET_BYTES = 4300.0  # where ports did not count packets


def curves(run: Run, when: Floats) -> dict[int, Floats]:
    """Bytes by plane that all hosts together had sent, at each instant of `when` (ns)."""
    by_plane: dict[int, Floats] = defaultdict(lambda: np.zeros_like(when))
    for host in run.agent_samples:
        counted = totals(run, host)
        for plane, sent in counted.planes.items():
            by_plane[plane] = by_plane[plane] + at(counted.times, sent, when)
    return dict(sorted(by_plane.items()))


def bytes_sent(run: Run, span: Span) -> dict[int, float]:
    """Bytes by plane that all hosts sent in a span."""
    edges = np.array([span.start_ns, span.stop_ns], dtype=float)
    return {plane: float(total[1] - total[0]) for plane, total in curves(run, edges).items()}


def packets_sent(run: Run, sent: dict[int, float]) -> float:
    """About how many packets the plane with the fewest bytes carried, by the mean size of hosts' packets."""
    ports = [port for samples in run.agent_samples.values() for port in samples[-1]["ports"]]
    every, packets = (sum(int(port.get(counter, 0)) for port in ports) for counter in ("tx_bytes", "tx_packets"))
    size = every / packets if every and packets else FULL_PACKET_BYTES
    return min(sent.values(), default=0.0) / size


def spread(sent: dict[int, float]) -> float:
    """The greatest distance of a plane from the mean, as a share of the mean."""
    if not sent:
        return 0.0
    mean = sum(sent.values()) / len(sent)
    return max(abs(value - mean) for value in sent.values()) / mean if mean else 0.0
