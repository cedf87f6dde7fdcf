"""The hash and checksum algorithms of simple_switch (bm_sim/calculations.cpp), over bytes, to unsigned integers."""

import binascii
from collections.abc import Callable
from functools import partial


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


def csum16(data: bytes) -> int:
    """The Internet checksum (RFC 1071); an odd last byte is padded with zero on the right."""
    if len(data) % 2:
        data += b"\0"
    total = sum(int.from_bytes(data[i : i + 2], "big") for i in range(0, len(data), 2))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total ^ 0xFFFF


def _xor(data: bytes, size: int) -> int:
    value = 0
    for i in range(0, len(data), size):
        value ^= int.from_bytes(data[i : i + size].ljust(size, b"\0"), "big")
    return value


ALGORITHMS: dict[str, Callable[[bytes], int]] = {
    "crc16": crc16,
    "crc16_custom": crc16,
    "crc32": binascii.crc32,
    "crc32_custom": binascii.crc32,
    "crcCCITT": lambda data: binascii.crc_hqx(data, 0xFFFF),  # polynomial 0x1021, not reflected
    "csum16": csum16,
    "cksum16": csum16,
    "identity": lambda data: int.from_bytes(data[:8], "big"),
    "xor16": partial(_xor, size=2),
    "xor32": partial(_xor, size=4),
}
