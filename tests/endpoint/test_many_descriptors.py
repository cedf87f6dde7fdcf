"""A process with more than 1,023 open descriptors: the driver serves them all."""

from __future__ import annotations

import fcntl
import os
import resource
import socket
from collections.abc import Iterator, Sequence

import pytest

from endpoint.packet_sockets.driver import Driver

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


class Idle:
    """A device that neither sends nor waits for anything."""

    def receive(self, port: int, frames: Sequence[memoryview], now_ns: int) -> None: ...
    def receive_probes(self, port: int, frames: Sequence[bytes], now_ns: int) -> None: ...
    def port_changed(self, port: int, up: bool, now_ns: int) -> None: ...
    def host_was_late(self, late_ns: int, now_ns: int) -> None: ...
    def handle_timer(self, now_ns: int) -> None: ...
    def next_timer_ns(self) -> int | None:
        return None

    def packets_to_send(self, now_ns: int, limit: int) -> Sequence[tuple[int, bytes]]:
        return ()


def moved(descriptor: int) -> int:
    """The same file under a number above 1,023; the old number is closed."""
    beyond = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, BEYOND)
    os.close(descriptor)
    return beyond


def test_the_driver_serves_a_descriptor_above_1023_until_it_is_removed() -> None:
    driver = Driver((), 1500, data_udp_ports=(4791,), probe_udp_ports=(4793,))
    here, there = socket.socketpair()
    beyond = moved(here.detach())
    heard = []

    def hear() -> None:
        heard.append(os.read(beyond, 100))
        driver.remove_reader(beyond)
        os.close(beyond)
        driver.stop()

    try:
        driver.add_reader(beyond, hear)
        there.send(b"hello")
        driver.run(Idle())
        driver.remove_reader(beyond)  # a second time, when it is closed
    finally:
        there.close()
        driver.close()
    assert heard == [b"hello"]


def test_the_driver_calls_back_when_a_descriptor_above_1023_can_be_written_to() -> None:
    driver = Driver((), 1500, data_udp_ports=(4791,), probe_udp_ports=(4793,))
    here, there = socket.socketpair()
    beyond = moved(here.detach())
    os.set_blocking(beyond, False)
    written, heard = 0, 0

    def write() -> None:
        nonlocal written
        if written < 10_000_000:
            written += os.write(beyond, bytes(1_000_000))
        else:
            driver.remove_writer(beyond)

    def hear() -> None:
        nonlocal heard
        heard += len(there.recv(1_000_000))
        if heard == written >= 10_000_000:
            there.send(b"all")

    def end() -> None:
        assert os.read(beyond, 100) == b"all"
        driver.remove_reader(beyond)
        driver.stop()

    try:
        driver.add_reader(beyond, end)
        driver.add_writer(beyond, write)
        driver.add_reader(there.fileno(), hear)
        driver.run(Idle())
    finally:
        driver.remove_reader(there.fileno())
        there.close()
        driver.close()
        os.close(beyond)
    assert heard == written >= 10_000_000
