"""Jobs on a Dask cluster: its scheduler hands them out, and gives those of a lost worker to another.

Dask is an extra (`cluster`), imported when it is asked for.
"""

import importlib
import ipaddress
import threading
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, Generic, Self

from studies.farm.engine import J, R, Work, WorkerDiedError


class ClusterError(RuntimeError):
    """There is no cluster at this address, or none with workers."""


@dataclass(frozen=True, slots=True)
class ClusterAddress:
    """`text` is a scheduler's address, such as tls://host:8786. It is checked before Dask is installed."""

    text: str

    @classmethod
    def parse(cls, text: str) -> Self:
        """ValueError for any other text."""
        scheme, _, place = text.partition("://")
        if scheme not in ("tcp", "tls") or not place:
            raise ValueError(f"must be the address of a Dask scheduler, such as tls://host:8786 (got {text!r})")
        return cls(text)

    def protect(self, *, insecure: bool) -> None:
        """ClusterError where strangers could listen or run code, unless that is allowed by `insecure`."""
        if self.text.startswith("tcp://") and not _is_loopback(self.text.removeprefix("tcp://")) and not insecure:
            raise ClusterError(
                f"--cluster {self.text}: over tcp:// anybody on the way can run code as you; start the scheduler with"
                " TLS and use tls://, or add --insecure"
            )


def _is_loopback(place: str) -> bool:
    host = place.rpartition(":")[0].strip("[]")
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


WAIT_S = 30.0  # for the scheduler to answer, and for its first worker
_alone = threading.Lock()


class Cluster(Generic[J, R]):
    """A running scheduler and its workers."""

    def __init__(self, address: ClusterAddress, work: Work[J, R], at_least: int = 1) -> None:
        """`at_least` so many workers are waited for."""
        self.died = 0
        self._at_least = at_least
        self._address = address
        self._work = work
        self._jobs: dict[Any, J] = {}
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
        self._client.cancel(list(self._jobs), force=True)
        self._stack.close()

    @property
    def workers(self) -> int:
        """How many workers there are at this moment: they may come and go."""
        return max(1, len(self._seen()))

    def submit(self, job: J) -> None:
        # Not pure: Dask would keep one result for equal arguments, and the sweep has its own store.
        future = self._client.submit(alone, self._work, job, pure=False, key=f"run-{job.key}")
        self._jobs[future] = job

    @property
    def pending(self) -> int:
        return len(self._jobs)

    def next(self) -> R:
        done = self._dask.wait(list(self._jobs), return_when="FIRST_COMPLETED").done
        future = next(iter(done))
        job = self._jobs.pop(future)
        try:
            result: R = future.result()
        except self._dask.scheduler.KilledWorker:
            raise WorkerDiedError(job) from None
        finally:
            self._seen()
        return result

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


def alone(work: Work[J, R], job: J) -> R:
    """In a worker: one job at a time, however many threads the worker has; its files lie where Dask cleans up."""
    with _alone:
        return work(dask().get_worker().local_directory, job)
