"""The numbers of a run, with their units in their names: for programs, and as tables of comma-separated values."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from common import files
from common.csv_text import csv_text
from judging.measures import completions, cost, counters, goodput, paths, recovery, steps
from judging.reports import completion
from judging.run import Run

CSV_BIN_NS = 250_000_000


def figures(run: Run) -> dict[str, Any]:
    """Goodput and steps by phase, cost and recovery by fault, counters of the whole run. Without a phase or step its
    lists are empty. None is a number that was not read."""
    normal = goodput.of_phase(run, run.phases.get("reference"))
    totals = dict.fromkeys(goodput.QP_FIELDS) | counters.qp_totals(run)
    all_steps, costs = steps.steps(run), cost.by_fault(run)
    count, for_ns = paths.abandoned(run)
    return {
        "phases": [
            {
                "phase": name,
                "start_s": run.seconds(span.start_ns),
                "length_s": span.length_ns / 1e9,
                "goodput_bps": None if (bps := goodput.of_phase(run, span)) is None else round(bps),
                "goodput_share_of_reference": bps / normal if normal and bps is not None else None,
            }
            for name, span in run.phases.items()
        ],
        "steps": [
            {"phase": name, **asdict(times)}
            for name, span in run.phases.items()
            if (times := steps.times(steps.of_phase(all_steps, span)))
        ],
        "recovery": [
            {
                "at_s": run.seconds(item.start_ns),
                "fault": item.title,
                "cost_ns": costs.get(item.start_ns),
                "last_path_abandoned_after_ns": item.abandoned_ns,
                "last_packet_repaired_after_ns": item.repaired_ns,
            }
            for item in recovery.recoveries(run)
        ],
        "faults": [
            {
                "verb": fault.verb,
                "target": fault.target,
                **fault.arguments,
                "start_s": run.seconds(fault.start_ns),
                "stop_s": None if fault.stop_ns is None else run.seconds(fault.stop_ns),
                "by_hand": fault.by_hand,
            }
            for fault in run.faults
        ],
        "counters_packets": {
            **{name: count for name, count in totals.items() if name != "acked_bytes"},
            "other_packets": counters.other_packets(run),
            **dict(sorted(counters.switch_drops(run).items())),
        },
        "flow_control": dict(sorted(counters.switch_pauses(run).items())),
        "acked_bytes": totals["acked_bytes"],
        **({"completions": own} if (own := completions.times(run)) else {}),
        "paths_abandoned": count,
        "paths_abandoned_ns": for_ns,
    }


def write_csv(run: Run, folder: Path) -> list[Path]:
    """`goodput.csv`, `steps.csv`, `counters.csv` and, of a workload file, `messages.csv`; the folder is made.

    Units are in the heads of columns.
    """
    files.make_folder(folder)
    series = figures(run)
    rows: list[Sequence[Any]] = []
    if run.phases and run.agent_samples:
        seconds, rates = goodput.series(run, CSV_BIN_NS, run.judged)
        rows = [(f"{second:.3f}", round(bps)) for second, bps in zip(seconds, rates, strict=True)]
    step_rows = [
        (step.number, f"{run.seconds(step.end_ns):.6f}", step.total_ns, step.comm_ns, step.bytes, step.ranks)
        for step in steps.steps(run)
    ]
    counted = [*series["counters_packets"].items(), ("acked_bytes", series["acked_bytes"])]
    messages = list(completion.csv_rows(run))
    own = [table(folder / "messages.csv", completion.CSV_HEAD, messages)] if messages else []
    return [
        *own,
        table(folder / "goodput.csv", ("time_s", "goodput_bps"), rows),
        table(folder / "steps.csv", ("step", "end_s", "total_ns", "comm_ns", "bytes", "ranks"), step_rows),
        table(folder / "counters.csv", ("counter", "total"), counted),
    ]


def table(path: Path, head: Sequence[str], rows: Iterable[Sequence[Any]]) -> Path:
    """One file of comma-separated values, with its head."""
    files.write(path, csv_text(head, rows))
    return path
