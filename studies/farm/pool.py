"""Jobs in processes on this machine."""

from concurrent.futures import FIRST_COMPLETED, Future, wait
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Generic, Self

from common.scratch import Scratch
from running.workers import Workers
from studies.farm.engine import TRIES_MAX, J, R, Work, WorkerDiedError

SCRATCH, ALONE = "scratch-", "mrclab-farm-"
"""The names of scratch folders begin so: in a folder that was given, and among the temporary files."""


class Pool(Generic[J, R]):
    """Processes that do jobs. Their files lie in `folder`, from which leftovers are removed first; without `folder`,
    among the temporary files."""

    def __init__(self, workers: int, work: Work[J, R], folder: Path | None = None) -> None:
        self.workers = workers
        self.died = 0
        self._work = work
        self._folder = folder
        self._jobs: dict[Future[R], J] = {}
        self._again: list[J] = []
        self._tries: dict[str, int] = {}

    def __enter__(self) -> Self:
        self._scratch = Scratch(SCRATCH, self._folder) if self._folder else Scratch(ALONE)
        self._processes = Workers(self.workers, self._scratch.path / "runs")
        return self

    def __exit__(self, *_: object) -> None:
        self._processes.close()
        self._scratch.close()
        self._jobs.clear()

    def submit(self, job: J) -> None:
        try:
            future = self._processes.submit(self._work, str(self._processes.scratch), job)
        except BrokenProcessPool:
            self._again.append(job)
            return
        self._jobs[future] = job

    @property
    def pending(self) -> int:
        return len(self._jobs) + len(self._again)

    def next(self) -> R:
        while True:
            self._resubmit()
            done, _ = wait(self._jobs, return_when=FIRST_COMPLETED)
            for future in done:
                if not isinstance(future.exception(), BrokenProcessPool):
                    del self._jobs[future]
                    return future.result()
            self._replace()

    def _replace(self) -> None:
        """A worker died, and the executor has given up all jobs: take another one.

        Nobody says whose job it was. Jobs are handed out in order, so that only the oldest can have been begun.
        """
        self.died += 1
        lost = list(self._jobs.values())
        self._jobs.clear()
        for job in lost[: self.workers]:
            self._tries[job.key] = self._tries.get(job.key, 0) + 1
            if self._tries[job.key] >= TRIES_MAX:
                raise WorkerDiedError(job)
        self._again = [*lost, *self._again]
        self._processes.restart()

    def _resubmit(self) -> None:
        again, self._again = self._again, []
        for job in again:
            self.submit(job)
