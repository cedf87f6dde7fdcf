"""The answer in words and for programs: what was exact, the step times, and their error bars."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from common.terminal.counted import counted
from judging.units import brief
from running.fault_words import spell
from scale.answer import Answer
from scale.bar import METRICS, Bar
from scale.part import Cut

TITLES = {"median": "median", "p99": "99th percentile", "slowest": "slowest"}


def text(cut: Cut, seed: int, transport: str, answer: Answer, bar: Bar | None, exact: bool) -> Iterator[str]:
    """The lines for a terminal."""
    job = cut.job
    group = f" in groups of {job.group}" if job.group else ""
    yield f"{job.kind}{group} · plan {cut.plan.name} · {answer.nics:,} NICs · {transport} · seed {seed}"
    yield from (f"fault: {spell(fault)}" for fault in cut.faults)
    yield ""
    yield f"step times of {counted(job.steps, 'step')} of every NIC"
    for name in METRICS:
        share = "" if bar is None else f"  ± {getattr(bar, name):.1%}"
        yield f"  {TITLES[name]:<16}{brief(getattr(answer, f'{name}_ns')):>10}{share}"
    if answer.unfinished:
        yield f"  {answer.unfinished:.2%} of the steps did not end"
    yield f"  {answer.packets:,.0f} data packets, {answer.resent:,.0f} sent again"
    yield ""
    if exact:
        yield "All of the job was one run."
        return
    for part in cut.parts():
        faults = ", ".join(fault.target for fault in part.faults) or "no fault"
        yield f"  {part.members:>8,} × {part.title}: {faults}, {counted(part.plan.host_count, 'NIC')} simulated"
    yield from vouching(bar)


def vouching(bar: Bar | None) -> Iterator[str]:
    """The meaning of the bars."""
    if bar is None:
        yield "No error bar: nothing was measured that covers this job."
        return
    yield f"Error bars: of {bar.runs} answers for {bar.nics:,} NICs, 95 % were as near to exact runs."


def document(cut: Cut, seed: int, transport: str, answer: Answer, bar: Bar | None) -> dict[str, Any]:
    """All of it as JSON."""
    parts = [
        {
            "title": part.title,
            "members": part.members,
            "nics": part.plan.host_count,
            "faults": [spell(fault) for fault in part.faults],
        }
        for part in cut.parts()
    ]
    return {
        "job": asdict(cut.job),
        "plan": cut.plan.name,
        "transport": transport,
        "seed": seed,
        "faults": [spell(fault) for fault in cut.faults],
        "thin": cut.thin,
        "answer": asdict(answer),
        "bar": None if bar is None else asdict(bar),
        "parts": parts,
    }
