"""Making one run of a sweep, in any process: run, judge, keep a row, leave no file."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path

from common.scratch import Scratch
from judging.judge import judge, verdict_of
from judging.run import Run
from running.directory import RunDirectory
from running.launch import launch
from running.preparation import prepare
from running.spec import RunSpec
from studies.sweeping import metric
from studies.sweeping.row import Row, broken, row_of
from studies.sweeping.task import Choose, Task, VersionError, checked

Perform = Callable[[Task], Row]


def perform(choose: Choose, scratch: str, task: Task) -> Row:
    """One run and its row. VersionError when this process would make another run; other errors are in the row."""

    def judged(root: Path) -> Row:
        spec = choose([*task.words, "--seed", str(task.seed)])
        checked(task, spec.options())
        directory, checks = made(spec, root), spec.checks()
        run = Run.open(directory)
        verdict = judge(directory, checks, spec.scenario.story) if task.keep else verdict_of(run, checks)
        return row_of(task.key, task.seed, verdict, metric.measured(run))

    return kept(task, scratch, judged)


def kept(task: Task, scratch: str, make: Callable[[Path], Row]) -> Row:
    """The row that `make` returns when it is given a folder for the run, or what broke, with how long that took.

    The run's journals lie in a folder below `scratch` meanwhile, unless the task keeps them. Without `scratch` they lie
    among the temporary files, where the next run removes the folder of a run that was killed.
    """
    began_s = time.monotonic()
    try:
        with _folder(scratch) as folder:
            row = make(Path(task.keep or folder))
    except VersionError:
        raise
    except Exception as error:  # of any kind: the other runs go on, and the row says why this one did not
        row = broken(task.key, task.seed, error)
    return replace(row, seconds=round(time.monotonic() - began_s, 3))


def _folder(scratch: str) -> AbstractContextManager[str | Path]:
    """A new folder for a run. The owner of `scratch` removes it if this process is killed."""
    return tempfile.TemporaryDirectory(prefix="run-", dir=scratch) if scratch else Scratch("mrclab-run-")


def made(spec: RunSpec, root: Path) -> Path:
    """The folder, below `root`, of the run that was made. ValueError for a run that cannot be made here."""
    prepared = prepare(spec)
    directory = RunDirectory.create(root, spec.scenario.name, spec.seed)
    launch(prepared.runner(directory))
    return directory.path
