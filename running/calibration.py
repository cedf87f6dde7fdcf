"""Link rates that this machine can keep: a third of its processors busy at most, and no process late by an eighth of R.

A scenario's own workloads run for a moment, at a rate that no machine is too slow for. The lab's processor time grows
with packets, so the rate follows from this one measurement. Lateness is an absolute time, and the lab's timers allow
for an eighth of a base round trip (`topo.pfc.jitter_ns`): where its processes are later, the lab is slower. The
measurement is kept in the user's cache, by machine, plan, workloads and Python. Before each run the machine is looked
at for a second: other work and lateness of now slow the lab.
"""

import os
import platform
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

from common import files, plain_file
from common.scratch import Scratch
from judging import Run, Span
from judging.arrays import np
from judging.units import brief
from running.lateness import Lateness
from running.options import Choices
from running.runner import make_run
from running.spec import RunSpec
from running.transport_choice import transport
from scenarios import Phase, Scenario, Setting, Workload
from topo import Plan
from topo.pfc import JITTER_SHARE

__all__ = ["calibrated"]

BUSY_WANTED = 0.35
"""Of the processor. At half of it packets wait for turns, and a flap cost 1.2 to 3.3 round trips, not 0.7 to 1.1."""
PACKETS_A_SECOND = 2500  # per processor, to measure with: a fifth of a slow one, for a plan of any size
IDLE_MAX = 0.40  # a machine busier than this without a lab has other work: its power for a lab is not kept
SLOWER_MAX = 4  # a lab is slowed to a fourth at most for lateness
RATE_MAX_FACTOR = 2.5  # of the plan's own rate: a faster lab shows nothing more

LOADED_S, LOADED_ROUND_TRIPS = 1.5, 12  # the longer of the two is watched, after a third of it
LOOK_S = 1.0


class MeasuredLoad(NamedTuple):
    """How busy the machine was with a lab or without, as a share of what this process may have of it, and how late
    a device's timers were."""

    busy: float
    late_ns: int = 0


def busiest(scenario: Scenario, setting: Setting) -> list[Workload]:
    """The workloads of a scenario as they load the machine most: all at once, without end and without pauses.

    Two jobs of one kind on the same hosts, which follow each other in the scenario, count as one job.
    """
    usual = replace(setting, phases={phase.name: phase.seconds for phase in scenario.phases})
    workloads: dict[tuple[str, tuple[str, ...] | None], Workload] = {}
    for workload in [*scenario.workloads(usual), *(program.like for program in scenario.programs(usual))]:
        options = {key: value for key, value in workload.options.items() if key != "duration_ns"}
        kind = workload.kind
        if kind == "training":  # a mean over compute and communication would fill the processor while it communicates
            kind, options = "all_reduce", {"size": options["size"], "qps": options.get("qps", 1), "rounds": 0}
        workloads.setdefault((kind, workload.ranks), replace(workload, kind=kind, options=options, phase="warmup"))
    return list(workloads.values())


def key(plan: Plan, scenario: Scenario) -> str:
    """The key of a measurement: machine, Python, the plan's sizes (not its name), and the scenario's workloads."""
    shape = f"{plan.planes}x{plan.leaves}x{plan.spines}x{plan.hosts_per_leaf}"
    if plan.shape is not None:
        shape = f"{plan.topology.describe()}, {plan.host_count} hosts"
    sizes = f"{plan.packets.pmtu_bytes}@{plan.links.host_rate_bps}"
    machine = f"{platform.node()}, {os.cpu_count()} CPUs, {capacity():g} ours, Python {platform.python_version()}"
    sent = busiest(scenario, Setting(plan, "mrc", 0, {}))
    kinds = sorted(f"{workload.kind} on {len(workload.ranks or range(plan.host_count))}" for workload in sent)
    return f"{shape}, {sizes}, {plan.switch}, {' and '.join(kinds)}, {machine}"


