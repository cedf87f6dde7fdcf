"""Classic BPF programs that recognise MRC frames: for packet sockets (SO_ATTACH_FILTER) and for `tc`.

Offsets count from the first byte of Ethernet. Both kinds of frame are known: IPv6 in IPv6 (SRv6 encapsulation), where
the UDP header is the inner one's, and plain IPv6. Trimmed packets still have these headers.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

ACCEPT_WHOLE, REJECT = 0x40000, 0
# UDP destination ports of MRC: RoCEv2's, and the one that the MRC specification prints as its default.
UDP_PORTS = (4791, 4971)

_LOAD_HALF, _LOAD_BYTE = 0x28, 0x30  # from an absolute offset into A
_JUMP, _JUMP_EQUAL, _RETURN = 0x05, 0x15, 0x06  # always; if A equals k; with k


class Instruction(NamedTuple):
    """struct sock_filter: jumps count instructions after this one."""

    code: int
    jump_true: int
    jump_false: int
    k: int


Program = tuple[Instruction, ...]


def udp_over_ipv6(ports: Sequence[int], matched: int, otherwise: int) -> Program:
    """Return `matched` for frames whose UDP destination port, inner if encapsulated, is one of `ports`."""
    compare = [("", _JUMP_EQUAL, port, "hit", "") for port in dict.fromkeys(ports)]
    return _assemble(
        [
            ("", _LOAD_HALF, 12, "", ""),  # EtherType
            ("", _JUMP_EQUAL, 0x86DD, "", "miss"),
            ("", _LOAD_BYTE, 20, "", ""),  # outer next header
            ("", _JUMP_EQUAL, 17, "plain", ""),
            ("", _JUMP_EQUAL, 41, "", "miss"),
            ("", _LOAD_BYTE, 60, "", ""),  # inner next header
            ("", _JUMP_EQUAL, 17, "", "miss"),
            ("", _LOAD_HALF, 96, "", ""),  # inner UDP destination port
            ("", _JUMP, 0, "compare", ""),
            ("plain", _LOAD_HALF, 56, "", ""),
            ("compare", _JUMP, 0, "", ""),
            *compare,
            ("miss", _RETURN, otherwise, "", ""),
            ("hit", _RETURN, matched, "", ""),
        ]
    )


def _assemble(lines: list[tuple[str, int, int, str, str]]) -> Program:
    """(label, code, k, label if true, label if false) a line; no label to jump to means the next line."""
    places = {label: place for place, (label, *_rest) in enumerate(lines) if label}
    program = []
    for place, (_label, code, k, if_true, if_false) in enumerate(lines):
        true, false = (places[label] - place - 1 if label else 0 for label in (if_true, if_false))
        program.append(Instruction(code, 0, 0, true) if code == _JUMP else Instruction(code, true, false, k))
    return tuple(program)


@contextmanager
def attachable(program: Program) -> Iterator[bytes]:
    """The struct sock_fprog for setsockopt; it points into memory that lives as long as the context."""
    packed = b"".join(struct.pack("HBBI", *instruction) for instruction in program)
    memory = ctypes.create_string_buffer(packed, len(packed))
    yield struct.pack("HP", len(program), ctypes.addressof(memory))


def tc_bytecode(program: Program) -> str:
    """The program as `tc filter … bpf bytecode` takes it."""
    return f"{len(program)}," + ",".join(" ".join(map(str, instruction)) for instruction in program)


def run(program: Program, frame: bytes) -> int:
    """What the kernel would return: for tests and for worlds without a kernel. A load beyond the frame returns 0."""
    accumulator, place = 0, 0
    while True:
        code, jump_true, jump_false, k = program[place]
        if code == _RETURN:
            return k
        place += 1
        if code == _JUMP:
            place += k
        elif code == _JUMP_EQUAL:
            place += jump_true if accumulator == k else jump_false
        else:
            size = 2 if code == _LOAD_HALF else 1
            if k + size > len(frame):
                return 0
            accumulator = int.from_bytes(frame[k : k + size], "big")
