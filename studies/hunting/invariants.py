"""Rules that must hold under any timeline that leaves every pair of hosts a path: the checks of a hunt.

Each false finding is a bug of the transport, of the lab, or of this page.
"""

from collections import defaultdict
from collections.abc import Sequence
from itertools import pairwise

from common.journal import Line
from judging import Finding, Run, Span, checks, sample_size
from judging.checks import Check, check
from judging.measures import goodput, paths
from judging.measures.counters import switch_drops
from scenarios import Setting
from studies.hunting.survivable import OUTAGE_ROUND_TRIPS, RESPITE_ROUND_TRIPS
from topo.plan import Queues, Trimming

BACK_AT = 0.6  # of the reference's goodput, in the last part of the last phase
QPS_MAX = 16  # of a host in any case that is drawn
TAIL = 0.4  # of the phase after the faults: what comes before is the budget for recovering
GROWTH_MIN = 40  # of one kind of record, from each round to the next: 60 faults leave fewer behind where none leaks
# Kept on purpose, never more of each queue pair (endpoint/mrc/paths/probe_budget.py, endpoint/mrc/operations.py).
KEPT = {"ProbeTable.dict": 1024, "EndpointOperations.dict": 1024}
STILL_RTTS = OUTAGE_ROUND_TRIPS + RESPITE_ROUND_TRIPS  # of a queue pair, at most
HEALING_RTTS = 40  # sixteen probes at their interval, and some that are lost
PROBE_INTERVAL_RTTS = 2  # between two probes of one path, at least (endpoint/nic/config.py)


def must_hold(setting: Setting) -> list[Check]:
    """All of them, for this setting."""
    last = list(setting.phases)[-1]
    # Elsewhere a full queue loses packets, which looks like a path that fails, up to the last moment of a loaded run.
    lossless = setting.plan.trimming == Trimming() and setting.plan.queues == Queues()
    return [
        checks.bytes_right(),
        checks.messages_complete(),
        workloads_end_well(),
        checks.no_qp_error(),
        *([paths_healed()] if lossless else []),
        planes_healed(),
        probes_counted(),
        checks.tables_unchanged(),
        goodput_back(last),
        flows_back(last),
        flows_move(),
        sound_paths_kept(lossless, slowest(setting)),
        nothing_grows(),
    ]


def slowest(setting: Setting) -> float:
    """The speed of the slowest cable, as a share of the plan's rate."""
    return min(1.0, *(cable.speed for cable in setting.plan.topology.cables()))


@check
def workloads_end_well(run: Run) -> Finding:
    """No message came twice, out of order, or with something that nobody sent: workloads look at each."""
    stops = [line for line in run.kind("workload") if line.get("state") == "stop"]
    failed = [line for line in stops if line.get("outcome") == "failed"]
    if failed:
        return Finding("workloads", False, f"{failed[0]['node']}: {failed[0].get('cause')}")
    return Finding("workloads", True if stops else None, f"{len(stops)} ranks ended well")


@check
def planes_healed(run: Run) -> Finding:
    """At the end every host takes every port of its own, and of every peer, to be up."""
    state: dict[tuple[object, ...], str] = {}
    for line in run.kind("plane"):
        state[line["node"], line.get("plane"), line.get("side"), line.get("peer")] = str(line.get("state"))
    down = sorted((key for key, said in state.items() if said != "up"), key=str)
    if down:
        node, plane, side, peer = down[0]
        whose = f"that of {peer}" if side == "peer" else "its own"
        return Finding("planes healed", False, f"{node} takes {whose} port in plane {plane} to be down at the end")
    return Finding("planes healed", True, "every host takes every port to be up at the end")


def way(line: Line) -> str:
    """The path that a line of kind `ev` is about."""
    return f"{line['node']} → {line.get('peer')}, plane {line.get('plane')} via {line.get('via')}"


