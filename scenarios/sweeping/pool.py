"""A pool of processes that make runs, which end with whoever started them, even when that one is killed."""

from __future__ import annotations

import multiprocessing
import os
import shutil
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from functools import partial
from multiprocessing import connection
from pathlib import Path
from typing import Self

from scenarios.sweeping.engine import TRIES_MAX, WorkerDiedError
from scenarios.sweeping.perform import perform
from scenarios.sweeping.row import Row
from scenarios.sweeping.task import Choose, Task

SCRATCH = "scratch-"


class Pool:
    """`concurrent.futures` with processes that are spawned: nothing of this one's threads is in them.

    `folder` is where journals lie while a run is made; whatever is left of a sweep that was killed is removed from it.
    """

    def __init__(self, workers: int, choose: Choose, folder: Path) -> None:
        self.workers = workers
        self.died = 0
        self._choose = choose
        self._folder = folder
        self._scratch = folder / f"{SCRATCH}{os.getpid()}"
        self._tasks: dict[Future[Row], Task] = {}
        self._again: list[Task] = []
        self._tries: dict[str, int] = {}

    def __enter__(self) -> Self:
        remove_leftovers(self._folder)
        self._start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end()
        shutil.rmtree(self._scratch, ignore_errors=True)

    def submit(self, task: Task) -> None:
        # Workers start here. They must not hear a Ctrl-C, which a terminal sends to all: this process ends them.
        with unheard(signal.SIGINT):
            try:
                future = self._executor.submit(perform, self._choose, str(self._scratch), task)
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
        self._end()
        for task in lost[: self.workers]:
            self._tries[task.key] = self._tries.get(task.key, 0) + 1
            if self._tries[task.key] >= TRIES_MAX:
                raise WorkerDiedError(task)
        self._again = [*lost, *self._again]
        self._start()

    def _resubmit(self) -> None:
        again, self._again = self._again, []
        for task in again:
            self.submit(task)

    def _start(self) -> None:
        self._scratch.mkdir(parents=True, exist_ok=True)  # the workers of a broken pool have removed it
        context = multiprocessing.get_context("spawn")
        self._reader, self._life = context.Pipe(duplex=False)
        prepare = partial(begin, self._reader, str(self._scratch))
        self._executor = ProcessPoolExecutor(self.workers, mp_context=context, initializer=prepare)

    def _end(self) -> None:
        self._life.close()  # every worker sees it, and is gone at once
        self._executor.shutdown(wait=True, cancel_futures=True)
        self._reader.close()
        self._tasks.clear()


def begin(life: connection.Connection, scratch: str) -> None:
    """In a new worker: hear no Ctrl-C, and end with the sweep, whether that ends or is killed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=end_with, args=(life, scratch), daemon=True).start()


def end_with(life: connection.Connection, scratch: str) -> None:
    """Wait for the end of the pipe's other side, which only the sweep holds; then end this process and its files."""
    connection.wait([life])
    shutil.rmtree(scratch, ignore_errors=True)
    os._exit(0)


def remove_leftovers(folder: Path) -> None:
    """The scratch folders of sweeps that are no more, killed together with their workers."""
    for path in folder.glob(f"{SCRATCH}*"):
        owner = path.name.removeprefix(SCRATCH)
        if owner.isdigit() and not (alive(int(owner)) and int(owner) != os.getpid()):
            shutil.rmtree(path, ignore_errors=True)


def alive(process: int) -> bool:
    """Whether there is a process of this number, and not only its exit status."""
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in "ZX"


@contextmanager
def unheard(number: signal.Signals) -> Iterator[None]:
    """Hold a signal back; what comes meanwhile is delivered afterwards. Processes made meanwhile never get it."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [number])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
