"""The headers as Scapy layers, and which of them follows which."""

from __future__ import annotations

import struct
from typing import Any

from scapy.fields import (
    BitEnumField,
    BitField,
    ByteEnumField,
    ByteField,
    Field,
    IntField,
    ShortField,
    SignedShortField,
    StrFixedLenField,
    X3BytesField,
    XBitField,
    XByteField,
    XIntField,
    XLEIntField,
    XLongField,
    XShortField,
)
from scapy.layers.inet import UDP
from scapy.packet import Packet, Raw, bind_layers

from endpoint.nic import dialect as dialects
from endpoint.scapy import chosen
from endpoint.scapy.check import check_order, compute_check, promised
from endpoint.scapy.codes import ENDPOINT_OPS, MARKS, NACK_REASONS, OPCODES, UDP_PORTS

_MRC_WRITES = range(0xC6, 0xCC)
_WITH_IMMEDIATE = (0xC9, 0xCB, 0x0B)
_RC_WITH_RETH = (0x06, 0x0A, 0x0B)


def use_dialect(name: str = "") -> dialects.Dialect:
    """From now on build and dissect packets of this dialect. Raises `ConfigError` with the valid names."""
    wanted = dialects.named(name)
    if wanted is not chosen.dialect:
        Mrc.fields_desc[1:3] = reversed(Mrc.fields_desc[1:3])  # bits 7 and 6
        Eeth.fields_desc[1:4] = reversed(Eeth.fields_desc[1:4])  # 4 bits, the operation, 2 bits; or 2 and 4
    chosen.dialect = wanted
    return wanted


def _stamp(after_tsr: str, before_ftype: str) -> list[Field[Any, Any]]:
    """A timestamp, its resolution and the type of the flow, with reserved bits of these names."""
    bits = [("tsr", 0, 1), (after_tsr, 0, 7), (before_ftype, 0, 4), ("ftype", 1, 4)]
    return [ShortField("tx_timestamp", 0), *(BitField(*one) for one in bits)]


class _WithPorts(Packet):
    """A header with a mask of ports."""

    def ports(self) -> list[int]:
        """The ports that can be reached, from 1."""
        return [port for port in range(1, 33) if self.port_status_mask >> (port - 1) & 1]


class _IcrcField(XLEIntField):
    """The last four bytes of the datagram, unless it was trimmed: not where the header's other fields are."""

    def getfield(self, pkt: Packet, s: bytes) -> tuple[bytes, Any]:
        if len(s) < 4 or promised(pkt) > 12 + len(s):
            return s, None
        return s[:-4], struct.unpack(check_order(), s[-4:])[0]

    def addfield(self, pkt: Packet, s: bytes, val: int | None) -> bytes:
        return s  # `Mrc.post_build` puts it behind the payload


class Mrc(Packet):
    """The base transport header; the next header depends on the opcode and, for a TSETH, on bit `ts`."""

    name = "MRC BTH"
    fields_desc = [  # noqa: RUF012
        ByteEnumField("opcode", 0xCA, OPCODES),
        BitField("se", 0, 1),
        BitField("m", 0, 1),
        BitField("pad", 0, 2),
        BitField("tver", 0, 4),
        XShortField("pkey", 0xFFFF),
        XByteField("variant", 0),
        X3BytesField("dqpn", 0),
        BitField("a", 0, 1),
        BitField("r", 0, 1),
        BitField("rtx", 0, 1),
        BitField("ts", 0, 1),
        BitField("res", 0, 4),
        X3BytesField("psn", 0),
        _IcrcField("icrc", None),
    ]

    def post_dissect(self, s: bytes) -> bytes:
        self.raw_packet_cache = None  # it would not know that the ICRC was taken from the end
        return s

    def post_build(self, p: bytes, pay: bytes) -> bytes:
        if promised(self) > len(p) + len(pay) + 4:
            return p + pay  # trimmed, and left so
        icrc = compute_check(self, p + pay) if self.icrc is None else self.icrc
        return p + pay + struct.pack(check_order(), icrc)

    def guess_payload_class(self, payload: bytes) -> type[Packet]:
        opcode = self.opcode
        if opcode in _MRC_WRITES:
            return Meth
        if opcode in _RC_WITH_RETH:
            return Reth
        return _AFTER_BTH.get(opcode, Raw)

    def mysummary(self) -> str:
        return self.sprintf("MRC %Mrc.opcode% QP %Mrc.dqpn% PSN %Mrc.psn%")


class Meth(Packet):
    name = "MRC METH"
    fields_desc = [ShortField("rqmsn", 0), ShortField("msn", 0)]  # noqa: RUF012

    def guess_payload_class(self, payload: bytes) -> type[Packet]:
        return Tseth if isinstance(self.underlayer, Mrc) and self.underlayer.ts else Reth


class Tseth(Packet):
    """The tick of `tx_timestamp` is 128 ns with tsr 0, and the sender's own with tsr 1."""

    name = "MRC TSETH"
    fields_desc = [  # noqa: RUF012
        *_stamp("res1", "res2")
    ]

    def guess_payload_class(self, payload: bytes) -> type[Packet]:
        return Reth

    def tick_ns(self) -> int | None:
        """The length of a tick; None if it is the sender's own."""
        return None if self.tsr else 128


