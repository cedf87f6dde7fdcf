"""The headers behind UDP: opcodes, layouts and their packing (OCP MRC 1.0, RoCEv2 for BTH, RETH, ImmDt and AETH).

A packet is `BTH | extension headers | [data | pad] | ICRC`, everything in network byte order but the ICRC
(`endpoint.nic.icrc`). Each header is a named tuple with `pack()` and `unpack(data, offset)`; `unpack` raises
`struct.error` when the bytes end too early, and accepts every value. The transport's hot paths do not come through
here: they use the fused layouts of `endpoint.nic.packet`, which the tests hold against these.

Where readers of the specification disagree, `endpoint.nic.dialect` decides: what a codec needs of it is an argument,
and left out the default dialect's.
"""

from __future__ import annotations

from enum import IntEnum
from struct import Struct
from typing import Final, NamedTuple

__all__ = ["BTH_BYTES", "METH_BYTES", "RETH_BYTES", "Bth", "Meth", "Opcode", "Reth"]

Buffer = bytes | bytearray | memoryview

PSN_BITS: Final = 24
ENDPOINT_QPN: Final = 0x2
"""Destination QP of endpoint requests and responses: they belong to no connection."""
P_KEY_DEFAULT: Final = 0xFFFF
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
LASTS: Final = frozenset({Opcode.WRITE_LAST, Opcode.WRITE_LAST_IMM, Opcode.WRITE_ONLY, Opcode.WRITE_ONLY_IMM})
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

_BTH = Struct("!BBHII")
BTH_BYTES = _BTH.size


class Bth(NamedTuple):
    """Base transport header, 12 bytes."""

    opcode: int
    dest_qpn: int
    psn: int
    flags: int = 0
    """Byte 8: ACK_REQUEST, RETRANSMISSION, TIMESTAMP."""
    pad: int = 0
    solicited: bool = False
    migrated: bool = False
    p_key: int = P_KEY_DEFAULT
    variant: int = 0
    """Byte 4: FECN and BECN in RoCE; not covered by the ICRC."""

    def pack(self, *, migrated_first: bool = False) -> bytes:
        high, low = (self.migrated, self.solicited) if migrated_first else (self.solicited, self.migrated)
        second = high << 7 | low << 6 | self.pad << 4
        return _BTH.pack(
            self.opcode, second, self.p_key, self.variant << 24 | self.dest_qpn, self.flags << 24 | self.psn
        )

    @classmethod
    def unpack(cls, data: Buffer, offset: int = 0, *, migrated_first: bool = False) -> Bth:
        opcode, second, p_key, qpn, psn = _BTH.unpack_from(data, offset)
        solicited, migrated = (0x40, 0x80) if migrated_first else (0x80, 0x40)
        return cls(
            opcode=opcode,
            dest_qpn=qpn & 0xFFFFFF,
            psn=psn & 0xFFFFFF,
            flags=psn >> 24,
            pad=second >> 4 & 3,
            solicited=bool(second & solicited),
            migrated=bool(second & migrated),
            p_key=p_key,
            variant=qpn >> 24,
        )


def control_bth(opcode: int, dest_qpn: int, psn: int) -> bytes:
    """`Bth` of a control packet, with the variant byte as the ICRC has it; for packets of which there are many."""
    return _BTH.pack(opcode, 0, P_KEY_DEFAULT, 0xFF << 24 | dest_qpn, psn)


_METH = Struct("!HH")
METH_BYTES = _METH.size


class Meth(NamedTuple):
    """Message header, 4 bytes, in every write. `rqmsn` counts writes with immediate, `msn` all writes; modulo 2^16."""

    rqmsn: int
    msn: int

    def pack(self) -> bytes:
        return _METH.pack(*self)

    @classmethod
    def unpack(cls, data: Buffer, offset: int = 0) -> Meth:
        return cls(*_METH.unpack_from(data, offset))


_TSETH = Struct("!HBB")
TSETH_BYTES = _TSETH.size


class Tseth(NamedTuple):
    """Timestamp, 4 bytes, present when BTH.flags has TIMESTAMP."""

    tx_timestamp: int
    tsr: int = 0
    """0: ticks of 128 ns; 1: ticks of the sender's own."""
    ftype: int = 1

    def pack(self) -> bytes:
        return _TSETH.pack(self.tx_timestamp, self.tsr << 7, self.ftype)

    @classmethod
    def unpack(cls, data: Buffer, offset: int = 0) -> Tseth:
        timestamp, resolution, ftype = _TSETH.unpack_from(data, offset)
        return cls(timestamp, resolution >> 7, ftype & 0xF)


