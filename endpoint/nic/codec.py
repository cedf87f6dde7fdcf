"""The codec's hottest calls in C, which `./lab compile` builds beside the compiled form.

Without a build that fits, `IN_C` is false, and the Python beside each call does the same work: `endpoint.mrc.endpoint`
for `usual`, `endpoint.nic.packet` for `write` and `SEAL`, `endpoint.mrc.responder` for `sack`, `endpoint.nic.memory`
for `PLACE`. That Python is the oracle of the C.

Compiled Python calls the C of `native/codec_direct.c` in place of the functions in small letters, with integers as
compiled code has them: no Python object is made for a number.
"""

from collections.abc import Callable
from typing import Final

Frame = bytes | memoryview
Memory = bytearray | memoryview

_place: Callable[[Memory, int, Frame, int, int], None] | None = None
_seal: Callable[[bytes, int, bytearray], bytes] | None = None
try:
    from endpoint.nic.native import codec_native
except ImportError:  # interpreted, or compiled without the C codec
    pass
else:
    _place, _seal = codec_native.place, codec_native.seal

IN_C: Final = _seal is not None
PLACE: Final = _place
"""`PLACE(memory, at, frame, start, size)`: copy `size` bytes of the frame, from byte `start` on, to byte `at` of the
memory. Raises `ValueError`, and copies nothing, if they are not inside both."""
SEAL: Final = _seal
"""`SEAL(headers, class, transport)`: a whole frame around a transport packet whose variant byte is 0xff. `headers` are
`Route.headers`. Raises `OverflowError` and `ValueError` as `write` does."""


def usual(frame: Frame, address: bytes, addresses: bytes, trimmed: int, port: int, counted: bool) -> bool:
    """Whether a frame is a write, a SACK, a transport acknowledgement, an endpoint request or an endpoint response, has
    that header whole, and an outer IPv6 header, is without TSETH, as long as its inner header says, with a right ICRC,
    to `address` at UDP port `port`, by one of the outer `addresses` (16 bytes each, one after the other), and whose
    outer DSCP has no bit in `trimmed`. False for every other frame, of any bytes and length, and says nothing about
    why. With `counted` a write may leave its payload out; its inner header says how long it is with it."""
    raise NotImplementedError


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
    raise NotImplementedError


def sack(
    headers: bytes, traffic_class: int, destination: int, cack: int, first: int, answer: int, ev: int, mpr: int,
    start: int, bitmap: int, stamp: int, beyond: int, congestion: int,
) -> bytes:  # fmt: skip
    """A whole frame of a SACK, its arguments as in `endpoint.mrc.responder`. Raises `OverflowError` as `write` does."""
    raise NotImplementedError
