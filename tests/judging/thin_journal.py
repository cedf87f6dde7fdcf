"""Makes a fixture of a real run: `python tests/judging/thin_journal.py RUN NAME` writes `journals/NAME.jsonl.gz`.

Nothing is invented or moved: lines that judging does not read are left out, and of samples the fields that it does not;
the queue pairs of a host become one with the sums of all, and most samples go.
"""

from __future__ import annotations

import gzip
import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from common.journal import Line
from judging import sample_size
from judging.measures import stalls
from judging.run import Run

FOLDER = Path(__file__).parent / "journals"
KEPT = ("options", "phase", "fault", "step", "stall", "ev", "repair", "workload", "qp", "error", "tables", "process")
QP_FIELDS = ("acked_bytes", "data_packets", "retransmits", "rto", "trims")
PORT_FIELDS = ("port", "plane", "tx_bytes", "tx_packets", "drop_socket")
EVERY_NS = {"sample": 290_000_000, "cpu": 490_000_000}  # agents write a line of both each 100 ms


def thin(run: Run) -> list[Line]:
    """The lines of a run that its verdict rests on."""
    kept: list[Line] = []
    last_ns: dict[tuple[str, str], int] = {}
    rtt_ns = sample_size.base_rtt_ns(run)
    ends = {str(line["node"]): line for line in run.kind("sample")}
    for line in run.lines:
        kind, node, t_ns = line["kind"], str(line["node"]), int(line["t_ns"])
        if kind == "stall" and int(line["late_ns"]) < stalls.STALL * rtt_ns:
            continue
        if kind in KEPT or kind == "transfer":
            kept.append(line)
        elif kind == "sample" and "device" in line:
            if ends[node] is line:
                kept.append({key: line[key] for key in ("t_ns", "node", "kind", "device", "ports")})
        elif kind in ("sample", "cpu") and (
            t_ns - last_ns.get((node, kind), 0) >= max(EVERY_NS[kind], 4 * rtt_ns) or ends.get(node) is line
        ):
            last_ns[node, kind] = t_ns
            kept.append(line if kind == "cpu" else thin_sample(line))
    return kept


def thin_sample(line: Line) -> Line:
    """One queue pair, and of ports what is judged."""
    totals: Counter[str] = Counter()
    for qp in line["qps"]:
        totals.update({field: int(qp.get(field, 0)) for field in QP_FIELDS})
    ports: list[dict[str, Any]] = [{field: port.get(field, 0) for field in PORT_FIELDS} for port in line["ports"]]
    qps = [{"qp": 1, "peer": "all", **{field: totals[field] for field in QP_FIELDS}}]
    return {"t_ns": line["t_ns"], "node": line["node"], "kind": "sample", "ports": ports, "qps": qps}


def main() -> None:
    """Read a run directory, write a fixture."""
    lines = thin(Run.open(Path(sys.argv[1])))
    FOLDER.mkdir(exist_ok=True)
    target = FOLDER / f"{sys.argv[2]}.jsonl.gz"
    text = "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines)
    target.write_bytes(gzip.compress(text.encode(), 9, mtime=0))
    sys.stdout.write(f"{target}: {target.stat().st_size} bytes, {len(lines)} lines\n")


if __name__ == "__main__":
    main()
