"""Building packets fast: everything in front of a BTH is made once per path, length and class, and reused.

A write costs one `pack` for all headers behind UDP, two CRC calls and one join. The CRC's state after the masked
IPv6 and UDP headers is kept with the template; the BTH's variant byte is packed as 0xff (as the ICRC has it), and set
to 0 before the frame is put together.

Where the codec in C is built (`endpoint.nic.codec`), a path keeps its headers once, for all lengths and classes. Then
a write without immediate, stamp and pad costs one call, and so does the frame around a control packet.
"""

from struct import Struct
from typing import Final
from zlib import crc32

from endpoint.nic import codec, frame, icrc, wire
from endpoint.nic.dialect import DEFAULT, Dialect
from endpoint.nic.message import Message
from endpoint.nic.port import Port
from endpoint.nic.wire import PSN_MASK

WRITE: Final = Struct("!BBHIIHHQII")  # BTH, METH, RETH
SACK: Final = Struct("!BBHIIHhIHHIBBhQHHI")  # BTH, SETH, CC_STATE
VARIANT: Final = 4
"""The BTH byte that the ICRC leaves out."""
VARIANT_MASKED: Final = 0xFF << 24
ICRC: Final = icrc.WIRE

# Where the usual frame, SRv6-encapsulated and without TSETH, has its fields.
INNER_OFFSET: Final = frame.ETHERNET + frame.IPV6
UDP_OFFSET: Final = INNER_OFFSET + frame.IPV6
"""The inner IPv6 header's payload length counts from here."""
LENGTH_OFFSET: Final = INNER_OFFSET + 4
"""Of that length, 16 bits."""
BTH_OFFSET: Final = UDP_OFFSET + frame.UDP
QPN_OFFSET: Final = BTH_OFFSET + 4
PSN_OFFSET: Final = BTH_OFFSET + 8
"""Behind a byte of flags each, of which the words have 24 bits."""
SRC_OFFSET: Final = INNER_OFFSET + 8
BEHIND_BTH: Final = BTH_OFFSET + wire.BTH_BYTES
RETH_OFFSET: Final = BEHIND_BTH + wire.METH_BYTES
WRITE_PAYLOAD_OFFSET: Final = BTH_OFFSET + WRITE.size

_STAMP_OFFSET: Final = wire.BTH_BYTES + wire.METH_BYTES
_FRONTS_MAX: Final = 64
_NOTHING: Final = memoryview(b"")


class Route:
    """One path to one peer as bytes: the headers of all its packets in front of the BTH.

    Shared by all QPs to that peer. A host has one per path and peer, so each keeps little.
    """

    def __init__(
        self,
        ev: int,
        port: Port,
        via: str | None,
        da: bytes,
        src: bytes,
        dst: bytes,
        udp_port: int,
        encapsulated: bool,
        dialect: Dialect = DEFAULT,
    ) -> None:
        self.ev = ev
        self.port = port
        self.via = via
        self.headers = frame.headers(
            ether_dst=port.row.gateway_mac,
            ether_src=port.row.mac,
            outer=(port.row.address.packed, da) if encapsulated else None,
            src=src,
            dst=dst,
            traffic_class=0,
            ev=ev,
            udp_dport=udp_port,
            length=0,
            dialect=dialect,
        )
        """Headers of traffic class 0 in front of no bytes at all; the codec, or `front`, puts class and lengths in."""
        self._fronts: dict[int, tuple[bytes, int]] | None = None

    def front(self, length: int, traffic_class: int) -> tuple[bytes, int]:
        """Headers in front of `length` bytes from BTH to ICRC, and the state of the ICRC behind them."""
        key = length << 8 | traffic_class
        fronts = self._fronts
        if fronts is None or len(fronts) >= _FRONTS_MAX:
            fronts = self._fronts = {}  # odd message lengths must not grow this without bound
        cached = fronts.get(key)
        if cached is None:
            front = frame.filled(self.headers, traffic_class, length)
            cached = fronts[key] = front, icrc.front_state(front[len(front) - frame.IPV6 - frame.UDP :])
        return cached

    def seal(self, transport: bytearray, traffic_class: int) -> bytes:
        """A whole frame around a transport packet whose variant byte is packed as 0xff. The packet is used up."""
        if codec.SEAL is not None:
            return codec.SEAL(self.headers, traffic_class, transport)
        front, state = self.front(len(transport) + icrc.SIZE, traffic_class)
        crc = crc32(transport, state)
        transport[VARIANT] = 0
        return b"".join((front, transport, ICRC.pack(crc)))


