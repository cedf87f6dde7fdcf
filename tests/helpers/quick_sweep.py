"""An experiment that takes a fraction of a second, a sweep of it, and processes that do as a test wants."""

import os
import signal
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from cli.choosing import chosen
from studies.farm.engine import Inline
from studies.sweeping.perform import perform
from studies.sweeping.row import Row
from studies.sweeping.subject import Subject, subject
from studies.sweeping.task import Task
from studies.sweeping.variant import variants

QUICK = '''"""Two hosts, one write after the other, a link that flaps."""
from judging import checks
from scenarios.scenario import Scenario, TimedFault, Workload, phases


def flap(setting):
    rng = setting.new_rng()
    return [TimedFault(rng.uniform(0.05, 0.3), "link-down", f"p0l0-p0s{rng.randrange(2)}", 0.2)]


SCENARIO = Scenario(
    name="quick", title="A flap is survived", description="Short.", plan="tiny",
    workloads=lambda s: [Workload("write_bw", {"size": 16384, "depth": 2, "rate_bps": 400_000}, ranks=("h0", "h3"))],
    timeline=flap,
    checks=lambda s: [checks.bytes_right(), checks.messages_complete(), checks.no_qp_error()],
    phases=phases(warmup_s=0.2, reference_s=0.6, faults_s=0.6, heal_s=0.4),
)
'''
OTHERS = {"world": "simulated", "time": 1.0, "payload": "counted"}  # as `./lab sweep` has it
DEADLY_SEED = 3
T = TypeVar("T", bound=Task)


def write_quick(folder: Path) -> Path:
    """The scenario's file."""
    path = folder / "quick.py"
    path.write_text(QUICK)
    return path


def quick_subjects(path: Path, transports: Sequence[str] = ("mrc", "roce")) -> list[Subject]:
    """The scenario under these transports."""
    return [subject(one, chosen, 1) for one in variants([str(path)], transports, [], [], [], OTHERS)]


def fake(task: Task) -> Row:
    """A row at once, which follows from the task alone."""
    verdict = "false" if task.seed % 7 == 0 else "true"
    metrics = {"goodput_kept": 1.0 - (task.seed * 37 % 101) / 1000, "p99_step": 1.0 + task.seed % 5}
    return Row(task.key, task.seed, verdict, {"made up": verdict == "true"}, {}, metrics, "", time.monotonic())


def inline(work: Callable[[T], Row]) -> Inline[T, Row]:
    """An engine for made-up work in this process."""
    return Inline(lambda scratch, task: work(task))


def perform_and_die_once(scratch: str, task: Task) -> Row:
    """Kills its own process the first time that it sees the deadly seed; a file beside the scenario's remembers."""
    mark = Path(task.run["choices"]["source"]).with_suffix(".died")
    if task.seed == DEADLY_SEED and not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return perform(scratch, task)


def perform_and_always_die(scratch: str, task: Task) -> Row:
    """Kills its own process whenever it sees the deadly seed."""
    if task.seed == DEADLY_SEED:
        os.kill(os.getpid(), signal.SIGKILL)
    return perform(scratch, task)
