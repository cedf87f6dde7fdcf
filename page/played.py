"""Changes made by hand to a run, as a scenario file that runs, with its checks to fill in."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from common.quoting import command, docstring
from judging import FaultSpan, Run, Span
from scenarios import TimedFault

HEAD = Path(__file__).with_name("played.template").read_text()


def played(run: Run, path: Path) -> str:
    """The text of a scenario file for `path`: the base scenario with the faults that were in this run.

    ValueError when nothing was done by hand, or the run has not begun.
    """
    if not any(fault.by_hand for fault in run.faults):
        raise ValueError("nothing was done by hand yet: click on a cable, a port or a switch, and break it")
    options = run.options
    return text(timed(run), options, path, sum(fault.by_hand for fault in run.faults))


FOR_A_LAB = "smoke"
"""Whose workload is taken where faults were played on a lab in which no scenario ran."""
SETTLE_S, LAST_S = 1.0, 5.0


def text(faults: Sequence[TimedFault], options: Mapping[str, Any], path: Path, by_hand: int) -> str:
    """The file, from its timeline and a run's options."""
    scenario = options.get("scenario") or FOR_A_LAB
    own_phases, own_import = "", ""
    if "scenario" not in options:
        last_s = max((fault.at_s + (fault.for_s or 0.0) for fault in faults), default=0.0) + LAST_S
        own_phases, own_import = f"\n    phases=phases(faults_s={last_s:.0f}),", ", phases"
    title = f"Played on {scenario}" if "scenario" in options else "Played on a lab"
    plan = options.get("plan_source") or options.get("plan")
    made_from = f"(plan {plan}, {options.get('transport', 'mrc')}, seed {options.get('seed', 'none')})"
    return HEAD.format(
        told=docstring(
            f"{title}: the faults injected by hand, at their times.\n\nMade from a run of {scenario} {made_from}.\n"
        ),
        command=command("run", path),
        title=title,
        source=options.get("source") or scenario,
        shortened=".shortened()" if options.get("short") else "",
        phases=own_phases,
        phases_import=own_import,
        plan=plan,
        name=path.stem.replace("_", "-"),
        description=f"{by_hand} fault{'s' * (by_hand != 1)} by hand beside those of {scenario}.",
        faults="\n".join(f"        {line(fault)}," for fault in faults),
    )


def timed(run: Run) -> list[TimedFault]:
    """Every fault of a run as a timeline has it: seconds of lab time into the phase in which it began.

    In a lab without phases they follow the first one, which begins at SETTLE_S.
    """
    if not run.phases:
        first_ns = min((fault.start_ns for fault in run.faults), default=0) - run.ns(SETTLE_S)
        everything = Span("faults", first_ns, run.end_ns + 1)
        return [timed_fault(run, fault, everything) for fault in run.faults]
    return [entry for fault in run.faults if (entry := placed(run, fault)) is not None]


def placed(run: Run, fault: FaultSpan) -> TimedFault | None:
    """One fault; None when it began before the first phase or after the last."""
    for span in run.phases.values():
        if span.contains(fault.start_ns):
            return timed_fault(run, fault, span)
    return None


def timed_fault(run: Run, fault: FaultSpan, span: Span) -> TimedFault:
    """A fault in the phase that `span` is."""
    at_s = (fault.start_ns - span.start_ns) / run.ns(1.0)
    for_s = None if fault.stop_ns is None else (fault.stop_ns - fault.start_ns) / run.ns(1.0)
    value = fault.arguments.get("value")
    return TimedFault(round(at_s, 3), fault.verb, fault.target, duration(for_s), value, 0, span.name)


def duration(for_s: float | None) -> float | None:
    """Rounded, and never nothing; a fault that is over at once has none."""
    return None if for_s is None or for_s <= 0 else max(round(for_s, 3), 0.001)


def line(fault: TimedFault) -> str:
    """A fault as text of a scenario."""
    parts = [f"{fault.at_s:g}", repr(fault.verb), repr(fault.target)]
    if fault.for_s is not None:
        parts.append(f"for_s={fault.for_s:g}")
    if fault.value is not None:
        parts.append(f"value={fault.value:g}")
    return f"TimedFault({', '.join(parts)}, phase={fault.phase!r})"
