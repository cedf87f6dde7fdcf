"""How testers and the lab's own device reach an interface."""

from __future__ import annotations

import socket
import struct

PACKET_OUTGOING = 4
_ETH_P_ALL = 3
_SOL_PACKET, _ADD_MEMBERSHIP, _PROMISCUOUS = 263, 1, 1


def packet_socket(name: str) -> socket.socket:
    """A socket of all frames on an interface, of any MAC address."""
    found = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(_ETH_P_ALL))
    found.bind((name, _ETH_P_ALL))
    index = socket.if_nametoindex(name)
    found.setsockopt(_SOL_PACKET, _ADD_MEMBERSHIP, struct.pack("iHH8s", index, _PROMISCUOUS, 0, b""))
    return found