class Reth(Packet):
    name = "MRC RETH"
    fields_desc = [XLongField("va", 0), XIntField("rkey", 0), IntField("length", 0)]  # noqa: RUF012

    def guess_payload_class(self, payload: bytes) -> type[Packet]:
        bth = _bth(self)
        return ImmDt if bth is not None and bth.opcode in _WITH_IMMEDIATE else Raw


class ImmDt(Packet):
    name = "MRC ImmDt"
    fields_desc = [XIntField("immediate", 0)]  # noqa: RUF012


class Aeth(Packet):
    name = "MRC AETH"
    fields_desc = [XByteField("syndrome", 0x1F), X3BytesField("msn", 0)]  # noqa: RUF012


class Seth(Packet):
    """`ack_psn_offset` is the probe's id when `pr` is set. Bit i of `sack_bitmap`: PSN cack + offset + i arrived."""

    name = "MRC SETH"
    fields_desc = [  # noqa: RUF012
        BitField("type", 8, 4),
        BitField("nxt", 0, 5),
        BitEnumField("m", 0, 2, MARKS),
        BitField("res1", 0, 3),
        BitField("pr", 0, 1),
        BitField("res2", 0, 1),
        SignedShortField("ack_psn_offset", 0),
        XIntField("entropy", 0),
        ShortField("spdcid", 0),
        ShortField("dpdcid", 0),
        ByteField("res3", 0),
        X3BytesField("cack_psn", 0),
        BitField("cc_type", 0, 4),
        BitField("cc_flags", 0, 4),
        ByteField("mpr", 0),
        SignedShortField("sack_offset", 0),
        XLongField("sack_bitmap", 0),
    ]

    def guess_payload_class(self, payload: bytes) -> type[Packet]:
        return CcState if self.cc_type == 0 else Raw

    def received(self) -> list[int]:
        """The PSNs above the cumulative one that this SACK says have arrived, in order."""
        first = self.cack_psn + self.sack_offset
        return [(first + bit) & 0xFFFFFF for bit in range(64) if self.sack_bitmap >> bit & 1]


class CcState(Packet):
    name = "MRC CC_STATE"
    fields_desc = [  # noqa: RUF012
        ShortField("tx_timestamp", 0),
        BitField("res", 0, 1),
        BitField("ooo_count", 0, 15),
        BitField("restore_cwnd", 0, 1),
        BitField("rcv_cwnd_pen", 0, 7),
        X3BytesField("rcvd_bytes", 0),
    ]


class Neth(Packet):
    name = "MRC NETH"
    fields_desc = [  # noqa: RUF012
        BitField("type", 10, 4),
        BitField("nxt", 0, 5),
        BitField("res1", 0, 7),
        ByteEnumField("reason", 1, NACK_REASONS),
        XByteField("vendor_info", 0),
        XIntField("entropy", 0),
        ShortField("spdcid", 0),
        ShortField("dpdcid", 0),
        ByteField("res2", 0),
        X3BytesField("nack_psn", 0),
        BitField("cc_type", 2, 4),
        BitField("cc_flags", 0, 4),
        ByteField("res3", 0),
        ShortField("tx_timestamp", 0),
    ]


class Peth(Packet):
    name = "MRC PETH"
    fields_desc = [  # noqa: RUF012
        XShortField("res1", 0),
        ByteField("res2", 0),
        XByteField("vendor_info", 0),
        XShortField("probe_id", 0),
        ShortField("res3", 0),
        ShortField("spdcid", 0),
        ShortField("dpdcid", 0),
        *_stamp("res4", "res5"),
    ]


class Erth(_WithPorts):
    """The request id is BTH.psn[15:0]. Bit n - 1 of `port_status_mask` is port n."""

    name = "MRC ERTH"
    fields_desc = [  # noqa: RUF012
        XByteField("res1", 0),
        BitField("res2", 0, 6),
        BitEnumField("op", 0, 2, ENDPOINT_OPS),
        XByteField("res3", 0),
        XByteField("vendor_info", 0),
        XIntField("port_status_mask", 0),
        IntField("res4", 0),
        *_stamp("res5", "res6"),
    ]


class Eeth(_WithPorts):
    """Which bits of its second byte are `op`, depends on the dialect."""

    name = "MRC EETH"
    fields_desc = [  # noqa: RUF012
        XByteField("res1", 0),
        BitField("res2", 0, 4),
        BitEnumField("op", 0, 2, ENDPOINT_OPS),
        BitField("res3", 0, 2),
        XByteField("res4", 0),
        XByteField("vendor_info", 0),
        XIntField("port_status_mask", 0),
        StrFixedLenField("res5", bytes(20), 20),
        *_stamp("res6", "res7"),
        IntField("res8", 0),
    ]


class Cnp(Packet):
    """RoCEv2's congestion notification: sixteen bytes of nothing."""

    name = "RoCEv2 CNP"
    fields_desc = [XBitField("reserved", 0, 128)]  # noqa: RUF012


_AFTER_BTH: dict[int, type[Packet]] = {
    0x09: ImmDt,
    0x11: Aeth,
    0x81: Cnp,
    0xD1: Aeth,
    0xD8: Erth,
    0xD9: Eeth,
    0xDC: Seth,
    0xDD: Neth,
    0xDE: Peth,
}

for _port in UDP_PORTS:
    bind_layers(UDP, Mrc, dport=_port)


def _bth(layer: Packet | None) -> Mrc | None:
    while layer is not None and not isinstance(layer, Mrc):
        layer = layer.underlayer
    return layer