def calibrated(plan: Plan, scenario: Scenario, tell: Callable[[str], None], again: bool = False) -> dict[str, Any]:
    """The measurement for a plan and a scenario's workloads, from the cache or made now, as the machine is at this
    moment. `port_rate_bps` is the rate of a NIC port."""
    path, name = files.cache_directory() / "calibration.json", key(plan, scenario)
    now, kept = look(), {}
    with suppress(OSError, ValueError):  # a file that cannot be read is written anew
        kept = plain_file.read_object(path)
    measurement, source = kept.get(name), "cache"
    if measurement is None or again:
        tell("calibrating: how fast can this machine go with two thirds of its CPU free?")
        bits = PACKETS_A_SECOND * capacity() * 8 * plan.packets.pmtu_bytes
        measured_at_bps = min(plan.links.host_rate_bps // 2, round(bits / plan.host_count / plan.planes))
        load = loaded(plan, measured_at_bps, scenario)
        late = f"; processes are up to {brief(load.late_ns)} late" if load.late_ns else ""
        tell(f"at {measured_at_bps / 1e6:.2f} Mb/s per port the lab takes {load.busy:.0%} of the machine{late}")
        measurement = {"measured_at_bps": measured_at_bps, "busy_lab": round(load.busy, 3), "late_ns": load.late_ns}
        source = "measured now"
        if now.busy <= IDLE_MAX:
            files.make_cache(path.parent)
            files.write_json(path, {**kept, name: measurement})
    quiet_bps, rate_bps = (fitting(plan, measurement, load) for load in (MeasuredLoad(0.0), now))
    if rate_bps < quiet_bps:
        late = f", and processes are up to {brief(now.late_ns)} late" if now.late_ns > measurement["late_ns"] else ""
        told = f"{rate_bps / 1e6:.2g} instead of {quiet_bps / 1e6:.2g} Mb/s per port"
        tell(f"the machine is {now.busy:.0%} busy with other things{late}: {told}")
    seen = {"port_rate_bps": rate_bps, "source": source, "busy_now": round(now.busy, 3), "late_now_ns": now.late_ns}
    return {**measurement, **seen}


def fitting(plan: Plan, measurement: Mapping[str, Any], now: MeasuredLoad) -> int:
    """The rate at which CPU use reaches BUSY_WANTED, half of that beside other work that takes the whole machine; and
    at which no process is later than the lab's timers allow for. To two digits."""
    free = BUSY_WANTED * (1 - min(now.busy, 1.0) / 2)
    rate_bps = (
        measurement["measured_at_bps"] * free / max(measurement["busy_lab"], 0.01)
    )  # less is below what can be measured
    rate_bps = min(rate_bps, plan.links.host_rate_bps * RATE_MAX_FACTOR)
    late_ns = max(measurement["late_ns"], now.late_ns, 1)
    on_time_bps = plan.links.host_rate_bps * plan.base_rtt_ns / (JITTER_SHARE * late_ns)
    rate_bps = min(rate_bps, max(on_time_bps, rate_bps / SLOWER_MAX))
    digits = 10 ** max(0, len(str(int(rate_bps))) - 2)
    return int(rate_bps // digits * digits)


def look() -> MeasuredLoad:
    """The machine at this moment, without a lab."""
    start_ns, before = time.monotonic_ns(), jiffies()
    with Lateness() as late:
        time.sleep(LOOK_S)
    busy, every = (after - earlier for earlier, after in zip(before, jiffies(), strict=True))
    return MeasuredLoad(busy / every if every else 0.0, late.usual(Span("look", start_ns, time.monotonic_ns())))


def loaded(plan: Plan, rate_bps: int, scenario: Scenario) -> MeasuredLoad:
    """The machine with a scenario's workloads at this rate, by a run without faults."""
    plan = plan.at_rate(rate_bps)
    seconds = max(LOADED_S, LOADED_ROUND_TRIPS * plan.base_rtt_ns / 1e9) / plan.pace
    measuring = Scenario(
        name="calibration",
        title="Calibration",
        description="What a scenario sends, at line rate and without faults, while the processor is watched.",
        plan=plan.name,
        workloads=partial(busiest, scenario),
        checks=lambda setting: [],
        phases=(Phase("warmup", seconds / 3), Phase("loaded", seconds)),
        settings=scenario.settings,
    )
    with Scratch("mrclab-calibration-") as folder:
        spec = RunSpec(measuring, Choices(transport("mrc", scenario.settings), plan, seed=0))
        with Lateness() as late:
            path = make_run(spec, folder)
        run = Run.open(path)
    return MeasuredLoad(lab_share(run, run.phases["loaded"]), late.usual(run.phases["loaded"]))


def lab_share(run: Run, span: Span) -> float:
    """How much of what this process may have of the machine the agents and switches of a lab took in a span."""
    served = {line["node"]: line["pid"] for line in run.kind("process")}
    sums: dict[Any, dict[int, int]] = {}  # since the start, by process: every host that one serves writes the same ones
    for line in run.kind("cpu"):
        sums.setdefault(served.get(line["node"], line["node"]), {})[int(line["t_ns"])] = int(line["process_ns"])
    edges = [span.start_ns, span.stop_ns]
    taken_ns = sum(float(np.diff(np.interp(edges, list(own), list(own.values())))[0]) for own in sums.values())
    return taken_ns / span.length_ns / capacity()


def jiffies() -> tuple[float, float]:
    """(busy, all) since boot, of what this process may have of the machine.

    Time stolen by a hypervisor counts as busy, because it was not ours. Time of processes at low priority ("nice")
    counts as free: they give way to ours, if not at once; agents journal how long they wait.
    """
    ours = {f"cpu{number}" for number in os.sched_getaffinity(0)}
    rows = [line.split() for line in Path("/proc/stat").read_text().splitlines()]
    columns = zip(*([int(word) for word in row[1:9]] for row in rows if row[0] in ours), strict=True)
    _, nice, _, idle, waiting, *_ = fields = [sum(column) for column in columns]
    return sum(fields) - nice - idle - waiting, sum(fields) * capacity() / len(ours)


@cache
def capacity() -> float:
    """How many processors this process may use at once: those of its affinity, or the quota of its control groups."""
    processors = float(len(os.sched_getaffinity(0)))
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, controllers, place = line.split(":", 2)
        second, root = not controllers, Path("/sys/fs/cgroup", controllers)
        if not second and "cpu" not in controllers.split(","):
            continue
        for folder in (root / place.strip("/"), *(root / place.strip("/")).parents):
            with suppress(OSError, ValueError):
                if second:
                    quota, period = (folder / "cpu.max").read_text().split()
                else:
                    quota, period = ((folder / f"cpu.cfs_{name}_us").read_text() for name in ("quota", "period"))
                processors = min(processors, int(quota) / int(period)) if int(quota) > 0 else processors
    return processors
