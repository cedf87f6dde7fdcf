"""Flows: the bytes that each receiver verified from each sender, by the streams' `transfer` lines every 100 ms."""

from collections import defaultdict
from dataclasses import dataclass

from common.journal import Line
from judging import sample_size
from judging.run import SECOND_NS, Run, Span


@dataclass(frozen=True, slots=True)
class Flows:
    """The flows of a workload in a span: rates in bit/s by "receiver → sender", and the waits of the worst flow."""

    workload: str
    span: str
    rates: dict[str, float]
    silence_ns: int  # the longest time within the span in which a flow had nothing verified
    first_ns: int | None  # until every flow had its first bytes; None: the workload began before the span

    @property
    def mean_bps(self) -> float:
        """The mean rate of all flows, bit/s."""
        return sum(self.rates.values()) / len(self.rates) if self.rates else 0.0


def rates(run: Run, span: Span, workload: str) -> dict[str, float]:
    """Rate of each flow of a workload in a span, bit/s; an interval partly inside counts in part."""
    by_flow: dict[str, float] = {}
    for line in run.kind("transfer"):
        if line.get("workload") != workload or line["end_ns"] <= line["start_ns"]:
            continue
        overlap = max(0, min(line["end_ns"], span.stop_ns) - max(line["start_ns"], span.start_ns))
        if overlap > 0:
            share = overlap / (line["end_ns"] - line["start_ns"])
            flow = f"{line['node']} → {line['peer']}"
            by_flow[flow] = by_flow.get(flow, 0.0) + line["bytes"] * share * 8 * SECOND_NS / span.length_ns
    return dict(sorted(by_flow.items()))


def error(run: Run, span: Span, workload: str) -> float:
    """To within which share the rates of a workload's flows are known (`judging.sample_size`).

    Receivers count whole messages: a message more or less at either end is the largest line of the slowest flow.
    """
    grain = 0
    total: dict[tuple[str, str], int] = {}
    for line in run.within(span, "transfer"):
        if line.get("workload") == workload:
            grain = max(grain, int(line["bytes"]))
            total[line["node"], line["peer"]] = total.get((line["node"], line["peer"]), 0) + int(line["bytes"])
    slowest = min(total.values(), default=0)
    return (grain / slowest if slowest else 1.0) + sample_size.rate_error(run, span.length_ns)


def workloads(run: Run) -> list[str]:
    """The names of the workloads that are streams, in order of their beginning."""
    return list(dict.fromkeys(str(line.get("workload")) for line in run.kind("transfer")))


def within(run: Run, span: Span, workload: str) -> Flows | None:
    """The flows of a workload in a span; None when the workload journalled nothing in it."""
    lines: dict[tuple[str, str], list[Line]] = defaultdict(list)
    began_ns = min(
        (int(line["start_ns"]) for line in run.kind("transfer") if line.get("workload") == workload), default=0
    )
    for line in run.kind("transfer"):
        if line.get("workload") == workload and line["start_ns"] < span.stop_ns and line["end_ns"] > span.start_ns:
            lines[line["node"], str(line["peer"])].append(line)
    if not lines or span.length_ns <= 0:
        return None
    silence_ns, firsts = 0, []
    for own in lines.values():
        heard_ns = max(span.start_ns, began_ns)
        carrying = sorted((line for line in own if line["bytes"]), key=lambda line: int(line["end_ns"]))
        for line in carrying:
            silence_ns = max(silence_ns, int(line["start_ns"]) - heard_ns)
            heard_ns = int(line["end_ns"])
        silence_ns = max(silence_ns, span.stop_ns - heard_ns)
        firsts.append(int(carrying[0]["end_ns"]) if carrying else span.stop_ns)
    late = began_ns < span.start_ns - run.ns(0.1)
    first_ns = None if late else max(firsts) - max(span.start_ns, began_ns)
    return Flows(workload, span.name, rates(run, span, workload), silence_ns, first_ns)