def stamp_of(data: Buffer, at: int, bth: Bth) -> int:
    """The timestamp to echo of a packet whose BTH is at `at`; 0 if the packet carries none, or was cut before it."""
    at += BTH_BYTES + METH_BYTES
    if not bth.flags & TIMESTAMP or at + TSETH_BYTES > len(data):
        return 0
    return Tseth.unpack(data, at).tx_timestamp


_RETH = Struct("!QII")
RETH_BYTES = _RETH.size


class Reth(NamedTuple):
    """RDMA header, 16 bytes, in every packet of a write: `va` is this packet's own, `length` the whole message's."""

    va: int
    rkey: int
    length: int

    def pack(self) -> bytes:
        return _RETH.pack(*self)

    @classmethod
    def unpack(cls, data: Buffer, offset: int = 0) -> Reth:
        return cls(*_RETH.unpack_from(data, offset))


IMMEDIATE = Struct("!I")
"""ImmDt, 4 bytes, behind the RETH of a Last or Only with immediate."""

_AETH = Struct("!I")


class Aeth(NamedTuple):
    """Transport acknowledgement, 4 bytes: `msn` messages have been completed in order, modulo 2^24."""

    syndrome: int
    msn: int

    def pack(self) -> bytes:
        return _AETH.pack(self.syndrome << 24 | self.msn)

    @classmethod
    def unpack(cls, data: Buffer, offset: int = 0) -> Aeth:
        (value,) = _AETH.unpack_from(data, offset)
        return cls(value >> 24, value & 0xFFFFFF)


_SETH = Struct("!HhIHHIBBhQ")
SETH_BYTES = _SETH.size


class Seth(NamedTuple):
    """Selective acknowledgement, 28 bytes. Bit i of `bitmap` says that PSN cack_psn + sack_offset + i has arrived."""

    cack_psn: int
    sack_offset: int
    bitmap: int
    entropy: int
    """The EV of the packet that caused this acknowledgement."""
    mark: int = PathMark.NONE
    probe_response: bool = False
    ack_psn_offset: int = 0
    """PSN of the packet that caused this, from cack_psn; with `probe_response` the probe's id (as a signed number)."""
    cc_type: int = CcType.STATE
    cc_flags: int = 0
    mpr: int = 0
    """In units of 128 PSNs; 0 when the dynamic MPR is off."""
    spdcid: int = 0
    dpdcid: int = 0
    pds_type: int = PdsType.SACK

    def pack(self) -> bytes:
        return _SETH.pack(
            self.pds_type << 12 | self.mark << 5 | self.probe_response << 1,
            self.ack_psn_offset,
            self.entropy,
            self.spdcid,
            self.dpdcid,
            self.cack_psn,
            self.cc_type << 4 | self.cc_flags,
            self.mpr,
            self.sack_offset,
            self.bitmap,
        )

    @classmethod
    def unpack(cls, data: Buffer, offset: int = 0) -> Seth:
        first, ack, entropy, spdcid, dpdcid, cack, cc, mpr, sack, bitmap = _SETH.unpack_from(data, offset)
        return cls(
            cack_psn=cack & 0xFFFFFF,
            sack_offset=sack,
            bitmap=bitmap,
            entropy=entropy,
            mark=first >> 5 & 3,
            probe_response=bool(first & 2),
            ack_psn_offset=ack,
            cc_type=cc >> 4,
            cc_flags=cc & 0xF,
            mpr=mpr,
            spdcid=spdcid,
            dpdcid=dpdcid,
            pds_type=first >> 12,
        )


_CC_STATE = Struct("!HHI")
CC_STATE_BYTES = _CC_STATE.size


class CcState(NamedTuple):
    """Congestion state, 8 bytes, behind the SETH."""

    tx_timestamp: int = 0
    """Echo of the TSETH of the packet that caused the acknowledgement."""
    ooo_count: int = 0
    """PSNs received above the cumulative one, 15 bits."""
    restore_cwnd: bool = False
    rcv_cwnd_pen: int = 0
    """The receiver's penalty in 128ths: 0 none, 64 half the window, 127 about one packet per round trip."""
    rcvd_units: int = 0
    """Payload bytes received on this QP in units of 256, modulo 2^24."""

    def pack(self) -> bytes:
        return _CC_STATE.pack(
            self.tx_timestamp, self.ooo_count, self.restore_cwnd << 31 | self.rcv_cwnd_pen << 24 | self.rcvd_units
        )

    @classmethod
    def unpack(cls, data: Buffer, offset: int = 0) -> CcState:
        timestamp, ooo, last = _CC_STATE.unpack_from(data, offset)
        return cls(timestamp, ooo & 0x7FFF, bool(last >> 31), last >> 24 & 0x7F, last & 0xFFFFFF)


