"""Runs on a Dask cluster: its scheduler hands out tasks, and gives those of a lost worker to another.

Dask is an extra (`cluster`), imported when it is asked for.
"""

from __future__ import annotations

import importlib
import threading
from contextlib import ExitStack
from typing import Any, Self

from studies.sweeping.address import ClusterAddress, ClusterError
from studies.sweeping.engine import WorkerDiedError
from studies.sweeping.perform import perform
from studies.sweeping.row import Row
from studies.sweeping.task import Choose, Task

WAIT_S = 30.0  # for the scheduler to answer, and for its first worker
_alone = threading.Lock()


class Cluster:
    """A running scheduler and its workers."""

    def __init__(self, address: ClusterAddress, choose: Choose, at_least: int = 1) -> None:
        """`at_least` so many workers are waited for."""
        self.died = 0
        self._at_least = at_least
        self._address = address
        self._choose = choose
        self._tasks: dict[Any, Task] = {}
        self._known: set[str] = set()
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        self._dask = dask()
        with ExitStack() as stack:
            place = self._address.text
            try:
                self._client = stack.enter_context(self._dask.Client(place, timeout=WAIT_S))
                self._client.wait_for_workers(self._at_least, timeout=WAIT_S)
                self._seen()
            except (OSError, TimeoutError, ValueError) as error:
                raise ClusterError(f"--cluster {place}: {error or f'no answer within {WAIT_S:g} s'}") from None
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._client.cancel(list(self._tasks), force=True)
        self._stack.close()

    @property
    def workers(self) -> int:
        """How many workers there are at this moment: they may come and go."""
        return max(1, len(self._seen()))

    def submit(self, task: Task) -> None:
        # Not pure: Dask would keep one result for equal arguments, and the sweep has its own store.
        future = self._client.submit(perform_alone, self._choose, task, pure=False, key=f"run-{task.key}")
        self._tasks[future] = task

    @property
    def pending(self) -> int:
        return len(self._tasks)

    def next(self) -> Row:
        done = self._dask.wait(list(self._tasks), return_when="FIRST_COMPLETED").done
        future = next(iter(done))
        task = self._tasks.pop(future)
        try:
            row = future.result()
        except self._dask.scheduler.KilledWorker:
            raise WorkerDiedError(task) from None
        finally:
            self._seen()
        assert isinstance(row, Row)
        return row

    def _seen(self) -> set[str]:
        """The workers that there are; counts those that are gone."""
        there = set(self._client.nthreads())
        self.died += len(self._known - there)
        self._known = there
        return there


def dask() -> Any:
    """Dask's `distributed`, whose types are not complete. ClusterError where the extra is not installed."""
    try:
        return importlib.import_module("distributed")
    except ImportError:
        raise ClusterError("--cluster needs Dask: use ./lab, or pip install --editable '.[cluster]'") from None


def perform_alone(choose: Choose, task: Task) -> Row:
    """In a worker: one run at a time, however many threads the worker has; its files lie where Dask cleans up."""
    with _alone:
        return perform(choose, dask().get_worker().local_directory, task)
