"""Link rates that this machine can keep: measured once for each plan, leaving a quarter of the CPU free.

All hosts reduce at line rate for a few seconds, and the processor is watched. CPU time grows with packets,
so the rate that fills three quarters follows from one measurement, unless the machine was saturated: then a slower
one is made. The result is kept in the user's cache, by machine, plan and Python, and stored with every run.
"""

from __future__ import annotations

import json
import os
import platform
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from common import files
from scenarios.judging.run import Run, Span
from scenarios.running.directory import RunDirectory
from scenarios.running.processor import ProcessorSampler
from scenarios.running.runner import Choices, Runner
from scenarios.running.transport import transport
from scenarios.scenario import Phase, Scenario, Setting, Workload
from scenarios.training import all_reduce_bytes
from scenarios.worlds.emulated import EmulatedWorld
from topo.plan import Plan

BUSY_WANTED = 0.75
SATURATED = 0.92  # above this, more load would not show
IDLE_MAX = 0.40  # a machine busier than this without traffic has other work: what it can do for us is not known
ATTEMPTS = 4
RATE_MAX_FACTOR = 1.5  # of the plan's own rate: a faster lab is not a better one

SCENARIO = Scenario(
    name="calibration",
    title="Calibration",
    description="All hosts reduce at line rate while the processor is watched.",
    plan="lab",
    workloads=lambda setting: [reduction(setting)],
    timeline=lambda setting: [],
    checks=lambda setting: [],
    phases=(Phase("idle", 1.5), Phase("warmup", 2.0), Phase("loaded", 4.0)),
)


def reduction(setting: Setting) -> Workload:
    """All-reduce without a pause: of all workloads it costs the most CPU a byte, and most scenarios run it."""
    return Workload("all_reduce", {"size": all_reduce_bytes(setting), "rounds": 0}, phase="warmup")


def cache_file() -> Path:
    """Where measurements are kept: in the user's cache."""
    return files.cache_directory() / "calibration.json"


def key(plan: Plan) -> str:
    """What a measurement holds for. A plan's sizes count, not its name."""
    shape = f"{plan.planes}x{plan.leaves}x{plan.spines}x{plan.hosts_per_leaf}"
    sizes = f"{plan.packets.pmtu_bytes}@{plan.links.host_rate_bps}"
    machine = f"{platform.node()}, {os.cpu_count()} CPUs, Python {platform.python_version()}"
    return f"{shape}, {sizes}, {plan.switch}, {machine}"


def load(path: Path) -> dict[str, Any]:
    """All measurements; a file that cannot be read counts as empty and is written anew."""
    try:
        found = json.loads(path.read_text())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def store(path: Path, plan: Plan, measured: Mapping[str, Any]) -> None:
    """Keep a measurement beside the others."""
    path.parent.mkdir(parents=True, exist_ok=True)
    files.write_json(path, {**load(path), key(plan): dict(measured)})


def calibrated(plan: Plan, tell: Callable[[str], None], again: bool = False) -> dict[str, Any]:
    """The measurement for a plan, from the cache or made now. `port_rate_bps` is the rate of a NIC port."""
    path = cache_file()
    found = load(path).get(key(plan))
    if found is not None and not again:
        return {**found, "source": "cache"}
    tell("calibrating: how fast can this machine go with a quarter of its CPU free?")
    measured = measure(plan, tell)
    if measured["busy_idle"] > IDLE_MAX:
        tell(
            f"the machine is {measured['busy_idle']:.0%} busy with other things: using the plan's rate, keeping nothing"
        )
        return {**measured, "port_rate_bps": plan.links.host_rate_bps, "source": "the plan: the machine is busy"}
    store(path, plan, measured)
    return {**measured, "source": "measured now"}


def measure(plan: Plan, tell: Callable[[str], None]) -> dict[str, Any]:
    """Measure, slower while the machine is saturated. RuntimeError when it is even then."""
    rate_bps = plan.links.host_rate_bps
    for _ in range(ATTEMPTS):
        idle, loaded = busy(plan.at_rate(rate_bps))
        tell(f"at {rate_bps / 1e6:.2f} Mb/s a port the machine is {loaded:.0%} busy ({idle:.0%} without traffic)")
        if loaded < SATURATED or idle > IDLE_MAX:
            break
        rate_bps //= 2
    else:
        raise RuntimeError(
            f"this machine is saturated even at {rate_bps / 1e6:.3f} Mb/s a port: too slow for this plan"
        )
    return {
        "port_rate_bps": fitting(rate_bps, idle, loaded, plan.links.host_rate_bps),
        "measured_at_bps": rate_bps,
        "busy_idle": round(idle, 3),
        "busy_loaded": round(loaded, 3),
    }


def fitting(rate_bps: int, idle: float, loaded: float, usual_bps: int) -> int:
    """The rate at which CPU use reaches BUSY_WANTED, to two digits, and at most RATE_MAX_FACTOR times the usual."""
    traffic = max(loaded - idle, 0.01)  # less than that is below what a few seconds can measure
    wanted = min(rate_bps * max(BUSY_WANTED - idle, 0.01) / traffic, usual_bps * RATE_MAX_FACTOR)
    digits = 10 ** max(0, len(str(int(wanted))) - 2)
    return int(wanted // digits * digits)


def busy(plan: Plan) -> tuple[float, float]:
    """Busy share of the machine without traffic and with all hosts at line rate, from a run of its own."""
    with tempfile.TemporaryDirectory(prefix="mrclab-calibration-") as folder:
        directory = RunDirectory.create(Path(folder), "calibration", 0)
        scenario = replace(SCENARIO, plan=plan.name)
        choices = Choices(transport("mrc"), plan, seed=0)
        runner = Runner(scenario, choices, directory, tell=lambda event: None)
        runner.run(partial(EmulatedWorld, plan, choices.transport, 0, directory, runner.tell), ProcessorSampler)
        run = Run.open(directory.path)
    return mean_busy(run, run.phases["idle"]), mean_busy(run, run.phases["loaded"])


def mean_busy(run: Run, span: Span) -> float:
    """Over the samples whose whole interval lies in the span."""
    shares = [
        float(line["host_busy"])
        for line in run.within(span, "cpu")
        if line["t_ns"] - int(line["wall_ns"]) >= span.start_ns
    ]
    if not shares:
        raise RuntimeError(f"no CPU sample fell into phase {span.name!r}: the machine stood still")
    return sum(shares) / len(shares)
