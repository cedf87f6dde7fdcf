"""Lines of the lab's journal about an unmodified training script: each step's time, loss and a digest of the weights.

`MRCLAB_JOURNAL` names the file. A step ends with the optimizer's; its loss is what `backward` was last called on.
"""

from __future__ import annotations

import atexit
import ctypes
import gc
import hashlib
import math
import os
import sys
from functools import wraps
from typing import Any

import torch

from common.journal import Journal
from mrclab.torch import nic

JOURNAL = "MRCLAB_JOURNAL"
NAME = "MRCLAB_JOB"
"""Names the job in the journal."""
RANKS = "MRCLAB_RANKS"
"""The hosts of all ranks, with commas."""


class Observer:
    """Writes the `workload` and `step` lines of one rank (docs/contracts.md)."""

    def __init__(self, path: str, name: str, rank: int, ranks: list[str]) -> None:
        context = nic.context()
        self._engine = nic.engine(rank)
        self._busy_ns, self._sent_bytes = self._engine.busy_ns(), self._engine.mesh.sent_bytes
        self._journal = Journal(path, context.name, context.now_ns)
        self._name = name
        self._rank = rank
        self._step = 0
        self._loss: float | None = None
        self._last_ns = context.now_ns()
        self._now_ns = context.now_ns
        self._failure = ""
        if context.stepped:
            self._journal.write_process("program", pid=0, realtime_ns=0)  # the same in every run of a seed
        else:
            self._journal.write_process("program")
        self._state("start", rank=rank, ranks=ranks)

    def backward(self, loss: Any) -> None:
        """A gradient is about to be computed, of this tensor."""
        if loss.numel() == 1:
            value = float(loss.detach())
            self._loss = value if math.isfinite(value) else None  # NaN is no JSON

    def stepped(self, optimizer: Any) -> None:
        """An optimizer has changed its weights."""
        now_ns = self._now_ns()
        total_ns, busy_ns = now_ns - self._last_ns, self._engine.busy_ns()
        sent_bytes = self._engine.mesh.sent_bytes
        comm_ns = min(total_ns, busy_ns - self._busy_ns)  # collectives that ran while the program computed count here
        digest = hashlib.sha256()
        for weights in [weights for group in optimizer.param_groups for weights in group["params"]]:
            flat = weights.detach().contiguous()
            digest.update(ctypes.string_at(flat.data_ptr(), flat.numel() * flat.element_size()))
        loss: dict[str, Any] = {"loss": round(self._loss, 6)} if self._rank == 0 and self._loss is not None else {}
        self._journal.write(
            "step",
            t_ns=now_ns,
            workload=self._name,
            rank=self._rank,
            step=self._step,
            compute_ns=total_ns - comm_ns,
            comm_ns=comm_ns,
            total_ns=total_ns,
            bytes=sent_bytes - self._sent_bytes,
            weights=digest.hexdigest()[:16],
            **loss,
        )
        self._step += 1
        self._last_ns, self._busy_ns, self._sent_bytes = now_ns, busy_ns, sent_bytes

    def failed(self, error: BaseException) -> None:
        """The program is about to end with a trace-back."""
        self._failure = f"{type(error).__name__}: {error}".partition("\n")[0]

    def end(self) -> None:
        """The program ends."""
        outcome = "failed" if self._failure else "finished"
        self._state("stop", outcome=outcome, cause=self._failure, result={"rounds": self._step})
        self._journal.close()

    def _state(self, state: str, **fields: Any) -> None:
        self._journal.write("workload", name=self._name, workload="program", state=state, **fields)


def observe(rank: int) -> None:
    """Observe this process from now on, if the lab asks for it; called when the job's first group has been made."""
    path = os.environ.pop(JOURNAL, None)
    if path is None:
        return
    observer = Observer(path, os.environ.get(NAME, "program"), rank, os.environ.get(RANKS, "").split(","))
    _wrap_backward(observer)
    _wrap_optimizers(observer)
    _wrap_excepthook(observer)
    atexit.register(observer.end)  # before the NIC is closed, for that was registered earlier


def _wrap_backward(observer: Observer) -> None:
    backward = torch.Tensor.backward

    @wraps(backward)
    def observed(tensor: Any, *arguments: Any, **options: Any) -> Any:
        observer.backward(tensor)
        return backward(tensor, *arguments, **options)

    torch.Tensor.backward = observed


def _wrap_optimizers(observer: Observer) -> None:
    """Those that are there, and those to come."""

    def watch(optimizer: Any) -> None:
        step = optimizer.step

        @wraps(step)
        def observed(*arguments: Any, **options: Any) -> Any:
            returned = step(*arguments, **options)
            observer.stepped(optimizer)
            return returned

        optimizer.step = observed

    begin = torch.optim.Optimizer.__init__

    @wraps(begin)
    def watched(optimizer: Any, *arguments: Any, **options: Any) -> None:
        begin(optimizer, *arguments, **options)
        watch(optimizer)

    torch.optim.Optimizer.__init__ = watched
    for optimizer in [thing for thing in gc.get_objects() if issubclass(type(thing), torch.optim.Optimizer)]:
        watch(optimizer)


def _wrap_excepthook(observer: Observer) -> None:
    hook = sys.excepthook

    def observed(kind: Any, error: BaseException, trace: Any) -> None:
        observer.failed(error)
        hook(kind, error, trace)

    sys.excepthook = observed
