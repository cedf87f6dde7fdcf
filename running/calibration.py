"""Link rates that this machine can keep: half of its processors busy at most, and no process late by an eighth of R.

A scenario's own workloads run for a few seconds at half of the plan's rate. The lab's CPU time grows with packets, so
the rate follows from this one measurement, unless the lab saturated the machine: then a slower one is made. Lateness is
an absolute time, and the lab's timers allow for an eighth of a base round trip (`topo.pfc.jitter_ns`): where ordinary
processes are later, the lab is slower. The measurement is kept in the user's cache, by machine, plan, workloads and
Python. Before each run the machine is looked at for a second: other work and lateness of now slow the lab.
"""

from __future__ import annotations

import json
import os
import platform
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from common import files
from common.scratch import Scratch
from judging import Run, Span, journal
from judging.units import brief
from running.choices import Choices
from running.launch import made
from running.machine.hiccup import HiccupMeter
from running.machine.processor import capacity, jiffies, share
from running.spec import RunSpec
from running.transport_choice import transport
from scenarios import Phase, Scenario, Setting, Workload
from topo import Plan
from topo.pfc import JITTER_SHARE

__all__ = ["calibrated"]

BUSY_WANTED = 0.5
SATURATED = 0.85  # above this, a faster lab would hardly take more
IDLE_MAX = 0.40  # a machine busier than this without a lab has other work: its power for a lab is not kept
SLOWER_MAX = 4  # a lab is slowed to a fourth at most for lateness
ATTEMPTS = 4
RATE_MAX_FACTOR = 2.5  # of the plan's own rate: a faster lab shows nothing more

PHASES = (Phase("warmup", 1.0), Phase("loaded", 2.5))
LOOK_S = 1.0
PERIOD_NS = 2_000_000  # of the meter of lateness
LATE_SHARE = 0.001  # of all wake-ups, which may be later than the lab's timers allow for


@dataclass(frozen=True, slots=True)
class MeasuredLoad:
    """How busy the machine was with a lab or without, as a share of what this process may have of it, and how late all
    but a thousandth of the wake-ups of an ordinary process were."""

    busy: float
    late_ns: int = 0


def busiest(scenario: Scenario, setting: Setting) -> list[Workload]:
    """The workloads of a scenario as they load the machine most: all at once, without end and without pauses.

    Two jobs of one kind on the same hosts, which follow each other in the scenario, count as one job.
    """
    usual = replace(setting, phases={phase.name: phase.seconds for phase in scenario.phases})
    found: dict[tuple[str, tuple[str, ...] | None], Workload] = {}
    for one in [*scenario.workloads(usual), *(program.like for program in scenario.programs(usual))]:
        options = {key: value for key, value in one.options.items() if key != "duration_ns"}
        kind = one.kind
        if kind == "training":  # a mean over compute and communication would fill the processor while it communicates
            kind, options = "all_reduce", {"size": options["size"], "qps": options.get("qps", 1), "rounds": 0}
        found.setdefault((kind, one.ranks), replace(one, kind=kind, options=options, phase="warmup"))
    return list(found.values())


def under(scenario: Scenario) -> Scenario:
    """The calibration's own scenario, with the workloads of the given one."""
    return Scenario(
        name="calibration",
        title="Calibration",
        description="What a scenario sends, at line rate and without faults, while the processor is watched.",
        plan=scenario.plan,
        workloads=partial(busiest, scenario),
        checks=lambda setting: [],
        phases=PHASES,
        settings=scenario.settings,
    )


def cache_file() -> Path:
    """The file of measurements in the user's cache."""
    return files.cache_directory() / "calibration.json"


def key(plan: Plan, scenario: Scenario) -> str:
    """The key of a measurement: machine, Python, the plan's sizes (not its name), and the scenario's workloads."""
    shape = f"{plan.planes}x{plan.leaves}x{plan.spines}x{plan.hosts_per_leaf}"
    if plan.shape is not None:
        shape = f"{plan.topology.words()}, {plan.host_count} hosts"
    sizes = f"{plan.packets.pmtu_bytes}@{plan.links.host_rate_bps}"
    machine = f"{platform.node()}, {os.cpu_count()} CPUs, {capacity():g} ours, Python {platform.python_version()}"
    sent = busiest(scenario, Setting(plan, "mrc", 0, {}))
    kinds = sorted(f"{one.kind} on {len(one.ranks or range(plan.host_count))}" for one in sent)
    return f"{shape}, {sizes}, {plan.switch}, {' and '.join(kinds)}, {machine}"


def load(path: Path) -> dict[str, Any]:
    """All measurements; a file that cannot be read counts as empty and is written anew."""
    try:
        found = json.loads(path.read_text())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def calibrated(plan: Plan, scenario: Scenario, tell: Callable[[str], None], again: bool = False) -> dict[str, Any]:
    """The measurement for a plan and a scenario's workloads, from the cache or made now, as the machine is at this
    moment. `port_rate_bps` is the rate of a NIC port."""
    path, name = cache_file(), key(plan, scenario)
    now, kept = look(), load(path)
    found, source = kept.get(name), "cache"
    if found is None or again:
        tell("calibrating: how fast can this machine go with half of its CPU free?")
        found, source = measure(plan, scenario, tell), "measured now"
        if now.busy <= IDLE_MAX:
            path.parent.mkdir(parents=True, exist_ok=True)
            files.write_json(path, {**kept, name: found})
    quiet_bps, rate_bps = (fitting(plan, found, load) for load in (MeasuredLoad(0.0), now))
    if rate_bps < quiet_bps:
        late = f", and processes are up to {brief(now.late_ns)} late" if now.late_ns > found["late_ns"] else ""
        told = f"{rate_bps / 1e6:.2g} instead of {quiet_bps / 1e6:.2g} Mb/s per port"
        tell(f"the machine is {now.busy:.0%} busy with other things{late}: {told}")
    seen = {"port_rate_bps": rate_bps, "source": source, "busy_now": round(now.busy, 3), "late_now_ns": now.late_ns}
    return {**found, **seen}


