"""Link rates that this machine can keep: measured once for each plan and workload, leaving a quarter of the CPU free.

A scenario's own workloads run at line rate for a few seconds, and the processor and its hiccups are watched. CPU time
grows with packets, so the rate that fills three quarters follows from one measurement, unless the machine was saturated
or late: then a slower measurement is made. It is kept in the user's cache, by machine, plan, workloads and Python.

Before each run the machine is looked at for a moment. Other work slows the lab; so do stalls, because at a lower rate a
round trip takes longer, and the same stall weighs less. The result is stored with the run.
"""

from __future__ import annotations

import json
import os
import platform
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from common import files
from common.scratch import Scratch
from judging import journal
from judging.measures import stalls
from judging.run import Run, Span
from judging.units import brief
from running.choices import Choices
from running.directory import RunDirectory
from running.launch import launch
from running.machine.hiccup import HiccupMeter
from running.machine.processor import jiffies, share
from running.preparation import prepare
from running.spec import RunSpec
from running.transport_choice import transport
from scenarios.scenario import Phase, Scenario, Setting, Workload
from topo.plan import Plan

BUSY_WANTED = 0.75
SATURATED = 0.92  # above this, more load would not show
IDLE_MAX = 0.40  # a machine busier than this without traffic has other work: its power for a lab is not known
IDLE_DRIFT = 0.10  # busier than this above the idle load at the measurement: other work slows the lab
SLOWER_MAX = 4  # a lab is slowed to a fourth of the measured rate at most, for other work
ATTEMPTS = 4
RATE_MAX_FACTOR = 1.5  # of the plan's own rate: a faster lab shows nothing more

PHASES = (Phase("idle", 1.5), Phase("warmup", 2.0), Phase("loaded", 4.0))
LOOK_S = 1.5
LOOK_AGAIN_S = 3.0
LOOK_PERIOD_NS = 2_000_000  # the lab's rate follows from the longest stall: the run's meter would note it 10 ms shorter
SPOILT_MAX = 0.10  # of the time under load: with more stalls too little is left to judge


@dataclass(frozen=True, slots=True)
class MeasuredLoad:
    """How busy the machine was without traffic and with it; the share of the time under load that stalls took; and the
    longest stall of a look."""

    idle: float
    loaded: float
    spoilt: float = 0.0
    longest_ns: int = 0


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
    machine = f"{platform.node()}, {os.cpu_count()} CPUs, Python {platform.python_version()}"
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


def store(path: Path, name: str, measured: Mapping[str, Any]) -> None:
    """Keep a measurement beside the others."""
    path.parent.mkdir(parents=True, exist_ok=True)
    files.write_json(path, {**load(path), name: dict(measured)})


def calibrated(plan: Plan, scenario: Scenario, tell: Callable[[str], None], again: bool = False) -> dict[str, Any]:
    """The measurement for a plan and a scenario's workloads, from the cache or made now, as the machine is at this
    moment. `port_rate_bps` is the rate of a NIC port."""
    path, name = cache_file(), key(plan, scenario)
    found = load(path).get(name)
    source = "cache"
    if found is None or again:
        tell("calibrating: how fast can this machine go with a quarter of its CPU free?")
        found = measure(plan, scenario, tell)
        if found["busy_idle"] > IDLE_MAX:
            busy_with = f"the machine is {found['busy_idle']:.0%} busy with other things"
            tell(f"{busy_with}: using the plan's rate, keeping nothing")
            return {**found, "port_rate_bps": plan.links.host_rate_bps, "source": "the plan: the machine is busy"}
        store(path, name, found)
        source = "measured now"
    return as_it_is(plan, {**found, "source": source}, look(plan.at_rate(found["port_rate_bps"]).base_rtt_ns), tell)