@check
def probes_counted(run: Run) -> Finding:
    """A path that probes brought back was out for as long as that many probes take, one after the other."""
    needed = int(run.options.get("settings", {}).get("probes_to_resurrect", 2))
    # The first is sent at once.
    least_ns = max(0, needed - 1) * PROBE_INTERVAL_RTTS * sample_size.base_rtt_ns(run)
    left: dict[tuple[object, ...], int] = {}
    for line in run.kind("ev"):
        key = (line["node"], line.get("qp"), line["ev"])
        if str(line["new"]).upper() == "ASSUMED_BAD":
            left.setdefault(key, int(line["t_ns"]))
            continue
        since_ns = left.pop(key, None)
        if since_ns is None or not str(line.get("cause", "")).startswith("probed"):
            continue
        if (out_ns := int(line["t_ns"]) - since_ns) < least_ns:
            reason = f"{way(line)} was used again after {run.lasting(out_ns)}; {needed} probes in a row take longer"
            return Finding("probes counted", False, reason)
    return Finding("probes counted", True, "no path was used again before enough probes could come back")


def tail(run: Run, phase: str) -> Span | None:
    """The last part of a phase, by when everything must be as it was; None when it is too short to say anything."""
    span = run.phases.get(phase)
    if span is None:
        return None
    last = Span("tail", span.stop_ns - round(TAIL * span.length_ns), span.stop_ns)
    return last if last.length_ns >= 10 * sample_size.base_rtt_ns(run) else None


@check
def goodput_back(run: Run, phase: str) -> Finding:
    """In the end all hosts together carry what they carried before the faults, but for what chance explains.

    Queue pairs on single paths leave them for others and stay there: two that had a port each may share one since.
    """
    if run.options.get("settings", {}).get("selection") == "single_path":
        return Finding("goodput back", True, "queue pairs on single paths may share one since the faults")
    reference, end = run.phases.get("reference"), tail(run, phase)
    before = goodput.over(run, reference) if reference else 0.0
    if end is None or before <= 0:
        return Finding("goodput back", None, "too little was carried before the faults, or the end is too short")
    share = goodput.over(run, end) / before
    reason = f"goodput at the end is {share:.0%} of that before the faults (at least {BACK_AT:.0%})"
    return Finding("goodput back", share >= BACK_AT, reason, {"share": round(share, 3)})


@check
def flows_back(run: Run, phase: str) -> Finding:
    """Every queue pair that moved before the faults moves at the end."""
    reference, end = run.phases.get("reference"), tail(run, phase)
    if reference is None or end is None:
        return Finding("flows back", None, "too short to say")
    for host, samples in run.agent_samples.items():
        moved, later = (progress(samples, span) for span in (reference, end))
        still = [key for key, count in moved.items() if count and not later.get(key)]
        if still:
            reason = f"{host}: queue pair {still[0][0]} to {still[0][1]} carried nothing at the end"
            return Finding("flows back", False, reason)
    return Finding("flows back", True, "every queue pair that carried something before the faults does at the end")


@check
def flows_move(run: Run) -> Finding:
    """No queue pair with something to send stands still for long, whatever fails: each always has a sound path, but for
    short outages. A queue pair without writes waits for its workload, which may wait for others."""
    start_ns, limit_ns = run.start_ns, STILL_RTTS * sample_size.base_rtt_ns(run)
    reference = run.phases.get("reference")
    end_ns = max((span.stop_ns for span in run.phases.values()), default=0)
    for host, samples in run.agent_samples.items():
        moved = progress(samples, reference) if reference else {}
        since: dict[tuple[object, object], tuple[int, int]] = {}
        for line in samples:
            t_ns = int(line["t_ns"])
            for qp in line["qps"] if start_ns <= t_ns < end_ns else ():
                key, acked = (qp["qp"], qp.get("peer")), int(qp.get("acked_bytes", 0))
                if acked != since.setdefault(key, (acked, t_ns))[0] or not qp.get("pending", 1):
                    since[key] = (acked, t_ns)
                elif moved.get(key) and t_ns - since[key][1] > limit_ns:
                    still = f"{host}: queue pair {key[0]} to {key[1]} carried nothing for {run.lasting(limit_ns)}"
                    return Finding("flows move", False, f"{still} from {run.clock(since[key][1])} on")
    return Finding("flows move", True, f"no queue pair stood still for {run.lasting(limit_ns)}")


