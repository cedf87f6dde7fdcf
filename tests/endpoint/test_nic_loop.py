"""Hosts that share a process's loop: each has its turns, and an error of one ends no other."""

import fcntl
import os
import resource
import socket
import time
from collections.abc import Iterable, Iterator

import pytest

from endpoint.packet_sockets.loop import BUSY, IDLE, NEVER, Loop


class Host:
    """A host without ports: moves frames for a number of turns, and then waits for its deadline."""

    def __init__(self, busy_turns: int = 0, error: Exception | None = None) -> None:
        self.deadline_ns = NEVER
        self.turns = 0
        self.failures: list[Exception] = []
        self.late: list[int] = []
        self._busy_turns = busy_turns
        self._error = error

    def data_descriptors(self) -> Iterable[int]:
        return ()

    def turn(self) -> int:
        self.turns += 1
        if self._error is not None:
            raise self._error
        return BUSY if self.turns <= self._busy_turns else IDLE

    def note_lateness(self, before_ns: int, now_ns: int, idle_ns: int, slept: bool, moderation_ns: int) -> None:
        self.late.append(idle_ns)

    def woken(self, descriptor: int) -> None:
        raise AssertionError("there are no descriptors")

    def fail(self, error: Exception) -> None:
        self.failures.append(error)


@pytest.fixture
def loop() -> Iterator[Loop]:
    made = Loop()
    yield made
    made.close()


def stop_after(loop: Loop, host: Host, turns: int) -> None:
    """End the loop from this turn of a host."""
    usual = host.turn

    def turn() -> int:
        if host.turns + 1 == turns:
            loop.stop()
        return usual()

    host.turn = turn  # type: ignore[method-assign]


def test_a_host_whose_turn_raises_is_told_and_the_other_goes_on(loop: Loop) -> None:
    broken, sound = Host(error=ValueError("broken")), Host()
    sound.deadline_ns = 0  # always due: the loop does not wait

    def fail(error: Exception) -> None:
        broken.failures.append(error)
        loop.remove(broken)

    broken.fail = fail  # type: ignore[method-assign]
    loop.add(broken)
    loop.add(sound)
    stop_after(loop, sound, 5)
    loop.run()
    assert [str(error) for error in broken.failures] == ["broken"]
    assert broken.turns == 1
    assert sound.turns == 5
    assert not sound.failures


def test_the_loop_wakes_for_the_first_deadline_of_any_host(loop: Loop) -> None:
    early, late = Host(), Host()
    now_ns = time.monotonic_ns()
    late.deadline_ns, early.deadline_ns = now_ns + 60_000_000_000, now_ns + 20_000_000
    loop.add(late)
    loop.add(early)
    stop_after(loop, early, 2)
    loop.run()
    assert time.monotonic_ns() >= early.deadline_ns
    assert late.turns == 2


def test_after_a_turn_that_moved_frames_the_loop_sleeps_for_the_moderation() -> None:
    loop = Loop(moderation_ns=20_000_000)
    try:
        host = Host(busy_turns=2)
        loop.add(host)
        stop_after(loop, host, 3)
        began_ns = time.monotonic_ns()
        loop.run()
    finally:
        loop.close()
    assert time.monotonic_ns() - began_ns >= 40_000_000


def test_what_is_called_soon_runs_when_the_callback_that_asked_is_over(loop: Loop) -> None:
    read, write = os.pipe()
    order: list[str] = []

    def soon() -> None:
        order.append("soon")
        loop.stop()

    def heard() -> None:
        os.read(read, 1)
        loop.call_soon(soon)
        order.append("callback")

    loop.add_reader(read, heard)
    os.write(write, b"x")
    loop.run()
    loop.remove_reader(read)
    os.close(read)
    os.close(write)
    assert order == ["callback", "soon"]


BEYOND = 1_100
"""A descriptor that `select` does not take."""


@pytest.fixture(autouse=True)
def room() -> Iterator[None]:
    """Let this process open so many descriptors, whatever its soft limit was."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard <= 2 * BEYOND:
        pytest.skip(f"at most {hard} descriptors are allowed here")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 2 * BEYOND), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def moved(descriptor: int) -> int:
    """The same file under a number above 1,023; the old number is closed."""
    beyond = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, BEYOND)
    os.close(descriptor)
    return beyond


def test_the_loop_serves_a_descriptor_above_1023_until_it_is_removed() -> None:
    loop = Loop()
    here, there = socket.socketpair()
    beyond = moved(here.detach())
    heard = []

    def hear() -> None:
        heard.append(os.read(beyond, 100))
        loop.remove_reader(beyond)
        os.close(beyond)
        loop.stop()

    try:
        loop.add_reader(beyond, hear)
        there.send(b"hello")
        loop.run()
        loop.remove_reader(beyond)  # a second time, when it is closed
    finally:
        there.close()
        loop.close()
    assert heard == [b"hello"]


def test_the_loop_calls_back_when_a_descriptor_above_1023_can_be_written_to() -> None:
    loop = Loop()
    here, there = socket.socketpair()
    beyond = moved(here.detach())
    os.set_blocking(beyond, False)
    written, heard = 0, 0

    def write() -> None:
        nonlocal written
        if written < 10_000_000:
            written += os.write(beyond, bytes(1_000_000))
        else:
            loop.remove_writer(beyond)

    def hear() -> None:
        nonlocal heard
        heard += len(there.recv(1_000_000))
        if heard == written >= 10_000_000:
            there.send(b"all")

    def end() -> None:
        assert os.read(beyond, 100) == b"all"
        loop.remove_reader(beyond)
        loop.stop()

    try:
        loop.add_reader(beyond, end)
        loop.add_writer(beyond, write)
        loop.add_reader(there.fileno(), hear)
        loop.run()
    finally:
        loop.remove_reader(there.fileno())
        there.close()
        loop.close()
        os.close(beyond)
    assert heard == written >= 10_000_000