def as_it_is(plan: Plan, found: Mapping[str, Any], now: MeasuredLoad, tell: Callable[[str], None]) -> dict[str, Any]:
    """A measurement, slowed when the machine has more other work now than it had then, or stands still too often."""
    rate_bps, source = found["port_rate_bps"], found["source"]
    if now.idle > found["busy_idle"] + IDLE_DRIFT:
        traffic = found["busy_loaded"] - found["busy_idle"]
        slower_bps = fitting(found["measured_at_bps"], now.idle, now.idle + traffic, plan.links.host_rate_bps)
        rate_bps = max(min(slower_bps, rate_bps), rate_bps // SLOWER_MAX)
        told = f"{rate_bps / 1e6:.2g} instead of {found['port_rate_bps'] / 1e6:.2g} Mb/s per port"
        busy_with = f"{now.idle:.0%} busy with other things, {found['busy_idle']:.0%} when it was measured"
        tell(f"the machine is {busy_with}: {told}")
        source += ", slower for other work"
    if now.longest_ns > stalls.NOTHING * plan.at_rate(rate_bps).base_rtt_ns:
        told = f"the machine stands still for up to {brief(now.longest_ns)}"
        calm_bps = calm(plan, rate_bps, now.longest_ns, found["port_rate_bps"] // SLOWER_MAX)
        if calm_bps is None:
            tell(f"{told}: parts of the run may not count")
        else:
            tell(f"{told}: {calm_bps / 1e6:.2g} instead of {rate_bps / 1e6:.2g} Mb/s per port, for longer round trips")
            rate_bps, source = calm_bps, f"{source}, slower for stalls"
    seen = {"busy_now": round(now.idle, 3), "longest_stall_ns": now.longest_ns}
    return {**found, "port_rate_bps": rate_bps, "source": source, **seen}


def calm(plan: Plan, rate_bps: int, longest_ns: int, least_bps: int) -> int | None:
    """The rate below the given one at which a stall of that length is nothing beside a round trip (`stalls.NOTHING`),
    to two digits, or the least that is allowed where such a stall spoils nothing. None: there is no such rate."""
    round_trips = longest_ns / plan.at_rate(rate_bps).base_rtt_ns
    wanted_bps = max(two_digits(rate_bps * stalls.NOTHING / round_trips), least_bps)
    spoils = longest_ns >= stalls.SPOILS * plan.at_rate(wanted_bps).base_rtt_ns
    return None if spoils or wanted_bps >= rate_bps else wanted_bps


def by_hand(plan: Plan, scenario: Scenario, rate_bps: int, tell: Callable[[str], None]) -> dict[str, Any]:
    """A rate that the user has chosen, with a warning when by an earlier measurement this machine cannot keep it."""
    found = load(cache_file()).get(key(plan, scenario))
    if found is not None:
        traffic = (found["busy_loaded"] - found["busy_idle"]) * rate_bps / found["measured_at_bps"]
        expected = found["busy_idle"] + traffic
        if expected > SATURATED:
            fits = f"{found['port_rate_bps'] / 1e6:.2g} Mb/s leave a quarter of the processor free"
            tell(f"--rate {rate_bps / 1e6:g} wants {expected:.0%} of this machine: expect an unknown verdict; {fits}")
    return {"source": "--rate", "port_rate_bps": rate_bps}


def stretch(plan: Plan, rate_bps: int, tell: Callable[[str], None]) -> float:
    """How much longer than at the plan's own rate everything lasts on real links, for as many round trips; at least 1.

    With steps and phases of the same length at a lower rate, messages would be so short that hosts mostly wait for a
    round trip, and a repair of a few round trips would be much of a phase.
    """
    factor = round(plan.at_rate(rate_bps).base_rtt_ns / plan.base_rtt_ns, 2)
    if factor <= 1.0:
        return 1.0
    tell(f"at {rate_bps / 1e6:.2g} Mb/s a round trip takes {factor:g} times as long: so do steps, phases and faults")
    return factor


def look(base_rtt_ns: int) -> MeasuredLoad:
    """The machine at this moment, without a lab: how busy it is, and for how long at most it stands still.

    A look that finds any stall is followed by a longer one: the few that fall into a short look say little of how long
    they get. A stall that counts beside this round trip and does not come again is no reason for a slower lab: the
    judging leaves out what such a stall spoils.
    """
    now = glance(LOOK_S)
    if not now.longest_ns:
        return now
    then = glance(LOOK_AGAIN_S)
    idle = (now.idle * LOOK_S + then.idle * LOOK_AGAIN_S) / (LOOK_S + LOOK_AGAIN_S)
    again = then.longest_ns > stalls.NOTHING * base_rtt_ns
    return MeasuredLoad(idle, 0.0, longest_ns=max(now.longest_ns, then.longest_ns) if again else then.longest_ns)


def glance(seconds: float) -> MeasuredLoad:
    """What so many seconds show."""
    before = jiffies()
    with Scratch("mrclab-look-") as folder:
        meter = folder / "meter.jsonl"
        with HiccupMeter(meter, LOOK_PERIOD_NS):
            time.sleep(seconds)
        late_ns = [int(line["late_ns"]) for line in journal.read_file(meter) if line["kind"] == "stall"]
    return MeasuredLoad(share(before, jiffies()), 0.0, longest_ns=max(late_ns, default=0))


def measure(plan: Plan, scenario: Scenario, tell: Callable[[str], None]) -> dict[str, Any]:
    """Measure, slower while the machine is saturated or late. RuntimeError when it is saturated even then."""
    rate_bps = plan.links.host_rate_bps
    for _ in range(ATTEMPTS):
        found = busy(plan, rate_bps, scenario)
        late = f", and stalls spoilt {found.spoilt:.0%} of the time" if found.spoilt else ""
        told = f"the machine is {found.loaded:.0%} busy ({found.idle:.0%} without traffic){late}"
        tell(f"at {rate_bps / 1e6:.2f} Mb/s per port {told}")
        if (found.loaded < SATURATED and found.spoilt <= SPOILT_MAX) or found.idle > IDLE_MAX:
            break
        rate_bps //= 2
    else:
        rate_bps *= 2
        if found.loaded >= SATURATED:
            raise RuntimeError(
                f"this machine is saturated even at {rate_bps / 1e6:.3f} Mb/s per port: too slow for this plan"
            )
        tell("the machine is late at any rate: parts of every run will not count")
    fits = fitting(rate_bps, found.idle, found.loaded, plan.links.host_rate_bps)
    return {
        # Lateness does not follow from load: stay well below a rate at which the machine was late.
        "port_rate_bps": fits if rate_bps == plan.links.host_rate_bps else min(fits, rate_bps * 3 // 2),
        "measured_at_bps": rate_bps,
        "busy_idle": round(found.idle, 3),
        "busy_loaded": round(found.loaded, 3),
        "spoilt": round(found.spoilt, 3),
    }


def fitting(rate_bps: int, idle: float, loaded: float, usual_bps: int) -> int:
    """The rate at which CPU use reaches BUSY_WANTED, to two digits, and at most RATE_MAX_FACTOR times the usual."""
    traffic = max(loaded - idle, 0.01)  # less than that is below what a few seconds can measure
    return two_digits(min(rate_bps * max(BUSY_WANTED - idle, 0.01) / traffic, usual_bps * RATE_MAX_FACTOR))


def two_digits(rate_bps: float) -> int:
    """A rate rounded down to its first two digits."""
    digits = 10 ** max(0, len(str(int(rate_bps))) - 2)
    return int(rate_bps // digits * digits)


def busy(plan: Plan, rate_bps: int, scenario: Scenario) -> MeasuredLoad:
    """The machine's load without traffic and with a scenario's workloads at this rate, measured by a run.

    Messages grow with a round trip, as in the scenario; the time of watching does not.
    """
    factor = stretch(plan, rate_bps, tell=lambda event: None)
    plan = plan.at_rate(rate_bps)
    phases = tuple(replace(phase, seconds=phase.seconds / factor) for phase in PHASES)
    with Scratch("mrclab-calibration-") as folder:
        directory = RunDirectory.create(folder, "calibration", 0)
        choices = Choices(transport("mrc", scenario.settings), plan, seed=0, stretch=factor)
        spec = RunSpec(replace(under(scenario), plan=plan.name, phases=phases), choices)
        launch(prepare(spec).runner(directory))
        run = Run.open(directory.path)
    loaded = run.phases["loaded"]
    spoilt = min(1.0, stalls.allowance_ns(run, loaded) / loaded.length_ns)
    return MeasuredLoad(mean_busy(run, run.phases["idle"]), mean_busy(run, loaded), spoilt)


def mean_busy(run: Run, span: Span) -> float:
    """The mean busy share over the samples whose whole interval lies in the span."""
    shares = [
        float(line["host_busy"])
        for line in run.within(span, "cpu")
        if line["t_ns"] - int(line["wall_ns"]) >= span.start_ns
    ]
    if not shares:
        raise RuntimeError(f"no CPU sample fell into phase {span.name!r}: the machine stood still")
    return sum(shares) / len(shares)
