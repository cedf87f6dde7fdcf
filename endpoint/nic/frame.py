"""The headers in front of the BTH: Ethernet, one or two IPv6 headers, UDP; built and taken apart as whole frames.

With SRv6 the outer destination is the uSID list and the inner one the NIC; without, there is one IPv6 header. Both
carry the same traffic class and the same flow label. Frames of others may have a segment routing header
(RFC 8754) behind the outer header, which is read over. This is the plain way, for control packets,
tests and tools; the transport sends data from templates (`endpoint.nic.packet`).
"""

from struct import Struct
from typing import Final, NamedTuple

from endpoint.nic import icrc
from endpoint.nic.dialect import DEFAULT, EV_BITS, Dialect

__all__ = ["ECN_CAPABLE", "ETHERNET", "IPV6", "UDP", "headers", "parse", "seal"]

Buffer = bytes | bytearray | memoryview

ETHERTYPE_IPV6: Final = 0x86DD
NEXT_IPV6: Final = 41
NEXT_UDP: Final = 17
NEXT_ROUTING: Final = 43
SEGMENT_ROUTING: Final = 4
HOP_LIMIT: Final = 64
ETHERNET: Final = 14
IPV6: Final = 40
UDP: Final = 8

_IPV6: Final = Struct("!IHBB16s16s")
_UDP: Final = Struct("!HHHH")
_LENGTH: Final = Struct("!H")
_PLAIN: Final = Struct("!6s6sH IHBB16s16s HHHH")
_ENCAPSULATED: Final = Struct("!6s6sH IHBB16s16s IHBB16s16s HHHH")

LABEL_MASK: Final = (1 << 20) - 1
ECN_MASK: Final = 3
ECN_CAPABLE: Final = 2  # ECT(0)
ECN_MARKED: Final = 3  # CE


def stripe(ev: int, dialect: Dialect = DEFAULT) -> tuple[int, int]:
    """UDP source port and flow label of an EV: the low half of its 32 bits in the port, the high half in the low 16
    of the 20-bit label. MRC-Client's dialect carries 20 bits only, all in the label and the low 16 in the port."""
    return ev & 0xFFFF, ev >> 16 if dialect.ev_bits == EV_BITS else ev & LABEL_MASK


def unstripe(source_port: int, flow_label: int, dialect: Dialect = DEFAULT) -> int:
    """The EV of a packet; `flow_label` may have other bits above its 20."""
    if dialect.ev_bits == EV_BITS:
        return (flow_label & 0xFFFF) << 16 | source_port
    return flow_label & LABEL_MASK


class MalformedFrame(ValueError):  # noqa: N818 (what it is, not that something failed)
    """The bytes are no frame that this NIC takes; the message says what is wrong."""


class Frame(NamedTuple):
    """A frame taken apart as far as UDP. Traffic class and lengths are the outermost header's."""

    outer: tuple[bytes, bytes] | None
    """Source and destination of the outer IPv6 header, None without encapsulation."""
    src: bytes
    dst: bytes
    traffic_class: int
    ev: int
    udp_dport: int
    offset: int
    """Where the inner IPv6 header starts."""
    end: int
    """Where the inner packet ends by its IPv6 header's length; beyond the frame's end if the packet was cut."""
    udp_end: int
    """Where the packet ends by its UDP header's length, which a switch that trims leaves alone."""

    @property
    def bth(self) -> int:
        """Where the BTH starts."""
        return self.offset + IPV6 + UDP

    @property
    def dscp(self) -> int:
        return self.traffic_class >> 2

    @property
    def marked(self) -> bool:
        """Congestion experienced (RFC 3168)."""
        return self.traffic_class & ECN_MASK == ECN_MARKED


def headers(
    *,
    ether_dst: bytes,
    ether_src: bytes,
    outer: tuple[bytes, bytes] | None,
    src: bytes,
    dst: bytes,
    traffic_class: int,
    ev: int,
    udp_dport: int,
    length: int,
    dialect: Dialect = DEFAULT,
) -> bytes:
    """Everything in front of a BTH. `length` is that of BTH, extension headers, data, pad and ICRC."""
    source_port, label = stripe(ev, dialect)
    first = 6 << 28 | traffic_class << 20
    if outer is None:
        return _PLAIN.pack(
            ether_dst, ether_src, ETHERTYPE_IPV6,
            first | label, UDP + length, NEXT_UDP, HOP_LIMIT, src, dst,
            source_port, udp_dport, UDP + length, 0,
        )  # fmt: skip
    outer_src, outer_dst = outer
    return _ENCAPSULATED.pack(
        ether_dst, ether_src, ETHERTYPE_IPV6,
        first | label, IPV6 + UDP + length, NEXT_IPV6, HOP_LIMIT, outer_src, outer_dst,
        first | label, UDP + length, NEXT_UDP, HOP_LIMIT, src, dst,
        source_port, udp_dport, UDP + length, 0,
    )  # fmt: skip


