"""The hash and checksum algorithms of simple_switch (bm_sim/calculations.cpp), over bytes, to unsigned integers."""

from __future__ import annotations

import binascii
from collections.abc import Callable


def _crc16_table() -> tuple[int, ...]:
    table = []
    for byte in range(256):
        value = byte
        for _ in range(8):
            value = (value >> 1) ^ (0xA001 if value & 1 else 0)  # 0x8005 reflected
        table.append(value)
    return tuple(table)


_CRC16 = _crc16_table()


def crc16(data: bytes) -> int:
    """CRC-16/ARC: polynomial 0x8005, reflected, initial value 0."""
    value = 0
    for byte in data:
        value = (value >> 8) ^ _CRC16[(value ^ byte) & 0xFF]
    return value


def crc32(data: bytes) -> int:
    """CRC-32 of Ethernet."""
    return binascii.crc32(data)


def crc_ccitt(data: bytes) -> int:
    """CRC-16/CCITT-FALSE: polynomial 0x1021, not reflected, initial value 0xffff."""
    return binascii.crc_hqx(data, 0xFFFF)


def csum16(data: bytes) -> int:
    """The Internet checksum (RFC 1071); an odd last byte is padded with zero on the right."""
    if len(data) % 2:
        data += b"\0"
    total = sum(int.from_bytes(data[i : i + 2], "big") for i in range(0, len(data), 2))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total ^ 0xFFFF


def identity(data: bytes) -> int:
    """The first eight bytes, big endian."""
    return int.from_bytes(data[:8], "big")


def _xor(data: bytes, size: int) -> int:
    value = 0
    for i in range(0, len(data), size):
        value ^= int.from_bytes(data[i : i + size].ljust(size, b"\0"), "big")
    return value


def xor16(data: bytes) -> int:
    return _xor(data, 2)


def xor32(data: bytes) -> int:
    return _xor(data, 4)


ALGORITHMS: dict[str, Callable[[bytes], int]] = {
    "crc16": crc16,
    "crc16_custom": crc16,
    "crc32": crc32,
    "crc32_custom": crc32,
    "crcCCITT": crc_ccitt,
    "csum16": csum16,
    "cksum16": csum16,
    "identity": identity,
    "xor16": xor16,
    "xor32": xor32,
}