_NETH = Struct("!HBBIHHIBBH")


class Neth(NamedTuple):
    """Negative acknowledgement of one PSN, 20 bytes."""

    reason: int
    nack_psn: int
    entropy: int
    """The EV of the packet that is refused."""
    tx_timestamp: int = 0
    vendor: int = 0
    spdcid: int = 0
    dpdcid: int = 0
    cc_type: int = CcType.NACK
    cc_flags: int = 0
    pds_type: int = PdsType.NACK

    def pack(self) -> bytes:
        return _NETH.pack(
            self.pds_type << 12,
            self.reason,
            self.vendor,
            self.entropy,
            self.spdcid,
            self.dpdcid,
            self.nack_psn,
            self.cc_type << 4 | self.cc_flags,
            0,
            self.tx_timestamp,
        )

    @classmethod
    def unpack(cls, data: Buffer, offset: int = 0) -> Neth:
        first, reason, vendor, entropy, spdcid, dpdcid, psn, cc, _, timestamp = _NETH.unpack_from(data, offset)
        return cls(reason, psn & 0xFFFFFF, entropy, timestamp, vendor, spdcid, dpdcid, cc >> 4, cc & 0xF, first >> 12)


_PETH = Struct("!HBBHHHHHBB")


class Peth(NamedTuple):
    """Reliability probe, 16 bytes. It uses up no PSN; BTH.psn says from where on the sender wants to know."""

    probe_id: int
    tx_timestamp: int = 0
    tsr: int = 0
    ftype: int = 1
    vendor: int = 0
    spdcid: int = 0
    dpdcid: int = 0

    def pack(self) -> bytes:
        return _PETH.pack(
            0, 0, self.vendor, self.probe_id, 0, self.spdcid, self.dpdcid, self.tx_timestamp, self.tsr << 7, self.ftype
        )

    @classmethod
    def unpack(cls, data: Buffer, offset: int = 0) -> Peth:
        _, _, vendor, probe_id, _, spdcid, dpdcid, timestamp, tsr, ftype = _PETH.unpack_from(data, offset)
        return cls(probe_id, timestamp, tsr >> 7, ftype & 0xF, vendor, spdcid, dpdcid)


_ERTH = Struct("!BBBBIIHBB")


class Erth(NamedTuple):
    """Endpoint request, 16 bytes. BTH.psn[15:0] is the request id."""

    op: int
    port_status_mask: int = 0
    """Bit n - 1 is port n."""
    tx_timestamp: int = 0
    tsr: int = 0
    ftype: int = 1
    vendor: int = 0

    def pack(self) -> bytes:
        return _ERTH.pack(
            0, self.op, 0, self.vendor, self.port_status_mask, 0, self.tx_timestamp, self.tsr << 7, self.ftype
        )

    @classmethod
    def unpack(cls, data: Buffer, offset: int = 0) -> Erth:
        _, op, _, vendor, mask, _, timestamp, tsr, ftype = _ERTH.unpack_from(data, offset)
        return cls(op & 3, mask, timestamp, tsr >> 7, ftype & 0xF, vendor)


_EETH = Struct("!BBBBI20xHBBI")


class Eeth(NamedTuple):
    """Endpoint response, 36 bytes, with the request's id in BTH.psn[15:0] and its timestamp echoed.

    `op_shift` is the dialect's: 2 for the operation in bits 3:2 of byte 1, 4 for bits 5:4.
    """

    op: int
    port_status_mask: int = 0
    tx_timestamp: int = 0
    tsr: int = 0
    ftype: int = 1
    vendor: int = 0

    def pack(self, op_shift: int = 2) -> bytes:
        op, ports = self.op << op_shift, self.port_status_mask
        return _EETH.pack(0, op, 0, self.vendor, ports, self.tx_timestamp, self.tsr << 7, self.ftype, 0)

    @classmethod
    def unpack(cls, data: Buffer, offset: int = 0, op_shift: int = 2) -> Eeth:
        _, op, _, vendor, mask, timestamp, tsr, ftype, _ = _EETH.unpack_from(data, offset)
        return cls(op >> op_shift & 3, mask, timestamp, tsr >> 7, ftype & 0xF, vendor)
