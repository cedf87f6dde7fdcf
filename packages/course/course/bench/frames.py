"""Frames with an outer IPv6 header: made, read back, and told to a reader."""

import ipaddress
import struct
from dataclasses import dataclass

ETHERNET_BYTES, IPV6_BYTES = 14, 40
ETHERTYPE_IPV6 = 0x86DD
NEXT_HEADER_IPV6 = 41


@dataclass(frozen=True, slots=True)
class BenchFrame:
    """The fields that the labs look at; `length` is of the whole frame, `payload_length` is the header's word."""

    destination: ipaddress.IPv6Address
    hop_limit: int
    dscp: int = 0
    payload: bytes = bytes(64)
    payload_length: int | None = None
    ether_type: int = ETHERTYPE_IPV6
    version: int = 6

    def packed(self) -> bytes:
        word = self.version << 28 | self.dscp << 22 | 0x12345
        length = len(self.payload) if self.payload_length is None else self.payload_length
        ipv6 = struct.pack("!IHBB", word, length, NEXT_HEADER_IPV6, self.hop_limit)
        source = ipaddress.IPv6Address("fd00::1").packed
        macs = bytes.fromhex("020000000001020000000099")
        ethernet = macs + struct.pack("!H", self.ether_type)
        return ethernet + ipv6 + source + self.destination.packed + self.payload

    @property
    def description(self) -> str:
        return f"to {self.destination}, hop limit {self.hop_limit}"


def read(frame: bytes) -> BenchFrame | None:
    """The fields of a frame; None for one without a whole IPv6 header."""
    if len(frame) < ETHERNET_BYTES + IPV6_BYTES:
        return None
    (ether_type,) = struct.unpack_from("!H", frame, 12)
    word, length, _, hop_limit = struct.unpack_from("!IHBB", frame, ETHERNET_BYTES)
    destination = ipaddress.IPv6Address(frame[38:54])
    return BenchFrame(destination, hop_limit, word >> 22 & 0x3F, frame[54:], length, ether_type, word >> 28)
