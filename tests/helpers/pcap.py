"""Ethernet frames in pcap files (draft-ietf-opsawg-pcap: microseconds, little-endian)."""

import struct

HEADER = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1)  # the last word: Ethernet
_RECORD = struct.Struct("<IIII")


def record(seconds: int, microseconds: int, frame: bytes) -> bytes:
    return _RECORD.pack(seconds, microseconds, len(frame), len(frame)) + frame


def frames(data: bytes) -> list[bytes]:
    """Those of a whole file; a record that is still being written is left out."""
    found, at = [], len(HEADER)
    while at + _RECORD.size <= len(data):
        _, _, size, _ = _RECORD.unpack_from(data, at)
        at += _RECORD.size + size
        if at <= len(data):
            found.append(data[at - size : at])
    return found
