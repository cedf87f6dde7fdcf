"""The integrity check at the end of each datagram, as the chosen dialect has it."""

from __future__ import annotations

import struct
import zlib
from ipaddress import IPv6Address

from scapy.layers.inet import UDP
from scapy.layers.inet6 import IPv6
from scapy.packet import Packet

from endpoint.scapy import chosen


def compute_check(bth: Packet, transport: bytes) -> int:
    """The integrity check of the dialect, over a BTH and all behind it."""
    return client_check(transport) if chosen.dialect.client_check else compute_icrc(bth, transport)


def client_check(transport: bytes) -> int:
    """MRC-Client's check: CRC-32C's polynomial as it is written, in a register that shifts to the right."""
    state = 0xFFFFFFFF
    for byte in transport:
        state ^= byte
        for _ in range(8):
            state = state >> 1 ^ (0x1EDC6F41 if state & 1 else 0)
    return state ^ 0xFFFFFFFF


def check_order() -> str:
    """How `struct` reads the check from the wire."""
    return ">I" if chosen.dialect.client_check else "<I"


def compute_icrc(bth: Packet, transport: bytes) -> int:
    """The ICRC of a BTH and all behind it, below UDP and IPv6 (IBTA annex A17: mutable fields are all ones)."""
    udp = bth.underlayer
    if not isinstance(udp, UDP) or not isinstance(udp.underlayer, IPv6):
        return 0
    ip = udp.underlayer
    length = 8 + len(transport) + 4
    pseudo = b"\xff" * 8
    pseudo += b"\x6f\xff\xff\xff" + struct.pack("!HBB", length, 17, 0xFF)
    pseudo += IPv6Address(ip.src).packed + IPv6Address(ip.dst).packed
    pseudo += struct.pack("!HHHH", udp.sport, udp.dport, length, 0xFFFF)
    return zlib.crc32(pseudo + transport[:4] + b"\xff" + transport[5:])


def promised(bth: Packet) -> int:
    """Bytes from the BTH to the ICRC as the UDP header has them; 0 while it has not been built."""
    udp = bth.underlayer
    length = udp.len if isinstance(udp, UDP) else None
    return length - 8 if length is not None else 0
