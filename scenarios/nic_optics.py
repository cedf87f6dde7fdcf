"""The transceiver of one NIC goes dark: all its ports at once. This is what MRC does not survive."""

from collections.abc import Sequence

from judging import Finding, PaperRow, Run, checks
from judging.checks import Check, check
from judging.measures import steps
from scenarios.scenario import Phase, Scenario, Setting, TimedFault, Workload, phases, training_loop

HOST = "h0"
DARK_AT_S, DARK_FOR_S = 2.0, 20.0
JOB, NEXT_JOB = "job", "next"


def timeline(setting: Setting) -> list[TimedFault]:
    """Dark for longer than all retries take; on the hardware's clock that is two milliseconds."""
    return [TimedFault(DARK_AT_S, "optics-down", HOST, DARK_FOR_S)]


def workloads(setting: Setting) -> Sequence[Workload]:
    """A job on all hosts, and after the light is back another one on queue pairs that were idle while it was gone."""
    loop = training_loop(setting)
    return [
        Workload(loop.kind, loop.options, name=JOB),
        Workload(loop.kind, loop.options, name=NEXT_JOB, phase="again"),
    ]


@check
def only_its_queue_pairs_fail(run: Run) -> Finding:
    """Every queue pair that had something under way to or from the dark NIC goes to ERROR, and no other does."""
    failed = checks.qp_errors(run)
    others = [line for line in failed if HOST not in (line["node"], line.get("peer"))]
    ends = {str(line["node"]) for line in failed}
    figures = {"failed": len(failed), "others": len(others)}
    if others:
        reason = f"{len(others)} queue pairs of other hosts failed, first {others[0]['node']} → {others[0].get('peer')}"
        return Finding("queue pairs", False, reason, figures)
    if HOST not in ends or len(ends) < 2:
        where = f"only at {', '.join(sorted(ends))}" if ends else "nowhere"
        return Finding(
            "queue pairs", False, f"a queue pair must fail at both ends of {HOST}'s (failed {where})", figures
        )
    cause = failed[0].get("cause")
    return Finding("queue pairs", True, f"{len(failed)} failed, all of them to or from {HOST} ({cause})", figures)


@check
def job_fails(run: Run) -> Finding:
    """Some ranks of the job end with an error, and no rank ends a step after the first queue pair has failed."""
    stops = [line for line in run.kind("workload") if line.get("name") == JOB and line.get("state") == "stop"]
    dead = [line for line in stops if line.get("outcome") == "failed"]
    failed = checks.qp_errors(run)
    if not failed:
        return Finding("job fails", False, "no queue pair failed, and the job went on")
    after = sum(step.end_ns > int(failed[0]["t_ns"]) for step in of_job(run, JOB))
    figures = {"ranks_failed": len(dead), "steps_after": after}
    if not dead or after:
        return Finding("job fails", False, f"{len(dead)} ranks failed; {after} steps ended after that", figures)
    made = len(of_job(run, JOB))
    reason = f"{len(dead)} ranks failed after {made} steps, and the job made no other step: a checkpoint must be loaded"
    return Finding("job fails", True, reason, figures)


@check
def next_job_runs(run: Run, limit: float = 0.03) -> Finding:
    """A job that starts when the light is back is as fast as the first one was before."""
    before, after = (
        steps.times(steps.within(of_job(run, name), run.phases[phase]))
        for name, phase in ((JOB, "reference"), (NEXT_JOB, "again"))
    )
    if before is None or after is None or min(before.count, after.count) < 3:
        return Finding("next job", None, "both jobs need three steps")
    off = after.median_ns / before.median_ns - 1
    reason = f"a step of the next job takes {1 + off:.1%} of what a step took before (at most {1 + limit:.0%})"
    return Finding("next job", off <= limit, reason, {"share": round(1 + off, 4)})


def of_job(run: Run, name: str) -> list[steps.TrainingStep]:
    """The steps of one job, which have the same numbers as the other's."""
    return steps.steps(Run([line for line in run.kind("step") if line.get("workload") == name]))


def judge(setting: Setting) -> Sequence[Check]:
    return [
        checks.bytes_right(),
        checks.planes_even(0.05),
        checks.paths_healed(lambda path: HOST in (path.host, path.peer)),
        checks.tables_unchanged(),
        checks.faults_happened(at_least=1),
        only_its_queue_pairs_fail(),
        job_fails(),
        next_job_runs(),
    ]


SCENARIO = Scenario(
    name="nic-optics",
    title="A dark NIC transceiver costs the job, and nothing else",
    description=(
        "All ports of one NIC share a transceiver. When the transceiver flaps, no path is left: the queue pairs to and "
        "from that NIC run out of retries, and the job with them. Queue pairs between other hosts stay alive, and a "
        "job that starts when the light is back runs at full speed. The retries are shortened here, so that they end "
        "within seconds; MRC whose retries are without end (mrc-cx8) waits for the light instead."
    ),
    plan="lab",
    workloads=workloads,
    timeline=timeline,
    checks=judge,
    phases=phases(Phase("again", 14.0), reference_s=14.0, faults_s=24.0),
    settings={"timeout_rtts": 4, "retry_exponential": 3},  # retries that end within seconds; the default has no end
    paper=(
        PaperRow(
            "§5.1",
            "the transceiver of a NIC itself flaps",
            "all ports are lost; queue pairs fail; rare, but it is seen",
        ),
    ),
)
