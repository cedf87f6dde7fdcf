"""The numbers of a run that the contest compares, and the making of one run in any process."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from judging import Run
from judging.judge import judge, verdict_of
from judging.measures import cost, counters, goodput, steps
from judging.measures.recovery import recoveries
from judging.sample_size import base_rtt_ns
from running.document import spec_of
from running.runner import make_run
from studies.sweeping import Row, Task
from studies.sweeping.perform import kept


@dataclass(frozen=True, slots=True)
class Measure:
    """`better` is "low" or "high". Differences below `effect` order nothing. `of` is None for a run without it."""

    title: str
    unit: str
    better: str
    effect: float
    of: Callable[[Run], float | None]
    scale: float = 1.0


def missed(run: Run) -> float | None:
    """From the sending of the first lost packet until its sender knew: the slowest host of the slowest fault."""
    times = [one.missed_ns for one in recoveries(run) if one.missed_ns is not None]
    return max(times) / base_rtt_ns(run) if times else None


def repaired(run: Run) -> float | None:
    """From a fault's beginning until all packets that it cost had arrived, for the slowest fault."""
    times = [one.repaired_ns for one in recoveries(run) if one.repaired_ns is not None]
    return max(times) / base_rtt_ns(run) if times else None


def dearest_fault(run: Run) -> float | None:
    """The time that the job lost to the dearest fault."""
    costs = cost.by_fault(run)
    return max(0.0, *costs.values()) / base_rtt_ns(run) if costs else None


def goodput_kept(run: Run) -> float | None:
    """Goodput under faults as a share of the reference phase's."""
    before, during = (goodput.of_phase(run, run.phases.get(name)) for name in ("reference", "faults"))
    return during / before if before and during is not None else None


def goodput_faults(run: Run) -> float | None:
    """Goodput under faults, of all hosts together."""
    return goodput.of_phase(run, run.phases.get("faults"))


def longest_step(run: Run) -> float | None:
    """The longest training step under faults, as a multiple of the reference's median."""
    every = steps.steps(run)
    spans = [run.phases.get(name) for name in ("reference", "faults")]
    before, during = (steps.times(steps.of_phase(every, span)) if span else None for span in spans)
    if before is None or during is None or run.phases.get("faults") is None:
        return None
    return max(during.slowest_ns, steps.stalled_ns(every, run.phases["faults"])) / before.median_ns


def resent(run: Run) -> float | None:
    """Packets sent again, as a share of all data packets."""
    totals = counters.qp_totals(run)
    return totals["retransmits"] / totals["data_packets"] if totals.get("data_packets") else None


def hops_per_packet(run: Run) -> float | None:
    """Frames that switches received, of every kind, per data packet."""
    packets = counters.qp_totals(run).get("data_packets")
    ports = [lines[-1]["ports"] for lines in run.switch_samples.values() if lines]
    return sum(row["rx_packets"] for rows in ports for row in rows) / packets if packets else None


MEASURES: Mapping[str, Measure] = {
    "fault_cost": Measure("cost of the dearest fault", "round trips", "low", 0.25, dearest_fault),
    "missed": Measure("a lost packet is missed after", "round trips", "low", 0.25, missed),
    "repaired": Measure("all losses are repaired after", "round trips", "low", 0.5, repaired),
    "goodput_kept": Measure("goodput kept under faults", "%", "high", 0.01, goodput_kept, 100),
    "goodput_faults": Measure("goodput under faults", "Mb/s", "high", 2e6, goodput_faults, 1e-6),
    "longest_step": Measure("longest step under faults", "times the usual", "low", 0.02, longest_step),
    "resent": Measure("packets sent again", "%", "low", 0.01, resent, 100),
    "hops": Measure("frames at switches per data packet", "", "low", 0.1, hops_per_packet),
}
PREDICTED: Mapping[str, str] = {"fault_cost": "cost", "missed": "missed", "goodput_kept": "kept"}
"""The measures with predictions, by their names in `predictions.toml`."""


def measured(run: Run) -> dict[str, float]:
    """Every measure that this run has."""
    values: dict[str, float] = {}
    for name, measure in MEASURES.items():
        try:
            value = measure.of(run)
        except (ArithmeticError, LookupError, TypeError, ValueError):
            continue  # a run that was broken off early lacks what the number is made of
        if value is not None:
            values[name] = float(f"{value:.9g}")
    return values


def perform(scratch: str, task: Task) -> Row:
    """One run and its row; a task that is to be kept has a report as well."""

    def judged(root: Path) -> Row:
        spec = spec_of(task.run)
        directory, checks = make_run(spec, root), spec.checks()
        run = Run.open(directory)
        verdict = judge(directory, checks, spec.scenario.story) if task.keep else verdict_of(run, checks)
        wrong = {finding.check: finding for finding in verdict.findings if finding.holds is not True}
        findings = {finding.check: finding.holds for finding in verdict.findings}
        reasons = {name: finding.reason for name, finding in wrong.items()}
        return Row(task.key, task.seed, verdict.word, findings, reasons, measured(run))

    return kept(task, scratch, judged)
