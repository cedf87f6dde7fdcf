"""How testers and the lab's own device reach an interface."""

from __future__ import annotations

import ctypes
import socket
import struct
from collections.abc import Sequence

PACKET_OUTGOING = 4
_ETH_P_ALL = 3
_SOL_PACKET, _ADD_MEMBERSHIP, _PROMISCUOUS = 263, 1, 1
_SO_ATTACH_FILTER = 26
_LOAD, _IF_EQUAL, _RETURN = 0x20, 0x15, 0x06
_IFINDEX = 0xFFFFF000 + 8
"""Of a packet filter (linux/filter.h): the index of the interface, as an offset beyond every packet."""
_WHOLE = 0xFFFFFFFF


def packet_socket(name: str) -> socket.socket:
    """A socket of all frames on an interface, of any MAC address. ValueError for an interface that is not there."""
    index = _index(name)
    found = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(_ETH_P_ALL))
    found.bind((name, _ETH_P_ALL))
    _hear_all(found, index)
    return found


def shared_socket(names: Sequence[str]) -> socket.socket:
    """A socket of all frames on these interfaces, in the order in which they arrive at any of them. Its first frames
    may be of others. ValueError for an interface that is not there."""
    indexes = list(map(_index, names))
    found = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(_ETH_P_ALL))
    try:
        steps = [(_LOAD, 0, 0, _IFINDEX)]
        steps += [(_IF_EQUAL, len(indexes) - place, 0, index) for place, index in enumerate(indexes)]
        steps += [(_RETURN, 0, 0, 0), (_RETURN, 0, 0, _WHOLE)]
        code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in steps))
        program = struct.pack("HP", len(steps), ctypes.addressof(code))
        found.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, program)
        for index in indexes:
            _hear_all(found, index)
    except OSError:
        found.close()
        raise
    return found


def _index(name: str) -> int:
    try:
        return socket.if_nametoindex(name)
    except OSError:
        there = ", ".join(other for _, other in socket.if_nameindex())
        raise ValueError(f"no interface {name!r} is here; there are {there}") from None


def _hear_all(one: socket.socket, index: int) -> None:
    """Frames to any MAC address, for as long as the socket is open."""
    one.setsockopt(_SOL_PACKET, _ADD_MEMBERSHIP, struct.pack("iHH8s", index, _PROMISCUOUS, 0, b""))