def fitting(plan: Plan, found: Mapping[str, Any], now: MeasuredLoad) -> int:
    """The rate at which CPU use reaches BUSY_WANTED, half of that beside other work that takes the whole machine; and
    at which no process is later than the lab's timers allow for. To two digits."""
    free = BUSY_WANTED * (1 - min(now.busy, 1.0) / 2)
    rate_bps = found["measured_at_bps"] * free / max(found["busy_lab"], 0.01)  # less is below what can be measured
    rate_bps = min(rate_bps, plan.links.host_rate_bps * RATE_MAX_FACTOR)
    late_ns = max(found["late_ns"], now.late_ns, 1)
    on_time_bps = plan.links.host_rate_bps * plan.base_rtt_ns / (JITTER_SHARE * late_ns)
    return two_digits(min(rate_bps, max(on_time_bps, rate_bps / SLOWER_MAX)))


def look() -> MeasuredLoad:
    """The machine at this moment, without a lab."""
    before = jiffies()
    with Scratch("mrclab-look-") as folder:
        started_ns = time.monotonic_ns()
        with HiccupMeter(folder / "meter.jsonl", PERIOD_NS, ordinary=True):
            time.sleep(LOOK_S)
        late_ns = lateness(folder / "meter.jsonl", Span("look", started_ns, time.monotonic_ns()))
    return MeasuredLoad(share(before, jiffies()), late_ns)


def lateness(meter: Path, span: Span) -> int:
    """How late all but LATE_SHARE of the wake-ups in a span were, ns: 0 where that is less than the meter notes."""
    lines = journal.read_file(meter)
    late = (int(one["late_ns"]) for one in lines if one["kind"] == "stall" and span.contains(int(one["t_ns"])))
    return beyond(late, span.length_ns // PERIOD_NS * len(os.sched_getaffinity(0)))


def beyond(late_ns: Iterable[int], count: int) -> int:
    """The lateness that LATE_SHARE of `count` wake-ups exceed, given those that were noted; 0 where fewer were."""
    most = sorted(late_ns, reverse=True)
    place = int(LATE_SHARE * count)
    return most[place] if place < len(most) else 0


def measure(plan: Plan, scenario: Scenario, tell: Callable[[str], None]) -> dict[str, Any]:
    """Measure, slower while the lab saturates the machine. RuntimeError when it does even then."""
    rate_bps = plan.links.host_rate_bps // 2
    for _ in range(ATTEMPTS):
        found = loaded(plan, rate_bps, scenario)
        late = f"; processes are up to {brief(found.late_ns)} late" if found.late_ns else ""
        tell(f"at {rate_bps / 1e6:.2f} Mb/s per port the lab takes {found.busy:.0%} of the machine{late}")
        if found.busy < SATURATED:
            return {"measured_at_bps": rate_bps, "busy_lab": round(found.busy, 3), "late_ns": found.late_ns}
        rate_bps //= 3
    told = f"{rate_bps * 3 / 1e6:.3f} Mb/s per port"
    raise RuntimeError(f"this machine is saturated even at {told}: too slow for this plan")


def two_digits(rate_bps: float) -> int:
    """A rate rounded down to its first two digits."""
    digits = 10 ** max(0, len(str(int(rate_bps))) - 2)
    return int(rate_bps // digits * digits)


def loaded(plan: Plan, rate_bps: int, scenario: Scenario) -> MeasuredLoad:
    """The machine with a scenario's workloads at this rate, by a run.

    Messages grow with a round trip, as in the scenario; the time of watching does not.
    """
    plan = plan.at_rate(rate_bps)
    phases = tuple(replace(phase, seconds=phase.seconds / plan.pace) for phase in PHASES)
    with Scratch("mrclab-calibration-") as folder:
        choices = Choices(transport("mrc", scenario.settings), plan, seed=0)
        spec = RunSpec(replace(under(scenario), plan=plan.name, phases=phases), choices)
        with HiccupMeter(folder / "late.jsonl", PERIOD_NS, ordinary=True):
            run = Run.open(made(spec, folder))
        late_ns = lateness(folder / "late.jsonl", run.phases["loaded"])
    return MeasuredLoad(lab_share(run, run.phases["loaded"]), late_ns)


def lab_share(run: Run, span: Span) -> float:
    """How much of what this process may have of the machine the agents and switches of a lab took in a span."""
    served = {line["node"]: line["pid"] for line in run.kind("process")}
    first = {served[node]: node for node in sorted(served, reverse=True)}
    taken: dict[str, list[tuple[int, int]]] = {}
    for line in run.within(span, "cpu"):
        node = line["node"]
        # Of agents and switches, whose sums are since the start; every host that a process serves writes the same ones.
        if "late_ns" in line and (node not in served or first[served[node]] == node):
            taken.setdefault(node, []).append((int(line["wall_ns"]), int(line["process_ns"])))
    return sum((own[-1][1] - own[0][1]) / max(1, own[-1][0] - own[0][0]) for own in taken.values()) / capacity()
