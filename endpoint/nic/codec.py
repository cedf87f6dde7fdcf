"""The codec's hottest calls in C, which `./lab compile` builds beside the compiled form.

Without a build that fits, all that is named in capitals is None, and the Python beside each call does the same work:
`endpoint.mrc.receiver` for `USUAL`, `endpoint.nic.memory` for `PLACE`, `endpoint.nic.packet` for `WRITE` and
`SEAL`, `endpoint.mrc.answers` for `SACK`. That Python is the oracle of the C.

The functions in small letters are called once the C is there. Compiled Python calls the C of the same name in
`native/codec_direct.c` instead, with integers as compiled code has them: no Python object is made for a number.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

Frame = bytes | memoryview
Memory = bytearray | memoryview

_usual: Callable[[Frame, bytes, bytes, int, int, bool], bool] | None = None
_place: Callable[[Memory, int, Frame, int, int], None] | None = None
_write: Callable[[bytes, int, int, int, int, int, int, int, int, int, Memory | None, int, int, bytes], bytes] | None = (
    None
)
_sack: Callable[[bytes, int, int, int, int, int, int, int, int, int, int, int, int], bytes] | None = None
_seal: Callable[[bytes, int, bytearray], bytes] | None = None
try:
    from endpoint.nic.native import codec_native
except ImportError:  # interpreted, or compiled without the C codec
    pass
else:
    _usual, _place, _write = codec_native.usual, codec_native.place, codec_native.write
    _sack, _seal = codec_native.sack, codec_native.seal

USUAL: Final = _usual
PLACE: Final = _place
"""`PLACE(memory, at, frame, start, size)`: copy `size` bytes of the frame, from byte `start` on, to byte `at` of the
memory. Raises `ValueError`, and copies nothing, if they are not inside both."""
WRITE: Final = _write
SACK: Final = _sack
SEAL: Final = _seal
"""`SEAL(headers, class, transport)`: a whole frame around a transport packet whose variant byte is 0xff. `headers` are
`Route.headers`. Raises `OverflowError` and `ValueError` as `write` does."""


def usual(frame: Frame, address: bytes, addresses: bytes, trimmed: int, port: int, counted: bool) -> bool:
    """Whether a frame is a write, a SACK, a transport acknowledgement, an endpoint request or an endpoint response, has
    that header whole, and an outer IPv6 header, is without TSETH, as long as its inner header says, with a right ICRC,
    to `address` at UDP port `port`, by one of the outer `addresses` (16 bytes each, one after the other), and whose
    outer DSCP has no bit in `trimmed`. False for every other frame, of any bytes and length, and says nothing about
    why. With `counted` a write may leave its payload out; its inner header says how long it is with it."""
    assert USUAL is not None
    return USUAL(frame, address, addresses, trimmed, port, counted)


def has(frame: Frame, at: int, part: bytes) -> bool:
    """Whether the frame has these bytes from byte `at` on."""
    return frame[at : at + len(part)] == part


def u16(frame: Frame, at: int) -> int:
    """Two bytes of a frame as a number. Raises `IndexError` outside of it."""
    return frame[at] << 8 | frame[at + 1]


def u32(frame: Frame, at: int) -> int:
    """Four bytes."""
    return u16(frame, at) << 16 | u16(frame, at + 2)


def u64(frame: Frame, at: int) -> int:
    """Eight bytes."""
    return u32(frame, at) << 32 | u32(frame, at + 4)


def write(
    headers: bytes, traffic_class: int, opcode: int, second: int, destination: int, flags_psn: int, meth: int, va: int,
    rkey: int, length: int, memory: Memory | None, start: int, size: int, immediate: bytes,
) -> bytes:  # fmt: skip
    """A whole frame of a write whose payload is the `size` bytes of `memory` from `start` on, without TSETH and pad.

    Without memory the frame leaves its payload out, and its ICRC is that of its headers. `headers` are
    `Route.headers`; `destination` has 0xff in the variant byte, as in `WritePacker`; `flags_psn` has the flags above
    the PSN; `immediate` has four bytes, or none. Raises `OverflowError` for a field that is too large for its header,
    `ValueError` if the payload is not inside the memory or the immediate has another length."""
    assert WRITE is not None
    return WRITE(
        headers, traffic_class, opcode, second, destination, flags_psn, meth, va, rkey, length, memory, start, size,
        immediate,
    )  # fmt: skip


def sack(
    headers: bytes, traffic_class: int, destination: int, cack: int, first: int, answer: int, ev: int, mpr: int,
    start: int, bitmap: int, stamp: int, beyond: int, congestion: int,
) -> bytes:  # fmt: skip
    """A whole frame of a SACK, its arguments as in `endpoint.mrc.answers`. Raises `OverflowError` as `write` does."""
    assert SACK is not None
    return SACK(
        headers, traffic_class, destination, cack, first, answer, ev, mpr, start, bitmap, stamp, beyond, congestion
    )
