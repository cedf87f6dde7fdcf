"""Load on each plane: the bytes that hosts sent on the plane, and how uneven the planes are."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from functools import partial

from common.journal import Line
from scenarios.judging.arrays import Floats, np
from scenarios.judging.goodput import at, curve
from scenarios.judging.run import Run, Span

FULL_PACKET_BYTES = 4300.0


def sent_on(plane: int, line: Line) -> dict[int, int]:
    """Bytes that each port of a plane had sent, by port, from a `sample` line."""
    return {port["port"]: int(port["tx_bytes"]) for port in line["ports"] if port["plane"] == plane}


def curves(run: Run, when: Floats) -> dict[int, Floats]:
    """Bytes by plane that all hosts together had sent, at each instant of `when` (ns)."""
    totals: dict[int, Floats] = defaultdict(lambda: np.zeros_like(when))
    for samples in run.agent_samples.values():
        for plane in {int(port["plane"]) for line in samples for port in line["ports"]}:
            totals[plane] = totals[plane] + at(*curve(samples, partial(sent_on, plane)), when)
    return dict(sorted(totals.items()))


def bytes_sent(run: Run, span: Span) -> dict[int, float]:
    """Bytes by plane that all hosts sent in a span."""
    return bytes_sent_in(run, [span])


def bytes_sent_in(run: Run, spans: Sequence[Span]) -> dict[int, float]:
    """Bytes by plane that all hosts sent in several spans together."""
    edges = np.array([edge for span in spans for edge in (span.start_ns, span.stop_ns)], dtype=float)
    return {plane: float((total[1::2] - total[::2]).sum()) for plane, total in curves(run, edges).items()}


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
