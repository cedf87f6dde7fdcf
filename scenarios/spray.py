"""One queue pair sprays over all 256 paths of the `wide` plan; then 32 of them are cut."""

from collections.abc import Sequence

from judging import Finding, PaperRow, Run, checks
from judging.checks import Check, check
from scenarios import places
from scenarios.scenario import Scenario, Setting, TimedFault, Workload, carried_out, phases
from topo.path import evs

CUTS = 32
SENDER = "h0"


def timeline(setting: Setting) -> list[TimedFault]:
    """CUTS different uplinks of the sender's leaves, in all planes alike, are cut at once and stay cut."""
    plan, rng = setting.plan, setting.new_rng()
    leaf = plan.leaf_of(plan.host(SENDER))
    each = max(1, CUTS // plan.planes)
    cuts = []
    for plane in range(plan.planes):
        uplinks = places.uplinks(plan, plane, leaf)
        for number in sorted(rng.sample(range(len(uplinks)), min(each, len(uplinks) - 1))):
            cuts.append(TimedFault(1.0, "link-down", uplinks[number], setting.phases["faults"] - 2.0))
    return cuts


@check
def every_path_used(run: Run, setting: Setting) -> Finding:
    """In the reference phase the sender's counters show data on every path to the receiver."""
    plan = setting.plan
    paths = sum(1 for _ in evs(plan, plan.host(SENDER), plan.host(setting.last_host)))
    reference = run.phases.get("reference")
    if reference is None:
        return Finding("every path", None, "there was no reference phase")
    samples = [line for line in run.agent_samples.get(SENDER, []) if reference.contains(line["t_ns"])]
    counts = [counted for line in samples if (counted := line.get("paths"))]
    if len(counts) < 2:
        return Finding("every path", None, f"{SENDER} did not count packets by path")
    first, last = counts[0], counts[-1]
    sent = {ev: count - first.get(ev, 0) for ev, count in last.items()}
    used = sum(1 for count in sent.values() if count > 0)
    fewest, most = min(sent.values(), default=0), max(sent.values(), default=0)
    figures = {"paths": paths, "used": used, "fewest_packets": fewest, "most_packets": most}
    reason = f"{used} of {paths} paths carried data, {fewest} to {most} packets each"
    return Finding("every path", used == paths, reason, figures)


def judge(setting: Setting) -> Sequence[Check]:
    cuts = carried_out(setting, timeline(setting))
    own = [checks.faults_happened(at_least=len(cuts)), checks.faults_felt(), checks.fault_cost(), checks.drift()]
    if not setting.single_plane:
        own.append(every_path_used(setting))
    return [*checks.always(), *own]


def workloads(setting: Setting) -> Sequence[Workload]:
    options = {"size": 1 << 20, "depth": 8, "qps": setting.queue_pairs, "messages": 0}
    return [Workload("write_bw", options, ranks=(SENDER, setting.last_host))]


SCENARIO = Scenario(
    name="spray",
    title="One queue pair lives on 256 paths, and on what is left of them",
    description=(
        "One host writes to another on a single queue pair over eight planes of 32 spines. Counters show every "
        "path carrying data. Then 32 of the sender's 256 uplinks are cut at once: the queue pair lives on on the "
        "rest."
    ),
    plan="wide",
    workloads=workloads,
    timeline=timeline,
    checks=judge,
    phases=phases(reference_s=15.0, faults_s=20.0, heal_s=6.0),
    short=phases(warmup_s=2.0, reference_s=7.0, faults_s=8.0, heal_s=2.0),
    sample_paths=True,
    settings={"evs_active": 256, "evs_backup": 0},  # every path there is: by default half of them are spare
    paper=(PaperRow("§2.1", "paths of one QP in production", "128 to 256 EVs, a different one for each packet"),),
)
