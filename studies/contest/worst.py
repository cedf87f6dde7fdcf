"""The worst run of each algorithm in each scenario, made again whole and kept below the folder of the contest."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from shutil import rmtree

from judging.reports.report import REPLAY
from studies.sweeping.engine import RunEngine
from studies.sweeping.subject import Subject, whole
from studies.sweeping.task import Task

DIGITS = 16  # of a run's key in the name of its folder


def kept(folder: Path, task: Task) -> Path | None:
    """The folder of a run that was kept and judged; None for one that was not, or not wholly."""
    return next((verdict.parent for verdict in (folder / task.key[:DIGITS]).glob("*/*/verdict.json")), None)


def keep(folder: Path, wanted: Sequence[tuple[Subject, int]], engine: RunEngine, replay: Callable[[Path], None]) -> int:
    """Make the runs of these subjects and seeds that are not kept yet; returns how many could not be kept.

    `replay` writes the replay of a run into the run's folder. A run that was broken off is made again the next time.
    """
    tasks = {task.key: task for task in (subject.task(seed) for subject, seed in wanted)}
    for task in tasks.values():
        if kept(folder, task) is None:
            place = folder.resolve() / task.key[:DIGITS]
            rmtree(place, ignore_errors=True)  # what a broken-off run has left
            engine.submit(whole(task, str(place)))
    while engine.pending:
        engine.next()
    runs = [kept(folder, task) for task in tasks.values()]
    for run in runs:
        if run is not None and not (run / REPLAY).exists():
            replay(run)
    return runs.count(None)
