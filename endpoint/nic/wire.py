"""Values in the headers behind UDP: opcodes, marks, reasons, flags. Their layouts are in `endpoint.nic.headers`.

A packet is `BTH | extension headers | [data | pad] | ICRC`, everything in network byte order but the ICRC
(`endpoint.nic.icrc`). Where readers of the specification disagree, `endpoint.nic.dialect` decides.
"""

from enum import IntEnum
from struct import Struct
from typing import Final

from endpoint.nic.headers import Aeth as Aeth
from endpoint.nic.headers import Bth, Buffer, Meth, Reth
from endpoint.nic.headers import CcState as CcState
from endpoint.nic.headers import Eeth as Eeth
from endpoint.nic.headers import Erth as Erth
from endpoint.nic.headers import Neth as Neth
from endpoint.nic.headers import Peth as Peth
from endpoint.nic.headers import Seth as Seth
from endpoint.nic.headers import Tseth as Tseth

__all__ = [
    "BTH_BYTES", "METH_BYTES", "RETH_BYTES", "Aeth", "Bth", "CcState", "Eeth", "Erth", "Meth", "Neth", "Opcode", "Peth",
    "Reth", "Seth",
]  # fmt: skip


PSN_BITS: Final = 24
"""Of a packet sequence number on the wire; inside, they are counted without end, so that nothing ever wraps."""
PSN_MASK: Final = (1 << PSN_BITS) - 1
PSN_HALF: Final = 1 << (PSN_BITS - 1)
ENDPOINT_QPN: Final = 0x2
"""Destination QP of endpoint requests and responses: they belong to no connection."""
MPR_UNIT: Final = 128
"""PSNs in one unit of the MPR (maximum PSN range) fields."""
SACK_BITS: Final = 64
TIMESTAMP_TICK_NS: Final = 128


# BTH opcodes as plain numbers, for code that every packet passes: comparing an enum's member costs a call.
OP_WRITE_FIRST: Final = 0xC6
OP_WRITE_MIDDLE: Final = 0xC7
OP_WRITE_LAST: Final = 0xC8
OP_WRITE_LAST_IMM: Final = 0xC9
OP_WRITE_ONLY: Final = 0xCA
OP_WRITE_ONLY_IMM: Final = 0xCB
OP_ACKNOWLEDGE: Final = 0xD1
OP_ENDPOINT_REQUEST: Final = 0xD8
OP_ENDPOINT_RESPONSE: Final = 0xD9
OP_SACK: Final = 0xDC
OP_NACK: Final = 0xDD
OP_PROBE: Final = 0xDE


class Opcode(IntEnum):
    """BTH opcodes. The top three bits are 0b110."""

    WRITE_FIRST = OP_WRITE_FIRST
    WRITE_MIDDLE = OP_WRITE_MIDDLE
    WRITE_LAST = OP_WRITE_LAST
    WRITE_LAST_IMM = OP_WRITE_LAST_IMM
    WRITE_ONLY = OP_WRITE_ONLY
    WRITE_ONLY_IMM = OP_WRITE_ONLY_IMM
    ACKNOWLEDGE = OP_ACKNOWLEDGE  # AETH
    ENDPOINT_REQUEST = OP_ENDPOINT_REQUEST  # ERTH
    ENDPOINT_RESPONSE = OP_ENDPOINT_RESPONSE  # EETH
    SACK = OP_SACK  # SETH, CC_STATE
    NACK = OP_NACK  # NETH
    PROBE = OP_PROBE  # PETH


WRITES: Final = frozenset(opcode for opcode in Opcode if opcode <= Opcode.WRITE_ONLY_IMM)
IMMEDIATES: Final = frozenset({Opcode.WRITE_LAST_IMM, Opcode.WRITE_ONLY_IMM})


class PathMark(IntEnum):
    """SETH.m: what the receiver says about the echoed EV."""

    NONE = 0
    SKIP_ONCE = 1
    """The packet had met congestion (ECN, or a trim that left it whole): rest this EV once."""
    ALWAYS_SKIP = 2
    RESERVED = 3


class NackReason(IntEnum):
    """NETH.reason; UET's numbering.

    A requester knows them all. Our responder never lacks what three of them complain of: it can track every PSN of
    the window that it grants, puts payload into its place without a buffer between, and needs nothing else.
    """

    TRIMMED = 0x01
    """Only headers arrived: a queue inside the fabric was full."""
    TRIMMED_LASTHOP = 0x02
    """Only headers arrived: the queue towards the receiver was full."""
    NO_BITMAP = 0x06
    """A responder without state for this PSN. Never said by ours."""
    NO_PKT_BUFFER = 0x07
    """A responder without room for the payload. Never said by ours."""
    NO_RESOURCE = 0x0A
    """A responder that lacks something else. Never said by ours."""
    PSN_OOR_WINDOW = 0x0B
    """Outside of the window; said by ours with the setting `oor_nack`, else such packets are dropped in silence."""
    UNEXP_EVENT = 0x19
    """Fatal: the connection goes to ERROR. Said of a packet that no requester by the rules would send."""


class Syndrome(IntEnum):
    """AETH.syndrome. The credit field of an acknowledgement is fixed at 0x1F: there are no end-to-end credits."""

    ACK = 0x1F
    NAK_INVALID_REQUEST = 0x61
    NAK_REMOTE_ACCESS_ERROR = 0x62
    NAK_REMOTE_OPERATIONAL_ERROR = 0x63


class EndpointOp(IntEnum):
    """ERTH.op and EETH.op."""

    PORT_STATUS_UPDATE = 0
    EV_PROBE = 1


class CcType(IntEnum):
    """The kind of congestion control fields in a SETH or NETH."""

    STATE = 0  # CC_STATE follows the SETH
    CREDIT = 1  # the same, but its last three bytes are credit granted so far, in units of 256 bytes (as in UET)
    NACK = 2


class PdsType(IntEnum):
    """First four bits of SETH and NETH, where UET's PDS header has its type, so that parsers can be shared."""

    SACK = 8
    NACK = 10


ACK_REQUEST: Final = 0x80  # BTH byte 8
RETRANSMISSION: Final = 0x20
TIMESTAMP: Final = 0x10  # a TSETH follows the METH
SOLICITED: Final = 0x01
"""Not on the wire, where the bits below TIMESTAMP are reserved: how a responder is told of the BTH's SE bit."""

BTH_BYTES: Final = Bth.BYTES
METH_BYTES: Final = Meth.BYTES
TSETH_BYTES: Final = Tseth.BYTES
RETH_BYTES: Final = Reth.BYTES
SETH_BYTES: Final = Seth.BYTES
IMMEDIATE = Struct("!I")
"""ImmDt, 4 bytes, behind the RETH of a Last or Only with immediate."""


def stamp_of(data: Buffer, at: int, bth: Bth) -> int:
    """The timestamp to echo of a packet whose BTH is at `at`; 0 if the packet carries none, or was cut before it."""
    at += BTH_BYTES + METH_BYTES
    if not bth.flags & TIMESTAMP or at + TSETH_BYTES > len(data):
        return 0
    return Tseth.unpack(data, at).tx_timestamp


def expand(wire: int, near: int, bits: int = PSN_BITS) -> int:
    """The unwrapped number whose low `bits` are `wire` and that lies nearest to `near` (may be negative)."""
    span = 1 << bits
    distance = (wire - near) & (span - 1)
    return near + distance - (span if distance >= span >> 1 else 0)