@check
def paths_healed(run: Run) -> Finding:
    """At the end every path is good.

    Trimmed packets beyond their share of a port are really lost. Where some were, paths may have been abandoned for the
    last of them: so shortly before the end that as many probes as a relapsed path needs have not come back yet.
    """
    beyond = switch_drops(run)["drop_trimmed_share"]
    since_ns = run.end_ns - HEALING_RTTS * sample_size.base_rtt_ns(run)
    return checks.paths_healed(lambda path: beyond > 0 and paths.histories(run)[path][-1].start_ns > since_ns)(run)


@check
def sound_paths_kept(run: Run, trimming: bool, speed: float = 1.0) -> Finding:
    """Before the first fault no path is abandoned: full queues trim, and a trimmed packet is no lost one.

    A packet that waits in a full queue may be overtaken by more than the transport expects. Its late acknowledgement
    must bring the path back within a round trip, so that nothing but a packet sent twice comes of it. A queue before a
    slow cable drains as much more slowly: `speed` is that of the slowest. And trimmed packets have a share of a port:
    what is beyond that share is lost, when many senders of small packets trim more than fits. Paths of such a run need
    not be kept.
    """
    reference = run.phases.get("reference")
    if reference is None or not trimming:
        return Finding("sound paths kept", True, "without trimming a full queue looks like a path that fails")
    if beyond := switch_drops(run)["drop_trimmed_share"]:
        return Finding("sound paths kept", True, f"{beyond} trimmed packets were lost, beyond their share of a port")
    left: dict[tuple[object, ...], Line] = {}
    forgiven = 0
    for line in run.kind("ev"):
        key = (line["node"], line.get("qp"), line["ev"])
        if str(line["new"]).upper() == "ASSUMED_BAD" and int(line["t_ns"]) < reference.stop_ns:
            left[key] = line
        elif key in left and line.get("cause") == "late_ack":
            away_ns = int(line["t_ns"]) - int(left[key]["t_ns"])
            if away_ns <= sample_size.base_rtt_ns(run) / speed:
                del left[key]
                forgiven += 1
    if left:
        first = way(next(iter(left.values())))
        return Finding("sound paths kept", False, f"{first} was abandoned before anything was broken")
    return Finding(
        "sound paths kept", True, f"before the first fault {forgiven} paths were left, for less than a round trip"
    )


def progress(samples: Sequence[Line], span: Span) -> dict[tuple[object, object], int]:
    """Bytes acknowledged in a span by queue pair and peer: the last sample in it less the first."""
    first: dict[tuple[object, object], int] = {}
    last: dict[tuple[object, object], int] = {}
    for line in samples:
        if span.contains(line["t_ns"]):
            for qp in line["qps"]:
                key = (qp["qp"], qp.get("peer"))
                first.setdefault(key, int(qp.get("acked_bytes", 0)))
                last[key] = int(qp.get("acked_bytes", 0))
    return {key: last[key] - first[key] for key in last}


@check
def nothing_grows(run: Run) -> Finding:
    """Where the same faults are repeated again and again, no kind of record in a host grows round by round."""
    counted: dict[tuple[str, str], dict[int, int]] = defaultdict(dict)
    ended = [name for name in run.phases if name.startswith("after")]
    counts_at = {name: number for number, name in enumerate(ended)}
    lines = [line for line in run.kind("records") if line.get("label") in counts_at]
    rounds = sorted({counts_at[line["label"]] for line in lines})
    if len(rounds) < 3:
        return Finding("nothing grows", True, "no faults were repeated often enough to see growth")
    for line in lines:
        for label, count in line["records"].items():
            counted[line["node"], label][counts_at[line["label"]]] = int(count)
    for (host, label), counts in sorted(counted.items()):
        steps = [counts.get(after, 0) - counts.get(before, 0) for before, after in pairwise(rounds)]
        if min(steps) >= GROWTH_MIN and counts[rounds[-1]] > KEPT.get(label, 0) * QPS_MAX:
            reason = f"{host} keeps {label}: {', '.join(str(counts.get(number, 0)) for number in rounds)}"
            return Finding("nothing grows", False, f"{reason} records after each round of the same faults")
    return Finding("nothing grows", True, f"no record grew over {len(rounds)} rounds of the same faults")