def filled(template: bytes, traffic_class: int, length: int) -> bytes:
    """`headers` made for traffic class 0 and no bytes, with this class, in front of `length` bytes."""
    front = bytearray(template)
    udp = len(front) - UDP
    for ipv6 in {ETHERNET, udp - IPV6}:  # one where nothing is encapsulated
        front[ipv6] |= traffic_class >> 4
        front[ipv6 + 1] |= traffic_class << 4 & 0xFF
        _LENGTH.pack_into(front, ipv6 + 4, len(front) - ipv6 - IPV6 + length)
    _LENGTH.pack_into(front, udp + 4, UDP + length)
    return bytes(front)


def seal(front: bytes, transport: bytes) -> bytes:
    """A whole frame: `front` from `headers`, `transport` from the BTH to the pad; the ICRC is added."""
    offset = len(front) - IPV6 - UDP
    frame = front + transport
    return frame + icrc.WIRE.pack(icrc.compute(memoryview(frame)[offset:]))


def left_out(data: Buffer) -> int:
    """Bytes of payload that a counted frame leaves out; 0 for every other frame, whole or cut.

    The headers of a counted frame say how long it is with its payload, and its ICRC is that of the headers alone.
    """
    size = len(data)
    if size < ETHERNET + IPV6 + UDP or data[12] != 0x86 or data[13] != 0xDD:
        return 0
    length = ETHERNET + IPV6 + (data[18] << 8 | data[19])
    offset = ETHERNET + IPV6 if data[20] == NEXT_IPV6 else ETHERNET
    if length <= size or not icrc.verify(memoryview(data)[offset:]):
        return 0
    return length - size


def parse(data: Buffer, dialect: Dialect = DEFAULT) -> Frame:
    """Take a frame apart as far as UDP; the ICRC is not looked at. Raises `MalformedFrame`."""
    if len(data) < ETHERNET + IPV6 + UDP:
        raise MalformedFrame(f"{len(data)} bytes are too few for Ethernet, IPv6 and UDP")
    if data[12] != 0x86 or data[13] != 0xDD:
        raise MalformedFrame("the ethertype is not IPv6")
    first, length, next_header, _, src, dst = _IPV6.unpack_from(data, ETHERNET)
    outer: tuple[bytes, bytes] | None = None
    offset, inner_first = ETHERNET, first
    behind = ETHERNET + IPV6
    if next_header == NEXT_ROUTING:
        next_header, behind = _behind_routing(data, behind)
    if next_header == NEXT_IPV6:
        outer, offset = (src, dst), behind
        if len(data) < offset + IPV6 + UDP:
            raise MalformedFrame(f"{len(data)} bytes are too few for the inner IPv6 and UDP")
        inner_first, length, next_header, _, src, dst = _IPV6.unpack_from(data, offset)
    if first >> 28 != 6 or inner_first >> 28 != 6:
        raise MalformedFrame("the IP version is not 6")
    if next_header != NEXT_UDP:
        raise MalformedFrame(f"the next header is {next_header}, not UDP")
    source_port, dport, udp_length, _ = _UDP.unpack_from(data, offset + IPV6)
    ev = unstripe(source_port, inner_first, dialect)
    end, udp_end = offset + IPV6 + length, offset + IPV6 + udp_length
    return Frame(outer, src, dst, first >> 20 & 0xFF, ev, dport, offset, end, udp_end)


def _behind_routing(data: Buffer, at: int) -> tuple[int, int]:
    """The header that follows the segment routing header at `at`, and its place. Raises `MalformedFrame`."""
    if data[at + 2] != SEGMENT_ROUTING:
        raise MalformedFrame(f"the routing header has type {data[at + 2]}, not 4 (segment routing)")
    if data[at] != NEXT_IPV6:
        raise MalformedFrame(f"the next header behind the segment routing header is {data[at]}, not IPv6")
    return data[at], at + 8 * (1 + data[at + 1])
