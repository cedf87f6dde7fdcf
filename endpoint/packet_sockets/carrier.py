"""Link state of network interfaces from rtnetlink (RTM_NEWLINK), as it changes."""

from __future__ import annotations

import errno
import socket
import struct
from collections.abc import Iterator
from dataclasses import dataclass

# linux/rtnetlink.h, linux/if_link.h, linux/if.h
_RTMGRP_LINK = 1
_RTM_NEWLINK, _RTM_DELLINK, _RTM_GETLINK = 16, 17, 18
_NLM_F_REQUEST_DUMP = 0x301
_IFLA_IFNAME = 3
_IFF_UP, _IFF_LOWER_UP = 1, 1 << 16


@dataclass(frozen=True, slots=True)
class NetworkInterface:
    """A network interface by name and kernel index."""

    interface: str
    index: int
    up: bool
    """Administratively up and with carrier."""


class CarrierWatch:
    """A netlink socket that tells of every link's state: all of them at first, then each change."""

    def __init__(self) -> None:
        self._socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, socket.NETLINK_ROUTE)
        self._socket.bind((0, _RTMGRP_LINK))
        self._request_all()

    def fileno(self) -> int:
        return self._socket.fileno()

    def read(self) -> list[NetworkInterface]:
        """The states that have arrived; a link may occur twice, and the later state counts. Never waits."""
        links: list[NetworkInterface] = []
        while True:
            try:
                links.extend(parse(self._socket.recv(1 << 16, socket.MSG_DONTWAIT)))
            except BlockingIOError:
                return links
            except OSError as error:
                if error.errno != errno.ENOBUFS:
                    raise
                self._request_all()  # messages were lost: ask for the whole state again

    def close(self) -> None:
        self._socket.close()

    def _request_all(self) -> None:
        header = struct.pack("IHHII", 16 + 16, _RTM_GETLINK, _NLM_F_REQUEST_DUMP, 1, 0)
        self._socket.send(header + bytes(16))


def parse(data: bytes) -> Iterator[NetworkInterface]:
    """The links in one datagram of rtnetlink messages (linux/netlink.h: lengths include headers, aligned to 4)."""
    while len(data) >= 16:
        length, kind = struct.unpack_from("IH", data)
        if length < 16 or length > len(data):
            return
        if kind in (_RTM_NEWLINK, _RTM_DELLINK) and length >= 32:
            index, flags = struct.unpack_from("iI", data, 20)
            name = _attribute(data[32:length], _IFLA_IFNAME)
            if name is not None:
                up = kind == _RTM_NEWLINK and bool(flags & _IFF_UP) and bool(flags & _IFF_LOWER_UP)
                yield NetworkInterface(name.rstrip(b"\0").decode(errors="replace"), index, up)
        data = data[(length + 3) & ~3 :]


def _attribute(data: bytes, wanted: int) -> bytes | None:
    while len(data) >= 4:
        length, kind = struct.unpack_from("HH", data)
        if length < 4:
            return None
        if kind == wanted:
            return data[4:length]
        data = data[(length + 3) & ~3 :]
    return None
