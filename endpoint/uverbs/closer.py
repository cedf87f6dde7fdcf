"""Closes what programs handed over, in a thread: a close can last as long as its maker likes (SO_LINGER, FUSE)."""

from __future__ import annotations

import os
import threading
from contextlib import suppress
from queue import SimpleQueue


class Closer:
    """`backlog` descriptors are handed over and not yet closed."""

    def __init__(self) -> None:
        self._queue: SimpleQueue[int] = SimpleQueue()
        self._given = self._closed = 0
        threading.Thread(target=self._run, name="uverbs closer", daemon=True).start()

    @property
    def backlog(self) -> int:
        return self._given - self._closed

    def close(self, descriptor: int) -> None:
        """Close it some time."""
        self._given += 1
        self._queue.put(descriptor)

    def end(self) -> None:
        """The thread ends once everything is closed."""
        self._queue.put(-1)

    def _run(self) -> None:
        while (descriptor := self._queue.get()) >= 0:
            with suppress(OSError):  # the descriptor is closed all the same: an error is that of an earlier write
                os.close(descriptor)
            self._closed += 1
