"""One link silently drops a fifth of its packets while its ports stay up; the path prober must name it."""

import math
from collections.abc import Sequence

from common.terminal.counted import counted
from judging import Finding, PaperRow, Run, checks
from judging.checks import Check, check
from judging.measures import paths, stalls
from scenarios import places
from scenarios.scenario import Prober, Scenario, Setting, TimedFault, Workload, phases

LOSS = 0.20
LEAF, SPINE, PLANE = 0, 1, 1
LINK = f"p{PLANE}l{LEAF}-p{PLANE}s{SPINE}"


def timeline(setting: Setting) -> list[TimedFault]:
    seed = setting.new_rng().randrange(1 << 32)
    return [TimedFault(2.0, "loss", LINK, setting.phases["faults"] - 8.0, value=100 * LOSS, seed=seed)]


@check
def prober_names_it(run: Run) -> Finding:
    """While the link loses packets, at least one host blames it, and no host blames another switch or link."""
    if not run.faults:
        return Finding("blame", None, "the fault never began")
    target = set(run.faults[0].target.split("-"))
    blamed = [line for line in run.kind("link") if line.get("blame")]
    if not blamed:
        return Finding("blame", False, "no host blamed anything")
    right = [line for line in blamed if {str(line.get("a")), str(line.get("b"))} == target]
    wrong = [line for line in blamed if line not in right and not stalls.spoils(run, int(line["t_ns"]))]
    if not right and not wrong:
        return Finding("blame", None, f"what was blamed, was so for a stall: {stalls.describe(run, run.span)}")
    if not right:
        return Finding("blame", False, f"the prober blamed {wrong[0].get('blame')!r}, not {run.faults[0].target}")
    fault, first = run.faults[0], right[0]
    after_s = (first["t_ns"] - fault.start_ns) / 1e9
    end_ns = fault.stop_ns or run.end_ns
    told = [line for line in right if line["node"] == first["node"] and line["t_ns"] <= end_ns] or [first]
    each_way = 1 - math.sqrt(1 - float(told[-1]["loss"]))  # a probe crosses the link there and back
    figures = {"right": len(right), "wrong": len(wrong), "loss": round(each_way, 3), "after_s": round(after_s, 2)}
    estimate = f"in the end it held the link to lose {each_way:.0%} each way, {LOSS:.0%} is true"
    reason = f"{first['node']} named it after {after_s:.1f} s; {estimate}; {len(wrong)} wrong names"
    return Finding("blame", not wrong, reason, figures)


@check
def only_its_paths_were_left(run: Run, setting: Setting) -> Finding:
    """At least one path was abandoned, and every such path crosses the grey link."""
    histories = paths.histories(run).items()
    abandoned = [key for key, spans in histories if any(not stalls.spoils(run, span.start_ns) for span in spans)]
    if not abandoned:
        return Finding("paths abandoned", False, "no path was abandoned")
    others = [key for key in abandoned if f"p{PLANE}s{SPINE}" not in places.crossed(setting, key)]
    reason = f"{counted(len(abandoned), 'path was', 'paths were')} abandoned, {len(others)} of them do not cross {LINK}"
    # A SACK may be lost on the grey link's way back and blame an innocent path for a moment.
    return Finding("paths abandoned", len(others) <= len(abandoned) // 2, reason, {"others": len(others)})


def judge(setting: Setting) -> Sequence[Check]:
    own = [checks.faults_happened(at_least=1), checks.faults_felt(), checks.fault_cost(), checks.drift()]
    if not setting.single_plane:
        own += [prober_names_it(), only_its_paths_were_left(setting)]
    return [*checks.always(), *own]


def workloads(setting: Setting) -> Sequence[Workload]:
    options = {"size": 262144, "depth": 16, "qps": 2 * setting.queue_pairs, "bidirectional": True, "messages": 0}
    return [Workload("write_bw", options, ranks=("h0", setting.last_host))]


SCENARIO = Scenario(
    name="grey-link",
    title="A link that lies is abandoned and named",
    description=(
        "Both ends of the link report it up; only packets vanish. The transport leaves the paths across it at "
        "once, because a loss that is not a trim means a bad path, and the prober in every host finds out which "
        "link it is."
    ),
    plan="lab",
    workloads=workloads,
    timeline=timeline,
    checks=judge,
    phases=phases(reference_s=15.0, faults_s=30.0, heal_s=8.0),
    prober=Prober(),
    paper=(
        PaperRow(
            "12, 13", "EV-A made to drop 20 % at 51 s; 16 paths", "EV-A unused at once; mean 1531, lowest 1515 Gb/s"
        ),
    ),
)
