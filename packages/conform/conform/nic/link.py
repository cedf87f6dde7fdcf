"""Frames between the tester and a NIC: packet sockets on interfaces, or a Unix socket of packets.

On the Unix socket (SOCK_SEQPACKET) each packet is one byte with the number of the port, from 1, and a frame. The tester
listens; the device connects.
"""

from __future__ import annotations

import contextlib
import os
import select
import socket
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from conform.packet_socket import PACKET_OUTGOING, shared_socket

ICMPV6, HOP_BY_HOP = 58, 0
FRAME_MAX = 65536
BUFFER_BYTES = 4 << 20


class Link(Protocol):
    """Ports count from 1."""

    def send(self, port: int, data: bytes) -> None:
        """Send a frame to the device."""

    def receive(self, wait_s: float) -> tuple[int, bytes] | None:
        """The next frame of the device; None if none has come after `wait_s`."""

    def files(self) -> list[socket.socket]:
        """The sockets, to wait for with `select`."""

    def pump(self) -> None:
        """Take the frames that are there and keep them, so that no device waits for a tester that waits for it."""

    def close(self) -> None:
        """Give the sockets back."""


class InterfaceLink:
    """One interface per port, in their order. The interfaces need no address. Frames of all ports come in the order in
    which they arrived."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = list(names)
        self._socket = shared_socket(names)
        self._waiting: list[tuple[int, bytes]] = []
        self._socket.setblocking(False)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, BUFFER_BYTES)

    def send(self, port: int, data: bytes) -> None:
        with contextlib.suppress(BlockingIOError, OSError):  # a full queue and a link that is down lose a frame
            self._socket.sendto(data, (self._names[port - 1], 0))

    def files(self) -> list[socket.socket]:
        return [self._socket]

    def pump(self) -> None:
        try:
            data, address = self._socket.recvfrom(FRAME_MAX)
        except OSError:  # nothing is there, or a link went down
            return
        foreign = data[12:14] != b"\x86\xdd" or data[20:21] in (bytes([ICMPV6]), bytes([HOP_BY_HOP]))
        if address[2] != PACKET_OUTGOING and not foreign and address[0] in self._names:
            self._waiting.append((self._names.index(address[0]) + 1, data))

    def receive(self, wait_s: float) -> tuple[int, bytes] | None:
        if not self._waiting and select.select(self.files(), [], [], max(wait_s, 0))[0]:
            self.pump()
        return self._waiting.pop(0) if self._waiting else None

    def close(self) -> None:
        self._socket.close()


class SocketLink:
    """A device that is a program: it connects to the socket at `path`, and each of its packets has a port."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        mask = os.umask(0o177)
        try:
            self._listener.bind(str(path))
        finally:
            os.umask(mask)
        self._listener.listen(1)
        self._device: socket.socket | None = None
        self._waiting: list[tuple[int, bytes]] = []

    def _connected(self, wait_s: float) -> socket.socket | None:
        if self._device is None and select.select([self._listener], [], [], max(wait_s, 0))[0]:
            self._device = self._listener.accept()[0]
            self._device.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, BUFFER_BYTES)
            self._device.setblocking(False)
        return self._device

    def send(self, port: int, data: bytes) -> None:
        device = self._connected(1.0)
        with contextlib.suppress(OSError):  # a device that reads nothing, or has left, loses the frame
            if device is not None:
                device.send(bytes([port]) + data)

    def files(self) -> list[socket.socket]:
        return [self._listener if self._device is None else self._device]

    def pump(self) -> None:
        device = self._connected(0)
        if device is None or not select.select([device], [], [], 0)[0]:
            return
        try:
            data = device.recv(FRAME_MAX)
        except OSError:
            data = b""
        if data:
            self._waiting.append((data[0], data[1:]))
        else:
            device.close()
            self._device = None

    def receive(self, wait_s: float) -> tuple[int, bytes] | None:
        if not self._waiting and select.select(self.files(), [], [], max(wait_s, 0))[0]:
            self.pump()
        return self._waiting.pop(0) if self._waiting else None

    def close(self) -> None:
        self._listener.close()
        if self._device is not None:
            self._device.close()
        with contextlib.suppress(OSError):
            os.unlink(self._path)
