"""MRC-Client's integrity check, in the dialect that has it in place of InfiniBand's.

The transport knows one check, InfiniBand's ICRC. In the other dialect a NIC translates every frame at its edge: a frame
that arrives gets an ICRC if its own check is right, and is left alone otherwise, so that the transport drops and counts
it; a frame that leaves gets MRC-Client's check in place of the ICRC.

The check is computed over everything from the BTH to the pad with nothing masked, most significant byte first. Its
polynomial is CRC-32C's, but written for a register that shifts left, in one that shifts right; so it is neither CRC-32
nor CRC-32C.
"""

from struct import Struct, error
from typing import Final

from endpoint.nic import frame as frames
from endpoint.nic import icrc
from endpoint.nic.wire import BTH_BYTES

Buffer = bytes | bytearray | memoryview
Frame = bytes | memoryview

BIG: Final = Struct("!I")
POLYNOMIAL: Final = 0x1EDC6F41


def _table() -> tuple[int, ...]:
    table = []
    for value in range(256):
        for _ in range(8):
            value = value >> 1 ^ (POLYNOMIAL if value & 1 else 0)
        table.append(value)
    return tuple(table)


TABLE: Final = _table()


def client_crc(data: Buffer) -> int:
    """MRC-Client's check of a packet from its BTH to its pad."""
    state = 0xFFFFFFFF
    for byte in data:
        state = state >> 8 ^ TABLE[(state ^ byte) & 0xFF]
    return state ^ 0xFFFFFFFF


def taken(data: Frame) -> Frame:
    """A frame that has arrived, of any bytes: with InfiniBand's ICRC if MRC-Client's check is right."""
    try:
        place = frames.parse(data)
    except (frames.MalformedFrame, error, IndexError):
        return data  # the transport counts it
    end = place.end - icrc.SIZE
    if place.end > len(data) or end < place.bth + BTH_BYTES:
        return data
    if BIG.pack(client_crc(memoryview(data)[place.bth : end])) != bytes(data[end : place.end]):
        return data
    made = bytes(data[:end])
    return made + icrc.WIRE.pack(icrc.compute(memoryview(made)[place.offset :]))


def with_client_check(data: bytes) -> bytes:
    """A frame that this NIC sends, with MRC-Client's check in place of the ICRC."""
    bth = frames.parse(data).bth
    return data[: -icrc.SIZE] + BIG.pack(client_crc(memoryview(data)[bth : -icrc.SIZE]))
