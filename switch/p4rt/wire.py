"""The protobuf wire format, for the few messages whose cost matters.

Building and serialising one TableEntry message by message costs microseconds, in pure Python tens of them. Entries are
read back far more often than they change, and a pipeline is pushed to hundreds of devices, so those bytes are composed
here: a field is its tag and its payload, and a message is its fields in order of their numbers. Tags come from the
descriptors, so nothing here repeats a field number.
"""

import math
from collections.abc import Iterator
from typing import Any

from switch.p4rt.errors import exhausted, invalid

__all__ = ["block", "fields", "number", "tag", "tags"]

VARINT, FIXED64, LENGTH, FIXED32 = 0, 1, 2, 5
_WIRE_TYPE_VARINT = ("TYPE_UINT32", "TYPE_UINT64", "TYPE_INT32", "TYPE_INT64", "TYPE_BOOL", "TYPE_ENUM")


def varint(value: int) -> bytes:
    """A non-negative integer in base 128; a negative int64 as its two's complement in ten bytes."""
    if 0 <= value < 0x80:
        return bytes((value,))
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def tag(message: Any, name: str) -> bytes:
    """The tag of field `name` of a generated message class."""
    descriptor = message.DESCRIPTOR.fields_by_name[name]
    scalar = {getattr(descriptor, kind) for kind in _WIRE_TYPE_VARINT}
    return varint(descriptor.number << 3 | (VARINT if descriptor.type in scalar else LENGTH))


def tags(message: Any, *names: str) -> tuple[bytes, ...]:
    """The tags of several fields of one message."""
    return tuple(tag(message, name) for name in names)


def number(field_tag: bytes, value: int) -> bytes:
    """An integer field; proto3 leaves a zero out."""
    return field_tag + varint(value) if value else b""


def block(field_tag: bytes, payload: bytes) -> bytes:
    """A bytes or message field, also when the payload is empty (a message that is set)."""
    size = len(payload)
    return field_tag + (bytes((size,)) if size < 0x80 else varint(size)) + payload


def fields(data: bytes, most: float = math.inf) -> Iterator[tuple[int, int, int, int]]:
    """Each field as (number, wire type, payload start, payload end). Raises P4RuntimeError on malformed bytes, and on
    more than `most` fields."""
    position, size = 0, len(data)
    count = 0
    while position < size:
        start = position
        if (count := count + 1) > most:
            raise exhausted(f"a message of this kind must have at most {most} fields")
        key, position = _read_varint(data, position)
        kind = key & 7
        if kind == VARINT:
            payload = position
            _, position = _read_varint(data, position)
        elif kind == LENGTH:
            length, payload = _read_varint(data, position)
            position = payload + length
        elif kind in (FIXED64, FIXED32):
            payload = position
            position += 8 if kind == FIXED64 else 4
        else:
            raise invalid(f"malformed protobuf message: wire type {kind} at byte {start}")
        if position > size:
            raise invalid(f"malformed protobuf message: field at byte {start} ends beyond the message")
        yield key >> 3, kind, payload, position


def _read_varint(data: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if position >= len(data) or shift > 63:
            raise invalid(f"malformed protobuf message: bad varint at byte {position}")
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7
