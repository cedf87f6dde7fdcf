"""Hosts that share a process's loop: each has its turns, and an error of one ends no other."""

import os
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
