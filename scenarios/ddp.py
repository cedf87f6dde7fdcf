"""An unmodified PyTorch script, in ordinary processes, under flapping links, crashing spines and a lost NIC port."""

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

from judging import jobs
from judging.checks import Check
from scenarios import job
from scenarios.scenario import Program, Scenario, Setting, TimedFault, Workload, phases

__all__ = ["torch_python"]

ROOT = Path(__file__).resolve().parents[1]
SCRIPT = ROOT / "mrclab" / "torch" / "examples" / "ddp.py"
INTERPRETER = "MRCLAB_TORCH_PYTHON"
"""Names the Python that has PyTorch; by default the first of the lab's own, `python3` on PATH, and Debian's."""
START_S_MAX = 30.0  # for as many PyTorchs to be imported as there are hosts, on two cores
START_SHARE = 0.4  # of the phase with the faults, where that is shorter
STEP_SHARE = 0.95  # of what a step of numpy's job takes at most: its collectives overlap with computing
FAULTS_SHARE = 0.75  # of the time that is left: all faults begin while the job trains
WEIGHTS_BYTES = job.WEIGHTS_BYTES  # 64 features, 512 hidden, 10 classes


class NoTorchError(ValueError):
    """No Python here has PyTorch; the message says how to get one."""


@cache
def torch_python() -> str:
    """The Python that runs the script. Raises `NoTorchError`."""
    named = os.environ.get(INTERPRETER)
    candidates = [named] if named else [sys.executable, shutil.which("python3"), "/usr/bin/python3"]
    look = "import importlib.util, sys; sys.exit(importlib.util.find_spec('torch') is None)"
    for python in filter(None, candidates):
        try:
            if subprocess.run([python, "-P", "-c", look], check=False, capture_output=True).returncode == 0:
                return python
        except OSError:
            continue
    tried = f"{INTERPRETER}={named}" if named else ", ".join(filter(None, candidates))
    raise NoTorchError(
        f"the scenario ddp needs a Python with PyTorch (got none from {tried}): apt-get install python3-torch, or name"
        f" one in {INTERPRETER}"
    )


def start_s(setting: Setting) -> float:
    """When the ranks meet, in seconds of lab time into either phase."""
    return min(START_S_MAX, START_SHARE * setting.phases["faults"])


def steps(setting: Setting) -> int:
    """As many as fit into the shorter of the two phases."""
    return job.steps(setting, start_s(setting), STEP_SHARE)


def programs(setting: Setting) -> Sequence[Program]:
    """The same script twice: without faults and with them."""
    count = setting.plan.host_count
    like = Workload("all_reduce", {"size": WEIGHTS_BYTES, "rounds": 0})
    made = []
    for name, phase in (("clean", "reference"), ("faulty", "faults")):
        settings = ["RANK={rank}", f"WORLD_SIZE={count}", "MRCLAB_RANKS={ranks}", "MRCLAB_MEET={folder}/meet"]
        settings += [
            "MRCLAB_JOURNAL={journal}",
            f"MRCLAB_JOB={name}",
            f"MRCLAB_START_S={start_s(setting) * setting.pace:g}",
            f"PYTHONPATH={ROOT}",
            "PYTHONSAFEPATH=1",
        ]
        words = [torch_python(), str(SCRIPT), "--steps", str(steps(setting)), "--seed", str(setting.seed)]
        # Behind switches and agents: eight imports of PyTorch would keep both processors from them for seconds.
        made.append(Program(name, ("nice", "env", *settings, *words), phase=phase, like=like))
    return made


def judge(setting: Setting) -> Sequence[Check]:
    """Those of `job`, and that the script was at work when the first fault came."""
    clean, standard, *rest = job.checks_of(setting, timeline(setting), steps(setting))
    return [clean, standard, jobs.under_way("faulty"), *rest]


def timeline(setting: Setting) -> list[TimedFault]:
    """The faults of `job`, from the moment on at which the ranks meet."""
    start = start_s(setting)
    span_s = FAULTS_SHARE * (setting.phases["faults"] - start)
    shorter = replace(setting, phases={**setting.phases, "faults": span_s})
    return [replace(fault, at_s=fault.at_s + start) for fault in job.timeline(shorter)]


SCENARIO = Scenario(
    name="ddp",
    title="A PyTorch DDP script is the same to the last bit, faults or no faults",
    description=(
        "An unmodified script, one process per host, trains a small network by DistributedDataParallel: PyTorch's own "
        "buckets and hooks, summed by the backend mrc over queue pairs of the lab's NICs. It runs twice from the same "
        "seeds: first on a sound fabric, then while links flap, spines crash and a host loses one port of its NIC. "
        "After every step of the optimizer the weights of all ranks are compared, bit for bit, with the first run's."
    ),
    plan="lab",
    workloads=lambda setting: (),
    programs=programs,
    timeline=timeline,
    checks=judge,
    phases=phases(warmup_s=1.0, reference_s=70.0, faults_s=75.0),
    short=phases(warmup_s=1.0, reference_s=28.0, faults_s=30.0, heal_s=1.5),
    paper=job.SCENARIO.paper,
)
