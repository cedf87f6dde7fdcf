"""Making one run of a sweep, in any process: run, judge, keep a row, leave no file."""

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from judging import Run
from judging.judge import judge, verdict_of
from running.document import spec_of
from running.runner import make_run
from studies.farm.engine import folder
from studies.sweeping import metric
from studies.sweeping.row import Row, broken, row_of
from studies.sweeping.task import Task, VersionError, checked

__all__ = ["kept", "perform"]


def perform(scratch: str, task: Task) -> Row:
    """One run and its row. VersionError when this process would make another run; other errors are in the row."""

    def judged(root: Path) -> Row:
        spec = spec_of(task.run)
        checked(task, spec.options())
        directory, checks = make_run(spec, root), spec.checks()
        run = Run.open(directory)
        verdict = judge(directory, checks, spec.scenario.story) if task.keep else verdict_of(run, checks)
        return row_of(task.key, task.seed, verdict, metric.measured(run))

    return kept(task, scratch, judged)


def kept(task: Task, scratch: str, make: Callable[[Path], Row]) -> Row:
    """The row that `make` returns when it is given a folder for the run, or what broke, with how long that took.

    The run's journals lie in a folder below `scratch` meanwhile, unless the task keeps them.
    """
    began_s = time.monotonic()
    try:
        with folder(scratch) as own:
            row = make(Path(task.keep or own))
    except VersionError:
        raise
    except Exception as error:  # of any kind: the other runs go on, and the row says why this one did not
        row = broken(task.key, task.seed, error)
    return replace(row, seconds=round(time.monotonic() - began_s, 3))
