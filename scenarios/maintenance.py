"""A spine is drained for maintenance, a link is repaired in service, and both come back."""

from collections.abc import Sequence

from judging import Finding, PaperRow, Run, checks
from judging.checks import Check, check
from judging.measures import paths
from scenarios import places
from scenarios.scenario import Scenario, Setting, TimedFault, only_training, phases
from topo.path import paths as topo_paths


def timeline(setting: Setting) -> list[TimedFault]:
    """Drain a spine for 20 s; meanwhile a link of another plane flaps as a technician reseats its optics."""
    plan, rng = setting.plan, setting.new_rng()
    places.spines(plan, "drains")
    plane, other = rng.sample(range(plan.planes), 2) if plan.planes > 1 else (0, 0)
    link = rng.choice(places.uplinks(plan, other, rng.randrange(plan.leaves)))
    reseated = [TimedFault(4.0 + 4.0 * index, "link-down", link, 1.0) for index in range(3)]
    return [TimedFault(1.0, "drain", rng.choice(places.switches(plan, "spine", plane)), 20.0), *reseated]


@check
def drained(run: Run, setting: Setting) -> Finding:
    """In the middle of the drain every host that could cross the spine holds its paths there DENIED.

    `paths_healed` checks that the paths are back in the end.
    """
    if setting.single_plane:
        return Finding("drained", None, "the baseline cannot be told to leave a switch")
    drain = next((fault for fault in run.faults if fault.verb == "drain"), None)
    if drain is None or drain.stop_ns is None:
        return Finding("drained", None, "no spine was drained and brought back")
    plan = setting.plan

    def crosses(host: str, peers: set[str], target: str = drain.target) -> bool:
        ways = (path for peer in peers for path in topo_paths(plan, plan.host(host), plan.host(peer)))
        return any(target in (switch.name for switch in path.switches) for path in ways)

    middle_ns = (drain.start_ns + drain.stop_ns) // 2
    denied = paths.in_state(run, "DENIED", middle_ns)
    denying = {path.host for path in denied if drain.target in places.crossed(setting, path)}
    peers = {
        host: {str(qp["peer"]) for line in lines for qp in line["qps"]} for host, lines in run.agent_samples.items()
    }
    wanted = {host for host, own in peers.items() if crosses(host, own)}
    if not wanted:
        return Finding("drained", None, "no host had a path across the spine")
    if left := sorted(wanted - denying):
        return Finding("drained", False, f"{left[0]} kept using {drain.target} while it was drained")
    return Finding("drained", True, f"all {len(wanted)} hosts kept off {drain.target} while it was drained")


def judge(setting: Setting) -> Sequence[Check]:
    return [
        *checks.always(),
        checks.reference_load(),
        checks.faults_happened(at_least=4),
        checks.faults_felt(),
        drained(setting),
        checks.fault_cost(),
        checks.drift(),
    ]


SCENARIO = Scenario(
    name="maintenance",
    title="A job does not notice maintenance",
    description=(
        "A spine is drained, worked on and brought back, and a link elsewhere goes down and up as a technician "
        "reseats its optics. The job is neither stopped nor told; links under repair stay in service, and come "
        "back when probes succeed."
    ),
    plan="lab",
    workloads=only_training,
    timeline=timeline,
    checks=judge,
    phases=phases(reference_s=16.0, faults_s=40.0),
    paper=(
        PaperRow("§3", "links under repair", "left in service; used again when enough probes succeed over time"),
        PaperRow("BLOG", "four T1s rebooted during one job", "without coordination with the job"),
    ),
)
