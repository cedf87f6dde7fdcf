"""Classic BPF programs (linux/filter.h): written with labels, run by packet sockets, by `tc`, or by us."""

import ctypes
import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

__all__ = [
    "JUMP", "JUMP_AT_LEAST", "JUMP_EQUAL", "LOAD_BYTE", "LOAD_HALF", "LOAD_WORD", "RANDOM", "RETURN", "Instruction",
    "Line", "Program", "assemble", "attachable", "run", "tc_bytecode",
]  # fmt: skip

LOAD_WORD, LOAD_HALF, LOAD_BYTE = 0x20, 0x28, 0x30  # from an absolute offset into A
JUMP, JUMP_EQUAL, JUMP_AT_LEAST, RETURN = 0x05, 0x15, 0x35, 0x06  # always; if A equals k; if A >= k; return k
RANDOM = 0xFFFFF038  # the offset SKF_AD_OFF + SKF_AD_RANDOM: a load from it is a random number
_LOAD_BYTES = {LOAD_WORD: 4, LOAD_HALF: 2, LOAD_BYTE: 1}


class Line(NamedTuple):
    """A line of a program. A jump without a label goes on with the next line."""

    code: int
    k: int = 0
    true: str = ""
    false: str = ""
    label: str = ""


class Instruction(NamedTuple):
    """struct sock_filter: jumps count instructions after this one."""

    code: int
    jump_true: int
    jump_false: int
    k: int


Program = tuple[Instruction, ...]


def assemble(lines: Sequence[Line]) -> Program:
    """The program with each label replaced by the distance to its line. KeyError for a label that no line has."""
    places = {line.label: place for place, line in enumerate(lines) if line.label}
    program = []
    for place, line in enumerate(lines):
        true, false = (places[label] - place - 1 if label else 0 for label in (line.true, line.false))
        always = line.code == JUMP
        program.append(Instruction(line.code, 0, 0, true) if always else Instruction(line.code, true, false, line.k))
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
    """The number that the kernel would return for a frame: for tests and for worlds without a kernel.

    A load beyond the frame ends the program with 0.
    """
    accumulator, place = 0, 0
    while True:
        code, jump_true, jump_false, k = program[place]
        if code == RETURN:
            return k
        place += 1
        if code == JUMP:
            place += k
        elif code == JUMP_EQUAL:
            place += jump_true if accumulator == k else jump_false
        elif code == JUMP_AT_LEAST:
            place += jump_true if accumulator >= k else jump_false
        else:
            end = k + _LOAD_BYTES[code]
            if end > len(frame):
                return 0
            accumulator = int.from_bytes(frame[k:end], "big")
