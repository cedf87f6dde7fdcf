"""P4Runtime byte strings: unsigned integers, big-endian, as short as possible (specification, "Bytestrings").

A value that does not fit is INVALID_ARGUMENT, as the sections on match fields, action parameters, registers and packet
metadata say, and as simple_switch_grpc answers; the section on byte strings alone would have it OUT_OF_RANGE.
"""

from switch.p4rt.errors import P4RuntimeError, invalid

SHOWN_BYTES_MAX = 32  # of a client's value in a message


def encode(value: int) -> bytes:
    """The canonical byte string of a non-negative integer; zero takes one byte."""
    return value.to_bytes((value.bit_length() + 7) // 8 or 1, "big")


def decode(value: bytes, bits: int, what: str) -> int:
    """The integer in `value`, which may carry leading zeros. Raises P4RuntimeError naming `what`."""
    number = int.from_bytes(value, "big")
    if value and not number >> bits:
        return number
    raise misfit(value, bits, what)


def misfit(value: bytes, bits: int, what: str) -> P4RuntimeError:
    if not value:
        return invalid(f"{what}: the value is an empty byte string; zero is one byte 0x00")
    number = int.from_bytes(value, "big")
    shown = value[:SHOWN_BYTES_MAX].hex()
    rest = f"… ({len(value)} bytes)" if len(value) > SHOWN_BYTES_MAX else ""
    return invalid(
        f"{what}: 0x{shown}{rest} needs {number.bit_length()} bits, but the width is bit<{bits}> "
        f"(at most 0x{(1 << bits) - 1:x})"
    )
