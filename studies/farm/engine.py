"""The engine of a farm: takes jobs, has them done, and gives results back as they come."""

import tempfile
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, Protocol, Self, TypeVar

from common.scratch import Scratch

TRIES_MAX = 3  # of a job whose process dies; a job that kills three processes is itself a finding


@dataclass(frozen=True, slots=True)
class Job:
    """A run to be made: its JSON (`running/document.py`). `title` names it for people, `key` is the job's alone.

    `keep` is the folder of runs for a run that is kept whole; "" for its result alone.
    """

    key: str
    run: Mapping[str, Any]
    title: str
    keep: str = field(default="", kw_only=True)

    @property
    def seed(self) -> int:
        return int(self.run["choices"]["seed"])


J = TypeVar("J", bound=Job)
J_contra = TypeVar("J_contra", bound=Job, contravariant=True)
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)
Work = Callable[[str, J], R]
"""Does a job, given the folder for its files; "" for a temporary one."""


def folder(scratch: str) -> AbstractContextManager[str | Path]:
    """A new folder for a job. The owner of `scratch` removes the folder if this process is killed; without `scratch`,
    the next job does."""
    return tempfile.TemporaryDirectory(prefix="run-", dir=scratch) if scratch else Scratch("mrclab-run-")


class WorkerDiedError(RuntimeError):
    """A job took the process that did it with it, as often as was tried."""

    def __init__(self, job: Job) -> None:
        super().__init__(f"{TRIES_MAX} workers died one after the other in: {job.title}")


class Engine(Protocol[J_contra, R_co]):
    """A context manager; on leaving, unfinished jobs are broken off."""

    @property
    def workers(self) -> int:
        """How many jobs may be done at the same time."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...

    def submit(self, job: J_contra) -> None:
        """Take a job; returns at once, but for an engine that does jobs in this process."""

    @property
    def pending(self) -> int:
        """How many jobs were taken whose results have not been given out."""

    def next(self) -> R_co:
        """The next result that is ready; waits for one. Errors of the work; WorkerDiedError."""

    @property
    def died(self) -> int:
        """How many workers died; the jobs that they had were given to others."""


class Inline(Generic[J, R]):
    """Does jobs one after the other, in this process, as real links need."""

    workers = 1
    died = 0

    def __init__(self, work: Work[J, R]) -> None:
        self._work = work
        self._jobs: list[J] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._jobs.clear()

    def submit(self, job: J) -> None:
        self._jobs.append(job)

    @property
    def pending(self) -> int:
        return len(self._jobs)

    def next(self) -> R:
        return self._work("", self._jobs.pop(0))
