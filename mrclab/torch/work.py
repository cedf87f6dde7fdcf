"""Work: a collective under way, as PyTorch's programs and its C++ wait for it."""

from __future__ import annotations

import contextlib
import threading
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist

from mrclab.errors import JobFailedError
from mrclab.mesh.engine import MeshEngine, MeshTask, Scope, SteppedEngine
from mrclab.mesh.mesh import Step

_BASE: Any = getattr(dist, "Work", None) or dist._Work  # its name until 1.13


class Work(_BASE):
    """The result is the list of tensors that the collective writes."""

    def __init__(
        self,
        engine: MeshEngine,
        name: str,
        step: Step,
        result: Any,
        timeout_s: float | None,
        scope: Scope | None = None,
    ) -> None:
        super().__init__()
        self._engine = engine
        self._result = result
        self._lock = threading.Lock()
        self._ending: Any = None  # a future that is to be completed
        self._future: Any = None
        self._task: MeshTask = engine.start(name, step, timeout_s, self._ended, scope)

    def _ended(self, _: BaseException | None) -> None:
        with self._lock:
            ending, self._ending = self._ending, None
        if ending is not None:  # what follows may take long, or wait for other collectives: it has its own thread
            threading.Thread(target=ending.set_result, args=(None,), name="mrclab continuation", daemon=True).start()

    def _outcome(self, _: Any) -> Any:
        if self._task.failure is not None:
            raise JobFailedError(str(self._task.failure))
        return self._result

    def wait(self, timeout: timedelta | None = None) -> bool:
        """Until it has ended. Raises `JobFailedError`, or TimeoutError."""
        seconds = None if timeout is None or timeout.total_seconds() <= 0 else timeout.total_seconds()
        self._engine.finish(self._task, seconds)
        return True

    def is_completed(self) -> bool:
        return self._task.finished.is_set()

    def is_success(self) -> bool:
        return self.is_completed() and self._task.failure is None

    def exception(self) -> Any:
        return self._task.failure

    def result(self) -> Any:
        return self._result

    def get_future(self) -> Any:
        """PyTorch's C++ waits for a future without asking this class; in virtual time nothing would move then.

        An exception that is set on a future reaches Python alone: PyTorch's C++ would take it for the result. An
        exception that a callback raises fails the future that `then` returns, for both.
        """
        if isinstance(self._engine, SteppedEngine):
            with contextlib.suppress(JobFailedError):  # the future has it
                self._engine.finish(self._task)
        with self._lock:
            if self._future is None:
                ending = torch.futures.Future()
                self._future = ending.then(self._outcome)
                if not self._task.finished.is_set():
                    self._ending = ending
                else:
                    ending.set_result(None)
            return self._future
