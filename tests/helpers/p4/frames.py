"""Ethernet frames with an IPv6 packet of a given size, class and destination."""

import ipaddress

IN_MACS = bytes.fromhex("020000000001020000000099")
SOURCE = ipaddress.IPv6Address("fd00:0:0:1::5").packed
HEADER_BYTES = 54


def frame(
    destination: str | bytes,
    *,
    dscp: int = 0,
    ecn: int = 0,
    flow_label: int = 0,
    hop_limit: int = 64,
    next_header: int = 59,
    payload: bytes | None = None,
    size: int = 1100,
) -> bytes:
    """`size` counts from the first Ethernet byte and is ignored when a payload is given."""
    if isinstance(destination, str):
        destination = ipaddress.IPv6Address(destination).packed
    if payload is None:
        payload = bytes(i & 0xFF for i in range(size - HEADER_BYTES))
    first = 6 << 28 | dscp << 22 | ecn << 20 | flow_label
    header = first.to_bytes(4, "big") + len(payload).to_bytes(2, "big") + bytes([next_header, hop_limit])
    return IN_MACS + b"\x86\xdd" + header + SOURCE + destination + payload


def dscp_of(sent: bytes) -> int:
    return (int.from_bytes(sent[14:18], "big") >> 22) & 0x3F


def ecn_of(sent: bytes) -> int:
    return (int.from_bytes(sent[14:18], "big") >> 20) & 3


def payload_length_of(sent: bytes) -> int:
    return int.from_bytes(sent[18:20], "big")
