"""Jobs: programs that train, seen by their `step` lines, which carry the loss and a digest of the weights."""

from collections import defaultdict

from judging.checks import check
from judging.run import Run
from judging.verdict import Finding

__all__ = ["finished", "learned", "over_before", "same_weights", "under_way"]


def losses(run: Run) -> dict[str, list[tuple[int, float]]]:
    """Per job its (step, loss) in order; every rank knows the same loss, so the first line of a step counts."""
    by_job: dict[str, dict[int, float]] = defaultdict(dict)
    for line in run.kind("step"):
        if "loss" in line:
            by_job[str(line["workload"])].setdefault(int(line["step"]), float(line["loss"]))
    return {name: sorted(points.items()) for name, points in by_job.items()}


def weights(run: Run, job: str) -> dict[int, set[str]]:
    """Per step of a job the digests that its ranks wrote: one each, where all is well."""
    by_step: dict[int, set[str]] = defaultdict(set)
    for line in run.kind("step"):
        if line.get("workload") == job and "weights" in line:
            by_step[int(line["step"])].add(str(line["weights"]))
    return dict(by_step)


@check
def same_weights(run: Run, first: str, second: str, steps: int) -> Finding:
    """Two jobs have the same weights, bit for bit, on every rank after each of `steps` steps."""
    ones, others = weights(run, first), weights(run, second)
    if len(ones) < steps:
        return Finding("weights", None, f"job {first!r}, the standard, came to step {len(ones)} of {steps}")
    torn = [step for job in (ones, others) for step, digests in job.items() if len(digests) > 1]
    differ = [step for step in sorted(set(ones) & set(others)) if ones[step] != others[step]]
    figures = {"steps": len(set(ones) & set(others)), "different": len(differ)}
    if torn or differ:
        where = min(torn + differ)
        return Finding("weights", False, f"weights differ after step {where}, and {len(differ)} steps do", figures)
    if len(others) < steps:
        reason = f"job {second!r} ended after {len(others)} of {steps} steps; so far no bit differs"
        return Finding("weights", False, reason, figures)
    last = next(iter(ones[max(ones)]))
    reason = f"after each of {steps} steps the weights are those of {first!r}, to the bit (last {last})"
    return Finding("weights", True, reason, figures)


@check
def finished(run: Run, job: str) -> Finding:
    """Every rank of a job came to its end."""
    lines = [line for line in run.kind("workload") if line.get("name") == job]
    started = {line["node"] for line in lines if line.get("state") == "start"}
    stops = [line for line in lines if line.get("state") == "stop"]
    failed = [line for line in stops if line.get("outcome") != "finished"]
    name = f"job {job}"
    if failed:
        reason = f"{len(failed)} of {len(started)} ranks died, first {failed[0]['node']}: {failed[0].get('cause')}"
        return Finding(name, False, reason)
    if not started:
        return Finding(name, None, "no rank began")
    if missing := sorted(started - {line["node"] for line in stops}):
        return Finding(name, False, f"{len(missing)} of {len(started)} ranks never ended, first {missing[0]}")
    return Finding(name, True, f"all {len(started)} ranks trained to the end")


@check
def over_before(run: Run, job: str, phase: str) -> Finding:
    """A job that is the standard for another has to be over before the faults begin."""
    span = run.phases.get(phase)
    ends = [int(line["t_ns"]) for line in run.kind("step") if line.get("workload") == job]
    if span is None or not ends:
        return Finding("standard", None, f"job {job!r} or phase {phase!r} is missing")
    if max(ends) > span.start_ns:
        return Finding("standard", None, f"job {job!r} was still at it when phase {phase!r} began")
    return Finding("standard", True, f"job {job!r} was over before any fault")


@check
def under_way(run: Run, job: str) -> Finding:
    """A job had begun when the first fault came, and was not done when the last one came: else they show nothing."""
    faults = [int(line["t_ns"]) for line in run.kind("fault") if line.get("state") == "begin"]
    lines = [line for line in run.kind("workload") if line.get("name") == job]
    started = [int(line["t_ns"]) for line in lines if line.get("state") == "start"]
    done = [int(line["t_ns"]) for line in lines if line.get("outcome") == "finished"]
    name = f"job {job} at it"
    if not faults or not started:
        return Finding(name, None, "there was no fault" if started else "no rank began")
    if min(started) > min(faults):
        return Finding(name, None, f"job {job!r} had not begun at the first fault")
    if done and min(done) < max(faults):
        late = sum(fault > min(done) for fault in faults)
        return Finding(name, None, f"job {job!r} was over before {late} of {len(faults)} faults began")
    steps = sum(int(line["t_ns"]) < min(faults) for line in run.kind("step") if line.get("workload") == job)
    return Finding(name, True, f"the first fault came after {steps // len(started)} steps of {job!r}")


@check
def learned(run: Run, job: str, share: float = 0.5) -> Finding:
    """The loss fell to less than a share of what it was at first, and is finite at the end."""
    points = losses(run).get(job, [])
    lines = [line for line in run.kind("step") if line.get("workload") == job]
    telling = {line["rank"] for line in lines if "loss" in line}
    if later := [int(line["step"]) for line in lines if line["rank"] in telling and int(line["step"]) > points[-1][0]]:
        return Finding("loss", False, f"the loss must be finite at the end (it is not after step {min(later)})")
    if len(points) < 2:
        return Finding("loss", None, f"job {job!r} made {len(points)} steps")
    first, last = points[0][1], points[-1][1]
    return Finding("loss", last < share * first, f"from {first:.3f} to {last:.3f} in {len(points)} steps")
