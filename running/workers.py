"""Processes that work for this one and end with it, even when it is killed."""

import multiprocessing
import os
import shutil
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from multiprocessing import connection
from pathlib import Path
from typing import ParamSpec, TypeVar

from common.locks import LockedError, take
from common.scratch import remove_if_abandoned

__all__ = ["WORKERS_MAX", "Workers"]

P = ParamSpec("P")
T = TypeVar("T")
WORKERS_MAX = 256
TERMINAL = signal.SIGINT, signal.SIGHUP, signal.SIGQUIT
"""Its signals: Ctrl-C, a closed window, and Ctrl-\\."""
OWNER_IS_GONE = signal.SIGUSR1  # from a worker's watching thread to its main thread


class Workers:
    """`concurrent.futures` with processes that are spawned: nothing of this one's threads is in them.

    `scratch` is a folder for what they write meanwhile; nothing of it is left when they are ended or this process dies,
    nor of the `common.scratch.Scratch` around it when this process dies.
    After BrokenProcessPool, `restart`.
    """

    def __init__(self, number: int, scratch: Path) -> None:
        self.number = number
        self.scratch = scratch
        self._start()

    def submit(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """BrokenProcessPool when a worker has died."""
        # Workers start here. They must not hear what a terminal sends to all: this process ends them.
        with unheard(*TERMINAL):
            return self._executor.submit(function, *args, **kwargs)

    def restart(self) -> None:
        """New workers; the tasks of the old ones are given up."""
        self._end()
        self._start()

    def close(self) -> None:
        """End all workers at once, in the middle of their work."""
        self._end()
        shutil.rmtree(self.scratch, ignore_errors=True)

    def _start(self) -> None:
        self.scratch.mkdir(parents=True, exist_ok=True)  # dying workers have removed it
        context = multiprocessing.get_context("spawn")
        self._reader, self._life = context.Pipe(duplex=False)
        prepare = partial(begin, self._reader, str(self.scratch))
        self._executor = ProcessPoolExecutor(self.number, mp_context=context, initializer=prepare)

    def _end(self) -> None:
        self._life.close()  # every worker sees it, and is gone at once
        self._executor.shutdown(wait=True, cancel_futures=True)
        self._reader.close()


def begin(life: connection.Connection, scratch: str) -> None:
    """In a new worker: hear no terminal, and end with the owner, whether that ends or is killed."""
    for number in TERMINAL:
        signal.signal(number, signal.SIG_IGN)
    signal.signal(OWNER_IS_GONE, lambda number, frame: end(scratch))
    threading.Thread(target=wait_for_end, args=(life,), daemon=True).start()


def wait_for_end(life: connection.Connection) -> None:
    """Wait for the end of the pipe's other side, which only the owner holds; then tell the main thread."""
    connection.wait([life])
    signal.pthread_kill(threading.main_thread().ident or 0, OWNER_IS_GONE)


def end(scratch: str) -> None:
    """End this process and the files of all workers. Only the main thread, which writes them, may call this.

    From any other thread a task would go on writing behind the removal. Workers come here one after the other; the last
    one finds no other that writes, and removes all that is left.
    """
    folder = Path(scratch).parent
    with suppress(OSError, LockedError):  # another worker has removed the folder, or does not end
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)  # its lock goes when this process ends
        take(handle, f"the lock of {folder}")
        shutil.rmtree(scratch, ignore_errors=True)
        remove_if_abandoned(folder)
    os._exit(0)


@contextmanager
def unheard(*numbers: signal.Signals) -> Iterator[None]:
    """Hold signals back and deliver them afterwards. Processes made meanwhile never get them."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, numbers)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
