"""P4Runtime byte strings: unsigned integers, big-endian, as short as possible (specification, "Bytestrings")."""

from __future__ import annotations

from switch.p4rt.errors import Code, P4RuntimeError


def encode(value: int) -> bytes:
    """The canonical byte string of a non-negative integer; zero takes one byte."""
    return value.to_bytes((value.bit_length() + 7) // 8 or 1, "big")


def decode(value: bytes, bits: int, what: str) -> int:
    """The integer in `value`, which may carry leading zeros. Raises P4RuntimeError (OUT_OF_RANGE) naming `what`."""
    number = int.from_bytes(value, "big")
    if value and not number >> bits:
        return number
    raise out_of_range(value, bits, what)


def out_of_range(value: bytes, bits: int, what: str) -> P4RuntimeError:
    if not value:
        return P4RuntimeError(Code.OUT_OF_RANGE, f"{what}: the value is an empty byte string; zero is one byte 0x00")
    number = int.from_bytes(value, "big")
    return P4RuntimeError(
        Code.OUT_OF_RANGE,
        f"{what}: 0x{value.hex()} needs {number.bit_length()} bits, but the width is bit<{bits}> "
        f"(at most 0x{(1 << bits) - 1:x})",
    )
