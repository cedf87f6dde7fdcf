"""The totals of a host's queue pairs and ports at each of its samples, read once for all measures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from common.journal import Line
from judging.arrays import Floats, np
from judging.run import Run

QP_FIELDS = ("data_packets", "retransmits", "rto", "trims", "ecn", "nacks", "skips", "probes", "acked_bytes")


@dataclass(frozen=True, slots=True)
class Totals:
    """Arrays with an entry for each sample. A queue pair that has gone counts with its last total."""

    times: Floats  # ns
    qps: Mapping[str, Floats]  # by field of QP_FIELDS: the sum over all queue pairs
    planes: Mapping[int, Floats]  # by plane: bytes that ports sent


def totals(run: Run, host: str) -> Totals:
    """Those of a host with samples; kept with the run."""
    kept: Totals | None = run.totals.get(host)
    if kept is None:
        kept = run.totals[host] = folded(run.agent_samples[host])
    return kept


def folded(samples: Sequence[Line]) -> Totals:
    """One pass over a host's samples."""
    qps: dict[Any, Mapping[str, Any]] = {}
    ports: dict[Any, Mapping[str, Any]] = {}
    times: list[float] = []
    counted: dict[str, list[float]] = {field: [] for field in QP_FIELDS}
    sent: dict[int, list[float]] = {}
    for line in samples:
        qps.update((qp["qp"], qp) for qp in line["qps"])
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
        {field: np.array(sums) for field, sums in counted.items()},
        {plane: np.array(values) for plane, values in sorted(sent.items())},
    )
