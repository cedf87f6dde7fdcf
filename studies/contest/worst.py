"""The worst run of each algorithm in each scenario, made again whole and kept below the folder of the contest."""

from collections.abc import Callable, Sequence
from pathlib import Path
from shutil import rmtree

from common.plain_file import followed
from judging.reports.report import REPLAY
from studies.farm.engine import Engine
from studies.sweeping.row import Row
from studies.sweeping.subject import Subject, with_journals
from studies.sweeping.task import Task

__all__ = ["keep", "kept"]

DIGITS = 16  # of a run's key in the name of its folder


def kept(folder: Path, task: Task) -> Path | None:
    """The folder of a run that was kept and judged; None for one that was not, or not wholly."""
    return next((verdict.parent for verdict in (folder / task.key[:DIGITS]).glob("*/*/verdict.json")), None)


def keep(
    folder: Path, wanted: Sequence[tuple[Subject, int]], engine: Engine[Task, Row], replay: Callable[[Path], None]
) -> list[str]:
    """Make the runs of these subjects and seeds that are not kept yet. Returns why runs could not be kept, each with
    its command.

    `replay` writes the replay of a run into the run's folder. A run that was broken off is made again the next time.
    """
    tasks = {task.key: task for task in (subject.task(seed) for subject, seed in wanted)}
    for task in tasks.values():
        if kept(folder, task) is None:
            place = followed(folder) / task.key[:DIGITS]
            rmtree(place, ignore_errors=True)  # what a broken-off run has left
            engine.submit(with_journals(task, str(place)))
    broken: dict[str, str] = {}
    while engine.pending:
        row = engine.next()
        broken[row.key] = row.error
    for task in tasks.values():
        run = kept(folder, task)
        if run is not None and not (run / REPLAY).exists():
            replay(run)
    return [f"{tasks[key].title}: {why}" for key, why in broken.items() if why]
