"""Goodput: bytes that peers acknowledged, over time and over a span.

Agents sample totals; between two samples the total is taken to grow evenly, so that hosts sampled at different instants
can be added up. All totals are 0 when the first phase begins. A QP that is destroyed keeps its last total.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from common.journal import Line
from judging.arrays import Floats, np
from judging.measures import steps
from judging.run import SECOND_NS, Run, Span

__all__ = ["at", "of_phase", "over", "series"]

QP_FIELDS = ("data_packets", "retransmits", "rto", "trims", "ecn", "nacks", "skips", "probes", "acked_bytes")


@dataclass(frozen=True, slots=True)
class Totals:
    """Arrays with an entry for each sample. A queue pair that has gone counts with its last total."""

    times: Floats  # ns
    qps: Mapping[str, Floats]  # by those of QP_FIELDS that any queue pair counts: the sum over all
    planes: Mapping[int, Floats]  # by plane: bytes that ports sent


def totals(run: Run, host: str) -> Totals:
    """Those of a host with samples; kept with the run."""
    kept: Totals | None = run.totals.get(host)
    if kept is None:
        kept = run.totals[host] = folded(run.agent_samples[host], run.start_ns)
    return kept


def folded(samples: Sequence[Line], start_ns: int) -> Totals:
    """One pass over a host's samples, from nothing at `start_ns` on."""
    qps: dict[Any, Mapping[str, Any]] = {}
    ports: dict[Any, Mapping[str, Any]] = {}
    times = [float(min(start_ns, samples[0]["t_ns"]))]
    counted = {field: [0.0] for field in QP_FIELDS}
    sent: dict[int, list[float]] = {}
    known: set[str] = set()
    for line in samples:
        qps.update((qp["qp"], qp) for qp in line["qps"])
        known.update(*line["qps"])
        ports.update(((port["plane"], port["port"]), port) for port in line["ports"])
        for field, sums in counted.items():
            sums.append(float(sum(int(qp.get(field, 0)) for qp in qps.values())))
        by_plane = dict.fromkeys(sent, 0)
        for (plane, _), port in ports.items():
            by_plane[plane] = by_plane.get(plane, 0) + int(port["tx_bytes"])
        for plane, value in by_plane.items():
            sent.setdefault(plane, [0.0] * len(times)).append(float(value))
        times.append(float(line["t_ns"]))
    return Totals(
        np.array(times),
        {field: np.array(sums) for field, sums in counted.items() if field in known},
        {plane: np.array(values) for plane, values in sorted(sent.items())},
    )


def at(times: Floats, sums: Floats, when: Floats) -> Floats:
    """The total at each instant of `when`; before the first, the first total."""
    return np.interp(when, times, sums)


def acknowledged(run: Run, when: Floats, hosts: Sequence[str] | None = None) -> Floats:
    """Bytes acknowledged to all (or the named) hosts together, up to each instant of `when` (ns)."""
    total = np.zeros_like(when)
    for host in run.agent_samples:
        if hosts is None or host in hosts:
            counted = totals(run, host)
            total += at(counted.times, counted.qps["acked_bytes"], when) if "acked_bytes" in counted.qps else 0.0
    return total


def over(run: Run, span: Span, hosts: Sequence[str] | None = None) -> float:
    """Mean goodput in a span, bit/s."""
    if span.length_ns <= 0:
        return 0.0
    edges = np.array([span.start_ns, span.stop_ns], dtype=float)
    start, stop = acknowledged(run, edges, hosts)
    return float((stop - start) * 8 * SECOND_NS / span.length_ns)


def of_phase(run: Run, phase: Span | None) -> float | None:
    """Mean goodput of a phase, bit/s: over its training steps where there are some, else from edge to edge. None
    without the phase, and where no host wrote samples."""
    return over(run, steps.span_of_steps(run, phase)) if phase is not None and run.agent_samples else None


def sliding(run: Run, window_ns: int, every_ns: int, span: Span) -> tuple[Floats, Floats]:
    """Instants (ns) in a span, and the mean goodput of the window before each, bit/s: no edge of a bin falls into a
    step here and between two steps there, and no dip begins before its cause."""
    window_ns = min(window_ns, span.length_ns)
    times = np.arange(span.start_ns + window_ns, span.stop_ns + 1, every_ns, dtype=float)
    return times, (acknowledged(run, times) - acknowledged(run, times - window_ns)) * 8 * SECOND_NS / (window_ns or 1)


def series(run: Run, bin_ns: int, span: Span, hosts: Sequence[str] | None = None) -> tuple[Floats, Floats]:
    """Bin centres (seconds since the run's first phase) and goodput in each bin, bit/s. ValueError for too many."""
    count = max(1, span.count(bin_ns))
    edges = span.start_ns + bin_ns * np.arange(count + 1, dtype=float)
    totals = acknowledged(run, edges, hosts)
    rates = np.diff(totals) * 8 * SECOND_NS / bin_ns
    centres = (edges[:-1] + bin_ns / 2 - run.start_ns) / SECOND_NS
    return centres, rates
