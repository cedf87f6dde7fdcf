"""An engine of processes on this machine."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, wait
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Self

from common.scratch import Scratch
from running.machine.workers import Workers
from studies.sweeping.engine import TRIES_MAX, WorkerDiedError
from studies.sweeping.perform import perform
from studies.sweeping.row import Row
from studies.sweeping.task import Choose, Task

SCRATCH = "scratch-"
Work = Callable[[Choose, str, Task], Row]


class Pool:
    """Processes that make runs. Their journals lie in `folder` meanwhile, from which leftovers are removed first.

    `work` makes one run from `choose`, the scratch folder and a task.
    """

    def __init__(self, workers: int, choose: Choose, folder: Path, work: Work = perform) -> None:
        self.workers = workers
        self.died = 0
        self._choose = choose
        self._work = work
        self._folder = folder
        self._tasks: dict[Future[Row], Task] = {}
        self._again: list[Task] = []
        self._tries: dict[str, int] = {}

    def __enter__(self) -> Self:
        self._scratch = Scratch(SCRATCH, self._folder)
        self._processes = Workers(self.workers, self._scratch.path / "runs")
        return self

    def __exit__(self, *_: object) -> None:
        self._processes.close()
        self._scratch.close()
        self._tasks.clear()

    def submit(self, task: Task) -> None:
        try:
            future = self._processes.submit(self._work, self._choose, str(self._processes.scratch), task)
        except BrokenProcessPool:
            self._again.append(task)
            return
        self._tasks[future] = task

    @property
    def pending(self) -> int:
        return len(self._tasks) + len(self._again)

    def next(self) -> Row:
        while True:
            self._resubmit()
            done, _ = wait(self._tasks, return_when=FIRST_COMPLETED)
            for future in done:
                if not isinstance(future.exception(), BrokenProcessPool):
                    del self._tasks[future]
                    return future.result()
            self._replace()

    def _replace(self) -> None:
        """A worker died, and the executor has given up all tasks: take another one.

        Nobody says whose run it was. Tasks are handed out in order, so that only the oldest can have been begun.
        """
        self.died += 1
        lost = list(self._tasks.values())
        self._tasks.clear()
        for task in lost[: self.workers]:
            self._tries[task.key] = self._tries.get(task.key, 0) + 1
            if self._tries[task.key] >= TRIES_MAX:
                raise WorkerDiedError(task)
        self._again = [*lost, *self._again]
        self._processes.restart()

    def _resubmit(self) -> None:
        again, self._again = self._again, []
        for task in again:
            self.submit(task)
