"""Completion times of messages in a report: a table, two distributions, rows for a file."""

from collections.abc import Iterable, Sequence
from typing import Any

from judging.arrays import np
from judging.measures import completions
from judging.reports import page, plots
from judging.run import Run

NOTE = (
    "From the moment a message may be sent until its receiver holds every byte. A slowdown is that time over the time"
    " of a message without headers that meets no other: the delay of the path, and its bytes at the rate of all ports."
)
HEAD = ("workload", "messages", "bytes", "median", "p99", "longest", "last after", "slowdown median", "p99")
CSV_HEAD = (
    *("workload", "line", "source", "target", "bytes"),
    *("start_ns", "acknowledged_ns", "received_ns", "completion_ns", "slowdown"),
)


def rows(run: Run) -> list[list[str]]:
    """Per workload: count, bytes, completion times, and slowdowns."""
    rows = []
    for entry in completions.times(run):
        took = [duration_text(entry[time]) for time in ("median_ns", "p99_ns", "longest_ns", "last_ns")]
        slowdowns = f"{entry['slowdown_median']:.2f}", f"{entry['slowdown_p99']:.2f}"
        rows.append([entry["workload"], f"{entry['count']:,}", f"{entry['bytes']:,}", *took, *slowdowns])
    return rows


def csv_rows(run: Run) -> Iterable[Sequence[Any]]:
    """A row per message; times since the first phase began."""
    for message in completions.completions(run):
        received_ns = "" if message.received_ns is None else message.received_ns - run.start_ns
        began_ns, acknowledged_ns = message.start_ns - run.start_ns, message.acknowledged_ns - run.start_ns
        where = (message.workload, message.line, message.source, message.target, message.bytes)
        yield (*where, began_ns, acknowledged_ns, received_ns, message.took_ns, f"{message.slowdown:.4f}")


def section(run: Run) -> list[str]:
    """The report's section about completion times; empty if no schedule ran."""
    table = rows(run)
    return [page.paragraph(NOTE, soft=True), distributions(run), page.table(HEAD, table)] if table else []


def distributions(run: Run) -> str:
    """The share of messages that had completed after a time, and the slowdown of each by its size."""
    by_workload = completions.by_workload(run)
    drawing, (left, right) = plots.figure(3.4, 2)
    for index, (name, own) in enumerate(by_workload.items()):
        colour = plots.RUNS[index % len(plots.RUNS)]
        took_us = np.sort(np.array([message.took_ns for message in own])) / 1e3
        left.step(
            took_us,
            np.arange(1, len(own) + 1) / len(own),
            where="post",
            color=colour,
            linewidth=1.4,
            label=plots.in_legend(name),
        )
        sizes, slowdowns = [max(1, message.bytes) for message in own], [message.slowdown for message in own]
        right.plot(sizes, slowdowns, ".", markersize=4, color=colour, label=plots.in_legend(name))
    left.set_xlabel("completion time, µs")
    left.set_ylabel("share of messages")
    left.set_ylim(0, 1.02)
    left.set_xscale("log")
    right.set_xlabel("message, bytes")
    right.set_ylabel("slowdown")
    right.set_xscale("log")
    right.set_ylim(0, right.get_ylim()[1] * 1.1)
    if len(by_workload) > 1:
        left.legend(loc="lower right")
    return plots.svg(drawing, "Completion times and slowdowns of messages")


def duration_text(ns: float) -> str:
    """Microseconds; milliseconds from 10 on."""
    return f"{ns / 1e3:,.1f} µs" if ns < 1e7 else f"{ns / 1e6:,.1f} ms"
