"""Packets as a NIC sends them through the switch: IPv6 in IPv6, UDP, and bytes by which a cut packet is known again."""

from random import Random
from typing import NamedTuple

ETHERNET = 14
HEADERS = ETHERNET + 40
"""Bytes before the payload of the outer IPv6 header."""
IPV6, ICMPV6, UDP, ROUTING = b"\x86\xdd", 58, 17, 43
INNER = 41
"""Next header of a packet that has an IPv6 packet in it."""
UDP_PORT = 4791


class Header(NamedTuple):
    """An IPv6 header."""

    source: int
    destination: int
    traffic_class: int = 0
    flow_label: int = 0
    hop_limit: int = 64
    next_header: int = 59
    length: int = 0

    @classmethod
    def of(cls, data: bytes) -> "Header":
        """The header at the beginning of some bytes."""
        first = int.from_bytes(data[:4], "big")
        addresses = int.from_bytes(data[8:24], "big"), int.from_bytes(data[24:40], "big")
        length = int.from_bytes(data[4:6], "big")
        return cls(*addresses, first >> 20 & 0xFF, first & 0xFFFFF, data[7], data[6], length)

    @property
    def dscp(self) -> int:
        return self.traffic_class >> 2

    @property
    def ecn(self) -> int:
        return self.traffic_class & 3

    def packed(self, payload: bytes) -> bytes:
        """The header with the length of this payload, and the payload."""
        first = 6 << 28 | self.traffic_class << 20 | self.flow_label
        fixed = len(payload).to_bytes(2, "big") + bytes([self.next_header, self.hop_limit])
        return first.to_bytes(4, "big") + fixed + numbered(self.source) + numbered(self.destination) + payload


def numbered(address: int) -> bytes:
    """An IPv6 address as 16 bytes."""
    return address.to_bytes(16, "big")


def plain(macs: bytes, header: Header, payload: bytes) -> bytes:
    """A frame with this packet; `macs` are destination and source."""
    return macs + IPV6 + header.packed(payload)


def encapsulated(macs: bytes, outer: Header, dice: Random, size: int) -> bytes:
    """A frame of `size` bytes with a UDP packet in it, in an inner IPv6 header whose values are random; too short for
    that, a frame of random bytes."""
    if size < HEADERS + 48:
        return plain(macs, outer, dice.randbytes(size - HEADERS))
    inner = Header(dice.getrandbits(128), dice.getrandbits(128), dice.randrange(256), dice.randrange(1 << 20))
    body = dice.randbytes(max(0, size - HEADERS - 48))
    ports = dice.randrange(49152, 1 << 16).to_bytes(2, "big") + UDP_PORT.to_bytes(2, "big")
    datagram = ports + (8 + len(body)).to_bytes(2, "big") + b"\0\0" + body
    within = inner._replace(hop_limit=dice.randrange(1, 256), next_header=UDP).packed(datagram)
    return plain(macs, outer._replace(next_header=INNER), within)


def icmp_sum(source: int, destination: int, message: bytes) -> int:
    """The checksum of an ICMPv6 message with its own checksum in it: 0 for a right one (RFC 4443, 2.3)."""
    pseudo = numbered(source) + numbered(destination) + len(message).to_bytes(4, "big") + bytes([0, 0, 0, ICMPV6])
    data = pseudo + message + b"\0" * (len(message) % 2)
    total = sum(int.from_bytes(data[at : at + 2], "big") for at in range(0, len(data), 2))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF
