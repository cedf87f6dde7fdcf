"""The processes of a run, as each of them sees the others: MPI, by mpi4py.

All processes make the same calls in the same order; a process that cannot ends the run for all of them.
"""

from __future__ import annotations

import importlib
import pickle
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn, TypeVar

from common.interpreter import at_home, working_in

if TYPE_CHECKING:
    from mpi4py.MPI import Intracomm

__all__ = ["Ranks", "world"]

PATIENCE_S = 10.0
POLL_S = 0.01
Answer = TypeVar("Answer")


class RankError(RuntimeError):
    """An exception of another process of the run, in words where it cannot be sent itself."""


def world() -> Intracomm:
    """The processes that `mpiexec` has started together with this one.

    UCX obeys `ucx.conf` of the current folder and of HOME, which may be other users' and name files to write and
    libraries to load. Neither is here while UCX is loaded; its variables, such as UCX_NET_DEVICES, are.
    """
    with working_in(Path("/")), at_home("/"):
        processes: Intracomm = importlib.import_module("mpi4py.MPI").COMM_WORLD
    return processes


class Ranks:
    """This process among those of its run."""

    def __init__(self, communicator: Intracomm) -> None:
        self.comm = communicator
        self.rank = communicator.Get_rank()
        self.count = communicator.Get_size()
        self._ends = communicator.Dup()  # apart from all other calls: one process may be alone at the end

    def together(self, act: Callable[[], Answer]) -> Answer:
        """Return the result of `act` here. If it raises in any process, all processes raise that exception."""
        error: Exception | None = None
        answer: Answer | None = None
        try:
            answer = act()
        except Exception as raised:
            error = portable(raised)
        raise_first(self.comm.allgather(error))
        return answer  # type: ignore[return-value]  # None only where that is the answer

    def meet(self, patience_s: float | None) -> bool:
        """Wait for all processes at the end of the run; False when one did not come in so many real seconds."""
        request, began_s = self._ends.Ibarrier(), time.monotonic()
        while not request.Test():
            if patience_s is not None and time.monotonic() - began_s > patience_s:
                return False
            time.sleep(POLL_S)
        return True

    def abort(self) -> NoReturn:
        """End all processes at once."""
        self.comm.Abort(1)
        raise SystemExit(1)


def portable(error: Exception) -> Exception:
    """The exception in a form that can be sent: itself, or a RankError with its words."""
    try:
        if type(pickle.loads(pickle.dumps(error))) is type(error):
            return error
    except Exception:  # a class may raise anything when it is pickled
        pass
    return RankError(f"{type(error).__name__}: {error}")


def raise_first(errors: list[Exception | None]) -> None:
    """Raise the first exception of a list by rank, if there is any."""
    for error in errors:
        if error is not None:
            raise error
