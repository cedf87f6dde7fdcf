"""The codec's hottest calls in C (`native/codec_native.c`), which `./lab compile` builds beside the compiled form.

Without a build that fits, all calls are None, and the Python beside each call does the same work:
`endpoint.mrc.receiver` for `READ`, `endpoint.nic.memory` for `PLACE`, `endpoint.nic.packet` for `WRITE` and
`SEAL`, `endpoint.mrc.answers` for `SACK`. That Python is the oracle of the C.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

Fields = tuple[int, bytes, int, int, int, int, int]
"""Of a usual frame, several in one number where they fit, since numbers cost more than shifts:

- the BTH's last word (flags and PSN) << 24 | the destination QP
- the inner source address
- the inner IPv6 header's first word << 16 | the UDP source port: in the default dialect the EV is the low 32 bits
- the outer IPv6 header's first word << 16 | the BTH's opcode << 8 | its second byte
- VA, rkey and length of a write's RETH. Others have 0 there; a transport acknowledgement has its AETH as the length.
"""
Memory = bytearray | memoryview

_read: Callable[[bytes | memoryview, bytes, bytes, int, int, bool], Fields | None] | None = None
_place: Callable[[Memory, int, bytes | memoryview, int, int], None] | None = None
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
    _read, _place, _write = codec_native.read, codec_native.place, codec_native.write
    _sack, _seal = codec_native.sack, codec_native.seal

READ: Final = _read
"""`READ(frame, address, addresses, trimmed, port, counted)`: the fields of a frame that is a write, a SACK, a transport
acknowledgement, an endpoint request or an endpoint response, has that header whole, and an outer IPv6 header, is
without TSETH, as long as its inner header says, with a right ICRC, to `address` at UDP port `port`, by one of the outer
`addresses` (16 bytes each, one after the other), and whose outer DSCP has no bit in `trimmed`. None for every other
frame, of any bytes and length: None says nothing about why. With `counted` a write may leave its payload
out; its inner header says how long it is with it."""
PLACE: Final = _place
"""`PLACE(memory, at, frame, start, size)`: copy `size` bytes of the frame, from byte `start` on, to byte `at` of the
memory. Raises `ValueError`, and copies nothing, if they are not inside both."""
WRITE: Final = _write
"""`WRITE(headers, class, opcode, second, destination, flags and PSN, METH, VA, rkey, length, memory, start, size,
immediate)`: a whole frame of a write whose payload is the `size` bytes of `memory` from `start` on, without TSETH and
pad. Without memory (None) the frame leaves its payload out, and its ICRC is that of its headers. `headers` are
`Route.headers`; `destination` has 0xff in the variant byte, as in `WritePacker`; `immediate` has
four bytes, or none. Raises `OverflowError` for a field that is too large for its header, `ValueError` if the payload is
not inside the memory or the immediate has another length."""
SACK: Final = _sack
"""`SACK(headers, class, destination, cack, first, answer, ev, mpr, start, bitmap, stamp, beyond, congestion)`: a whole
frame of a SACK, its arguments as in `endpoint.mrc.answers`. Raises `OverflowError` as `WRITE` does."""
SEAL: Final = _seal
"""`SEAL(headers, class, transport)`: a whole frame around a transport packet whose variant byte is 0xff. `headers` are
`Route.headers`. Raises `OverflowError` and `ValueError` as `WRITE` does."""
