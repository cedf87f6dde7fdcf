"""Work: a collective under way, as PyTorch's programs and its C++ wait for it."""

from __future__ import annotations

import contextlib
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist

from mrclab.errors import JobFailedError
from mrclab.mesh.engine import MeshEngine, MeshTask, SteppedEngine
from mrclab.mesh.mesh import Step

_BASE: Any = getattr(dist, "Work", None) or dist._Work  # its name until 1.13


class Work(_BASE):
    """The result is the list of tensors that the collective writes."""

    def __init__(self, engine: MeshEngine, name: str, step: Step, result: Any, timeout_s: float | None) -> None:
        super().__init__()
        self._engine = engine
        self._result = result
        self._failure: BaseException | None = None
        # An exception that is set on a future reaches Python alone: PyTorch's C++ would take it for the result. An
        # exception that a callback raises fails the future that `then` returns, for both.
        self._ending = torch.futures.Future()
        self._future = self._ending.then(self._outcome)
        self._task: MeshTask = engine.start(name, step, timeout_s, self._ended)

    def _ended(self, failure: BaseException | None) -> None:
        self._failure = failure
        self._ending.set_result(None)

    def _outcome(self, _: Any) -> Any:
        if self._failure is not None:
            raise JobFailedError(str(self._failure))
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
        """PyTorch's C++ waits for a future without asking this class; in virtual time nothing would move then."""
        if isinstance(self._engine, SteppedEngine):
            with contextlib.suppress(JobFailedError):  # the future has it
                self._engine.finish(self._task)
        return self._future
