"""Integrity checks of other dialects than InfiniBand's: where packets carry none, or a CRC of another kind.

The transport knows one check, InfiniBand's ICRC. In another dialect a NIC translates every frame at its edge: a frame
that arrives gets an ICRC if its own check is right, and is left alone otherwise, so that the transport drops and counts
it; a frame that leaves gets the dialect's check in place of the ICRC. Every length then is the one that the transport
expects, also where the check is absent: a port accounts for four bytes more than travel.

MRC-Client's check is computed over everything from the BTH to the pad with nothing masked, most significant byte first.
Its polynomial is CRC-32C's, but written for a register that shifts left, in one that shifts right; so it is neither
CRC-32 nor CRC-32C.
"""

from __future__ import annotations

from struct import Struct, error
from typing import Final

from endpoint.nic import frame as frames
from endpoint.nic import icrc
from endpoint.nic.dialect import Dialect
from endpoint.nic.wire import BTH_BYTES

Buffer = bytes | bytearray | memoryview
Frame = bytes | memoryview

LENGTH: Final = Struct("!H")
BIG: Final = Struct("!I")
PAYLOAD_LENGTH: Final = 4
"""Where the length is in an IPv6 header, and in a UDP header."""
POLYNOMIAL: Final = 0x1EDC6F41


def _table() -> tuple[int, ...]:
    found = []
    for value in range(256):
        for _ in range(8):
            value = value >> 1 ^ (POLYNOMIAL if value & 1 else 0)
        found.append(value)
    return tuple(found)


TABLE: Final = _table()


def client_crc(data: Buffer) -> int:
    """MRC-Client's check of a packet from its BTH to its pad."""
    state = 0xFFFFFFFF
    for byte in data:
        state = state >> 8 ^ TABLE[(state ^ byte) & 0xFF]
    return state ^ 0xFFFFFFFF


class Check:
    """What a NIC does at its edge; a base class and no protocol, so that compiled code calls it directly."""

    def taken(self, data: Frame) -> Frame:
        """A frame that has arrived, of any bytes, as InfiniBand's dialect has it if its check is right."""
        raise NotImplementedError

    def given(self, data: bytes) -> bytes:
        """A frame that this NIC sends, with the dialect's check."""
        raise NotImplementedError


class ClientCheck(Check):
    """MRC-Client's."""

    def taken(self, data: Frame) -> Frame:
        place = located(data)
        if place is None or place.end > len(data) or place.end - icrc.SIZE < place.bth + BTH_BYTES:
            return data
        body = memoryview(data)[place.bth : place.end - icrc.SIZE]
        if BIG.pack(client_crc(body)) != bytes(data[place.end - icrc.SIZE : place.end]):
            return data
        return sealed(bytearray(data[: place.end - icrc.SIZE]), place.offset)

    def given(self, data: bytes) -> bytes:
        bth = frames.parse(data).bth
        return data[: -icrc.SIZE] + BIG.pack(client_crc(memoryview(data)[bth : -icrc.SIZE]))


class NoCheck(Check):
    """None at all: a packet ends with its payload or pad."""

    def taken(self, data: Frame) -> Frame:
        place = located(data)
        if place is None or place.udp_end < place.bth + BTH_BYTES:
            return data
        made = lengthened(data, place, icrc.SIZE)
        if place.udp_end > len(data):  # trimmed
            return bytes(made)
        return sealed(made[: place.udp_end], place.offset)

    def given(self, data: bytes) -> bytes:
        return bytes(lengthened(data, frames.parse(data), -icrc.SIZE)[: -icrc.SIZE])


def of(dialect: Dialect) -> Check | None:
    """The translation that this dialect needs, if any."""
    return {"mrc-client": ClientCheck, "absent": NoCheck}.get(dialect.icrc, lambda: None)()


def located(data: Buffer) -> frames.Frame | None:
    """The places of a frame's headers; None if it is no frame of MRC's form, which is the transport's to say."""
    try:
        return frames.parse(data)
    except (frames.MalformedFrame, error, IndexError):
        return None


def lengthened(data: Buffer, place: frames.Frame, by: int) -> bytearray:
    """The frame with all its lengths changed. A length that would leave its 16 bits stays."""
    made = bytearray(data)
    lengths = [place.offset + PAYLOAD_LENGTH, place.offset + frames.IPV6 + PAYLOAD_LENGTH]
    if place.outer is not None:
        lengths.append(frames.ETHERNET + PAYLOAD_LENGTH)
    for at in lengths:
        (value,) = LENGTH.unpack_from(made, at)
        if 0 <= value + by <= 0xFFFF:
            LENGTH.pack_into(made, at, value + by)
    return made


def sealed(made: bytearray, offset: int) -> bytes:
    """The frame with its ICRC behind it; `offset` is where the inner IPv6 header starts."""
    return bytes(made + icrc.WIRE.pack(icrc.compute(memoryview(made)[offset:])))
