"""Training steps: how long each took, which of them belong to a phase, and the usual three numbers."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from judging.arrays import np
from judging.run import Run, Span

__all__ = ["TrainingStep", "of_phase", "stalled_ns", "steps", "times", "within"]


@dataclass(frozen=True, slots=True)
class TrainingStep:
    """One synchronous step: it lasts as long as its slowest rank.

    `jobover_ns` is when the last rank of its job said that all was done; None if a rank did not.
    """

    job: str
    number: int
    end_ns: int
    comm_ns: int
    total_ns: int
    bytes: int
    ranks: int
    jobover_ns: int | None = None

    @property
    def start_ns(self) -> int:
        return self.end_ns - self.total_ns


@dataclass(frozen=True, slots=True)
class StepTimes:
    """How long some steps took. With fewer than 100 steps, the 99th percentile is the slowest step."""

    count: int
    median_ns: int
    p99_ns: int
    slowest_ns: int


def steps(run: Run) -> list[TrainingStep]:
    """All steps of all workloads that every rank finished, in order of their end."""
    by_number: dict[tuple[str, int], list[dict[str, object]]] = defaultdict(list)
    for line in run.kind("step"):
        by_number[str(line.get("workload")), int(line["step"])].append(line)
    ranks: dict[str, int] = defaultdict(int)
    for (workload, _), lines in by_number.items():
        ranks[workload] = max(ranks[workload], len(lines))
    over = over_ns(run)
    result = []
    for (workload, number), lines in by_number.items():
        if len(lines) < ranks[workload]:
            continue
        result.append(
            TrainingStep(
                job=workload,
                number=number,
                end_ns=max(int(str(line["t_ns"])) for line in lines),
                comm_ns=max(int(str(line["comm_ns"])) for line in lines),
                total_ns=max(int(str(line["total_ns"])) for line in lines),
                bytes=sum(int(str(line["bytes"])) for line in lines),
                ranks=len(lines),
                jobover_ns=over.get(workload),
            )
        )
    return sorted(result, key=lambda step: step.end_ns)


def over_ns(run: Run) -> dict[str, int]:
    """When each job was over, by its name. A job whose ranks did not all finish is not among them."""
    started: dict[str, set[str]] = defaultdict(set)
    finished: dict[str, dict[str, int]] = defaultdict(dict)
    for line in run.kind("workload"):
        name, node = str(line.get("name")), str(line.get("node"))
        if line.get("state") == "start":
            started[name].add(node)
        elif line.get("outcome") == "finished":
            finished[name][node] = int(line["t_ns"])
    return {name: max(ends.values()) for name, ends in finished.items() if started[name] <= ends.keys()}


def within(all_steps: Sequence[TrainingStep], span: Span) -> list[TrainingStep]:
    """Steps that lie wholly in a span."""
    return [step for step in all_steps if step.start_ns >= span.start_ns and step.end_ns <= span.stop_ns]


def of_phase(all_steps: Sequence[TrainingStep], span: Span) -> list[TrainingStep]:
    """The steps that count for a phase: in the reference those wholly inside, in others every step that a fault in the
    phase may have touched, however long the step."""
    if span.name == "reference":
        return within(all_steps, span)
    return [step for step in all_steps if step.end_ns > span.start_ns and step.start_ns < span.stop_ns]


def stalled_ns(all_steps: Sequence[TrainingStep], span: Span) -> int:
    """The time from the last step's end to the span's: an unfinished step lasts at least that long. 0 without steps.

    A job that has come to a halt writes no `step` line, so its step times alone would look harmless. A job that is
    over before the span is owes no step.
    """
    owing = [step for step in all_steps if step.jobover_ns is None or step.jobover_ns > span.stop_ns]
    ends = [step.end_ns for step in owing if step.start_ns < span.stop_ns]
    return max(0, span.stop_ns - max(ends)) if ends else 0


def span_of_steps(run: Run, phase: Span) -> Span:
    """The time that the steps of a phase take; the phase itself where there are none.

    Between the edges of a phase, goodput would be a few per cent off when an edge cuts a step. The silence after the
    last step of a job that came to a halt counts.
    """
    chosen = of_phase(steps(run), phase)
    if len(chosen) < 2:
        return phase
    stop_ns = max(step.end_ns for step in chosen)
    if phase.name != "reference" and stalled_ns(chosen, phase):
        stop_ns = phase.stop_ns
    return Span(phase.name, chosen[0].start_ns, stop_ns)


def times(selected: Sequence[TrainingStep]) -> StepTimes | None:
    """Count, median, 99th percentile and slowest; None without steps."""
    if not selected:
        return None
    totals = np.array([step.total_ns for step in selected], dtype=float)
    # "higher": a percentile that some step really took, never a value between two of them.
    return StepTimes(
        count=len(selected),
        median_ns=int(np.median(totals)),
        p99_ns=int(np.percentile(totals, 99, method="higher")),
        slowest_ns=int(totals.max()),
    )
