"""The engine's thread by itself: which descriptors it can wait for, and what is left of it once it is closed."""

import contextlib
import fcntl
import os
import resource
import socket
from collections.abc import Iterator
from typing import Any, cast

import pytest

from mrclab.context import Context
from mrclab.errors import JobFailedError
from mrclab.mesh import engine
from mrclab.mesh.engine import SteppedEngine, ThreadedEngine
from mrclab.mesh.mesh import Step

LIMIT_S = 20.0
BEYOND = 1_100
"""A descriptor that `select` does not take."""


class Quiet:
    """A context and its mesh in which nothing completes; bytes at its socket wake the engine."""

    rtt_ns = 1_000_000
    ready = 0

    def __init__(self) -> None:
        here, self.there = socket.socketpair()
        self.heard, self.waits = b"", 0
        self.descriptor = fcntl.fcntl(here, fcntl.F_DUPFD_CLOEXEC, BEYOND)
        here.close()
        os.set_blocking(self.descriptor, False)
        self.cq = self

    def now_ns(self) -> int:
        return 0

    def fileno(self) -> int:
        return self.descriptor

    def poll(self, num_entries: int) -> list[object]:
        with contextlib.suppress(BlockingIOError):
            self.heard += os.read(self.descriptor, 100)
        return []

    def wait(self, seconds: float) -> list[object]:
        self.waits += 1
        self.heard = b"x" * (self.waits // 9)
        return []

    def take(self, completions: object) -> bool:
        return False

    def until_heard(self) -> Step:
        while not self.heard:
            yield

    def goodbye(self) -> Step:
        yield from ()

    def close(self) -> None:
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.there.close()
        self.descriptor = -1


@pytest.fixture
def quiet(monkeypatch: pytest.MonkeyPatch) -> Iterator[Quiet]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard <= 2 * BEYOND:
        pytest.skip(f"at most {hard} descriptors are allowed here")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 2 * BEYOND), hard))
    made = Quiet()
    monkeypatch.setattr(engine, "Mesh", lambda context, rank: made)
    yield made
    made.close()
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def eventfds() -> int:
    links = []
    for name in os.listdir("/proc/self/fd"):
        with contextlib.suppress(FileNotFoundError):  # the listing's own descriptor
            links.append(os.readlink(f"/proc/self/fd/{name}"))
    return links.count("anon_inode:[eventfd]")


def test_a_nic_whose_descriptor_is_above_1023_wakes_the_engine(quiet: Quiet) -> None:
    made = ThreadedEngine(cast(Context, quiet), 0)
    task = made.start("hear", quiet.until_heard(), None, lambda failure: None)
    quiet.there.send(b"hello")
    made.finish(task, LIMIT_S)
    made.close()
    assert quiet.heard == b"hello"


def test_a_closed_engine_leaves_no_descriptor_and_takes_no_task(quiet: Quiet) -> None:
    before = eventfds()
    made: Any = ThreadedEngine(cast(Context, quiet), 0)
    assert eventfds() == before + 1
    made.close()
    made.close()
    assert eventfds() == before
    with pytest.raises(JobFailedError, match="this rank has left the job"):
        made.start("late", iter(()), None, lambda failure: None)


def test_a_wait_in_virtual_time_enters_the_mode_once_for_all_its_turns(quiet: Quiet) -> None:
    entered = []

    @contextlib.contextmanager
    def mode() -> Iterator[None]:
        entered.append(quiet.waits)
        yield

    made = SteppedEngine(cast(Context, quiet), 0, mode)
    made.finish(made.start("hear", quiet.until_heard(), None))
    assert (quiet.waits, entered) == (9, [0, 0])
    made.sleep(0.0)
    assert len(entered) == 3
