"""The engine of a sweep: takes tasks, makes the runs, and gives rows back as they come."""

from __future__ import annotations

from typing import Protocol, Self

from common.quoting import command
from studies.sweeping.perform import Perform
from studies.sweeping.row import Row
from studies.sweeping.task import Task

TRIES_MAX = 3  # of a run whose process dies; a run that kills three processes is itself a finding


class WorkerDiedError(RuntimeError):
    """A run took the process that made it with it, as often as was tried."""

    def __init__(self, task: Task) -> None:
        words = command("run", *task.words, "--seed", task.seed)
        super().__init__(f"{TRIES_MAX} workers died one after the other in: {words}")


class RunEngine(Protocol):
    """A context manager; on leaving, unfinished runs are broken off."""

    @property
    def workers(self) -> int:
        """How many runs may be made at the same time."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...

    def submit(self, task: Task) -> None:
        """Take a task; returns at once, but for an engine that makes runs in this process."""

    @property
    def pending(self) -> int:
        """How many tasks were taken whose rows have not been given out."""

    def next(self) -> Row:
        """The next row that is ready; waits for one. VersionError from a worker; RuntimeError without any."""

    @property
    def died(self) -> int:
        """How many workers died; the runs that they were making were given to others."""


class Inline:
    """Runs one after the other, in this process, as real links need."""

    workers = 1
    died = 0

    def __init__(self, perform: Perform) -> None:
        self._perform = perform
        self._tasks: list[Task] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._tasks.clear()

    def submit(self, task: Task) -> None:
        self._tasks.append(task)

    @property
    def pending(self) -> int:
        return len(self._tasks)

    def next(self) -> Row:
        return self._perform(self._tasks.pop(0))