def left_out(message: Message, size: int) -> int:
    """Bytes that the frame of `size` bytes of this message leaves out: payload and pad, or none."""
    return size + (-size & 3) if message.counted else 0


class WritePacker:
    """Makes the frames of one QP's writes. `dest_masked` is the destination QP as packed with the variant byte,
    `solicited_bit` the SE bit in byte 1 of the BTH."""

    def __init__(
        self, dest_masked: int, pmtu: int, stamp_ns: int, stamp_resolution: int, solicited_bit: int = 0x80
    ) -> None:
        self._dest = dest_masked
        self._pmtu = pmtu
        self._stamp_ns = stamp_ns
        self._stamp_resolution = stamp_resolution
        self._solicited_bit = solicited_bit

    def pack(
        self, message: Message, psn: int, size: int, flags: int, route: Route, traffic_class: int, now_ns: int
    ) -> bytes:
        """The frame of one packet of a message, `size` bytes of payload, with `flags` in BTH byte 8.

        A counted message's frame leaves payload and pad out: `left_out` says how many bytes.
        """
        ahead = (psn - message.first_psn) * self._pmtu
        start = message.offset + ahead
        pad = -size & 3
        second = pad << 4
        immediate = b""
        if psn != message.last_psn:
            opcode = wire.OP_WRITE_MIDDLE if ahead else wire.OP_WRITE_FIRST
        elif message.immediate is None:
            opcode = wire.OP_WRITE_LAST if ahead else wire.OP_WRITE_ONLY
        else:
            opcode = wire.OP_WRITE_LAST_IMM if ahead else wire.OP_WRITE_ONLY_IMM
            immediate = wire.IMMEDIATE.pack(message.immediate)
            if message.solicited:
                second |= self._solicited_bit
        memory = message.region.buffer
        if codec.IN_C and not (pad or self._stamp_ns):
            meth = (message.imm_index & 0xFFFF) << 16 | message.index & 0xFFFF
            return codec.write(
                route.headers, traffic_class, opcode, second, self._dest, flags << 24 | psn & PSN_MASK, meth,
                message.remote_va + ahead, message.rkey, message.length, memory, start, size, immediate,
            )  # fmt: skip
        payload = _NOTHING if memory is None else memory[start : start + size]
        stamp = b""
        if self._stamp_ns:
            flags |= wire.TIMESTAMP
            stamp = wire.Tseth(now_ns // self._stamp_ns & 0xFFFF, self._stamp_resolution).pack()
        head = bytearray(
            WRITE.pack(
                opcode, second, 0xFFFF, self._dest, flags << 24 | psn & PSN_MASK,
                message.imm_index & 0xFFFF, message.index & 0xFFFF,
                message.remote_va + ahead, message.rkey, message.length,
            )
        )  # fmt: skip
        head[_STAMP_OFFSET:_STAMP_OFFSET] = stamp
        head += immediate
        padding = bytes(0 if memory is None else pad)
        front, state = route.front(len(head) + size + pad + icrc.SIZE, traffic_class)
        crc = crc32(padding, crc32(payload, crc32(head, state)))
        head[VARIANT] = 0
        return b"".join((front, head, payload, padding, ICRC.pack(crc)))
