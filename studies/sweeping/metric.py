"""The numbers of a run that a sweep keeps, compares and draws."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from judging import Run, sample_size
from judging.measures import cost, counters, goodput, steps


@dataclass(frozen=True, slots=True)
class Metric:
    """`of` is None for a run that has no such number. `better` says which end of the distribution is the good one."""

    name: str
    title: str
    unit: str
    better: str  # "high" or "low"
    of: Callable[[Run], float | None]


def goodput_kept(run: Run) -> float | None:
    """Goodput under faults as a share of the reference phase's."""
    before, during = (goodput.of_phase(run, run.phases.get(name)) for name in ("reference", "faults"))
    return during / before if before and during is not None and run.phases["faults"].length_ns else None


def goodput_bps(run: Run) -> float | None:
    """Goodput in the reference phase, bit/s of all hosts."""
    return goodput.of_phase(run, run.phases.get("reference"))


def p99_step(run: Run) -> float | None:
    """The 99th percentile of step times under faults, as a multiple of the reference phase's."""
    reference, faults = run.phases.get("reference"), run.phases.get("faults")
    if reference is None or faults is None:
        return None
    all_steps = steps.steps(run)
    before, during = (steps.times(steps.of_phase(all_steps, span)) for span in (reference, faults))
    if before is None or during is None:
        return None
    return max(during.p99_ns, steps.stalled_ns(all_steps, faults)) / before.p99_ns


def dearest_fault(run: Run) -> float | None:
    """The cost of the fault that cost most, in base round trips (`judging.measures.cost`)."""
    costs = cost.by_fault(run)
    return max(0.0, *costs.values()) / sample_size.base_rtt_ns(run) if costs else None


def resent_share(run: Run) -> float | None:
    """Packets sent again, as a share of all data packets."""
    totals = counters.qp_totals(run)
    return totals["retransmits"] / totals["data_packets"] if totals.get("data_packets") else None


METRICS: Mapping[str, Metric] = {
    metric.name: metric
    for metric in (
        Metric("goodput_kept", "goodput kept under faults", "share of the reference", "high", goodput_kept),
        Metric("p99_step", "p99 step under faults", "times the reference's", "low", p99_step),
        Metric("fault_cost", "dearest fault", "round trips", "low", dearest_fault),
        Metric("goodput", "goodput without faults", "bit/s", "high", goodput_bps),
        Metric("resent", "packets sent again", "share of data packets", "low", resent_share),
    )
}


def measured(run: Run) -> dict[str, float]:
    """Every metric that this run has, rounded to nine digits so that rows are the same on every machine."""
    values: dict[str, float] = {}
    for name, metric in METRICS.items():
        try:
            value = metric.of(run)
        except (ArithmeticError, LookupError, TypeError, ValueError):
            continue  # as in a check: a run that was broken off early lacks what the number is made of
        if value is not None:
            values[name] = float(f"{value:.9g}")
    return values
