"""The invariant CRC of RoCEv2 (InfiniBand Architecture, annex A17), over the inner packet.

CRC-32 (as Ethernet's) over eight bytes of 0xff in place of a local route header, then everything from the inner IPv6
header to the last byte of the payload, with all that may change on the way replaced by ones: traffic class, flow
label and hop limit of IPv6, the UDP checksum, and the variant byte of the BTH. Sent least significant byte first.
The outer header is not covered: the fabric rewrites it.
"""

from struct import Struct
from typing import Final
from zlib import crc32

__all__ = ["verify"]

Buffer = bytes | bytearray | memoryview

SIZE: Final = 4
WIRE: Final = Struct("<I")
HEADERS: Final = 40 + 8 + 12
"""Bytes of IPv6, UDP and BTH, where all the masked fields are."""
START: Final = crc32(b"\xff" * 8 + b"\x6f\xff\xff\xff")  # version 6; traffic class and flow label masked
VARIANT: Final = 40 + 8 + 4


def front_state(headers: Buffer) -> int:
    """CRC state after the masked IPv6 and UDP headers alone: the same for all packets of a path and length."""
    masked = bytearray(headers[4 : VARIANT - 4])
    masked[3] = 0xFF
    masked[42] = masked[43] = 0xFF
    return crc32(masked, START)


def headers_state(headers: Buffer) -> int:
    """CRC state after the masked IPv6, UDP and BTH headers: the first 60 bytes of the inner packet."""
    masked = bytearray(headers[4:HEADERS])
    masked[3] = 0xFF  # hop limit
    masked[42] = masked[43] = 0xFF  # UDP checksum
    masked[VARIANT - 4] = 0xFF
    return crc32(masked, START)


def compute(packet: Buffer) -> int:
    """ICRC of an inner packet given from its IPv6 header to the end of its payload, without the ICRC."""
    view = memoryview(packet)
    return crc32(view[HEADERS:], headers_state(view))


def verify(packet: Buffer) -> bool:
    """Whether an inner packet, given from its IPv6 header to the end of its ICRC, is what was sent."""
    if len(packet) < HEADERS + SIZE:
        return False
    view = memoryview(packet)
    return compute(view[:-SIZE]) == int.from_bytes(view[-SIZE:], "little")
