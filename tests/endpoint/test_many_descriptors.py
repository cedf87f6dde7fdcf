"""A process with more than 1,023 open descriptors: the loop serves them all."""

import fcntl
import os
import resource
import socket
from collections.abc import Iterator

import pytest

from endpoint.packet_sockets.loop import Loop

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
