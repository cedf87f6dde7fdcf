"""Scapy layers for MRC (OCP MRC 1.0) and for the RoCEv2 RC packets of the baseline: for crafting and decoding.

    >>> from endpoint.scapy import *
    >>> frame = encapsulate("fcbb:bbbb:1000:2003:1001:3002::", "fd00::1", "fd00::2", ev=0x00010007)
    >>> frame /= Mrc(opcode="WRITE_ONLY", dqpn=0x123, psn=7) / Meth(msn=1) / Reth(va=0x1000, rkey=5, length=3) / b"abc"
    >>> rdpcap("h0.pcap")[0][Mrc].show()

Optional: it needs Scapy (GPL-2.0), which nothing else in the project imports. It is written from the header layouts
alone, apart from `endpoint.nic.wire`, so that each can be tested against the other. The ICRC is computed when a packet
is built, and kept when one was dissected; a trimmed packet has none.

Readings of the specification other than the default are chosen for all layers at once, with the text that the
transport's setting `dialect` takes (docs/reference/dialects.md):

    >>> use_dialect("ev_halves=high-in-port,eeth_op=5:4")
"""

from __future__ import annotations

import struct
import zlib
from ipaddress import IPv6Address
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
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Ether
from scapy.packet import Packet, Raw, bind_layers

from endpoint.nic import dialect as dialects

UDP_PORTS = dialects.UDP_PORTS

OPCODES = {
    0xC6: "WRITE_FIRST",
    0xC7: "WRITE_MIDDLE",
    0xC8: "WRITE_LAST",
    0xC9: "WRITE_LAST_IMM",
    0xCA: "WRITE_ONLY",
    0xCB: "WRITE_ONLY_IMM",
    0xD1: "ACKNOWLEDGE",
    0xD8: "ENDPOINT_REQUEST",
    0xD9: "ENDPOINT_RESPONSE",
    0xDC: "SACK",
    0xDD: "NACK",
    0xDE: "PROBE",
    0x06: "RC_WRITE_FIRST",
    0x07: "RC_WRITE_MIDDLE",
    0x08: "RC_WRITE_LAST",
    0x09: "RC_WRITE_LAST_IMM",
    0x0A: "RC_WRITE_ONLY",
    0x0B: "RC_WRITE_ONLY_IMM",
    0x11: "RC_ACKNOWLEDGE",
    0x81: "CNP",
}
NACK_REASONS = {
    0x01: "TRIMMED",
    0x02: "TRIMMED_LASTHOP",
    0x06: "NO_BITMAP",
    0x07: "NO_PKT_BUFFER",
    0x0A: "NO_RESOURCE",
    0x0B: "PSN_OOR_WINDOW",
    0x19: "UNEXP_EVENT",
}
ENDPOINT_OPS = {0: "PORT_STATUS_UPDATE", 1: "EV_PROBE"}
MARKS = {0: "NONE", 1: "SKIP_ONCE", 2: "ALWAYS_SKIP", 3: "RESERVED"}

_MRC_WRITES = range(0xC6, 0xCC)
_WITH_IMMEDIATE = (0xC9, 0xCB, 0x0B)
_RC_WITH_RETH = (0x06, 0x0A, 0x0B)


_dialect = dialects.DEFAULT


def use_dialect(text: str = "") -> dialects.Dialect:
    """From now on build and dissect packets of this dialect. Raises `ConfigError` with the valid choices."""
    global _dialect
    chosen = dialects.parse(text)
    if chosen.migrated_first != _dialect.migrated_first:
        Mrc.fields_desc[1:3] = reversed(Mrc.fields_desc[1:3])  # bits 7 and 6
    if chosen.eeth_op != _dialect.eeth_op:
        Eeth.fields_desc[1:4] = reversed(Eeth.fields_desc[1:4])  # 4 bits, the operation, 2 bits; or 2 and 4
    _dialect = chosen
    return chosen


def _stamp(after_tsr: str, before_ftype: str) -> list[Field[Any, Any]]:
    """A timestamp, its resolution and the type of the flow, with reserved bits of these names."""
    bits = [("tsr", 0, 1), (after_tsr, 0, 7), (before_ftype, 0, 4), ("ftype", 1, 4)]
    return [ShortField("tx_timestamp", 0), *(BitField(*one) for one in bits)]


class _WithPorts(Packet):
    """What has a mask of ports; which bit is which port, depends on the dialect."""

    def ports(self) -> list[int]:
        """The ports that can be reached, from 1."""
        return _ports(self.port_status_mask)


class _IcrcField(XLEIntField):
    """The last four bytes of the datagram, unless it was trimmed: not where the header's other fields are.

    None where the dialect has no check.
    """

    def getfield(self, pkt: Packet, s: bytes) -> tuple[bytes, Any]:
        if len(s) < 4 or _promised(pkt) > 12 + len(s) or _dialect.icrc == "absent":
            return s, None
        return s[:-4], struct.unpack(_check_order(), s[-4:])[0]

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
        if _promised(self) > len(p) + len(pay) + 4 or _dialect.icrc == "absent":
            return p + pay  # trimmed, and left so; or without a check
        icrc = compute_check(self, p + pay) if self.icrc is None else self.icrc
        return p + pay + struct.pack(_check_order(), icrc)

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
    """The tick of `tx_timestamp` is 128 ns with tsr 0; with tsr 1 the sender's own, or 1 µs, by the dialect."""

    name = "MRC TSETH"
    fields_desc = [  # noqa: RUF012
        *_stamp("res1", "res2")
    ]

    def guess_payload_class(self, payload: bytes) -> type[Packet]:
        return Reth

    def tick_ns(self) -> int | None:
        """The length of a tick; None if it is the sender's own."""
        if not self.tsr:
            return 128
        return 1000 if _dialect.tsr_1 == "1us" else None


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

    def guess_payload_class(self, payload: bytes) -> type[Packet]:
        return PortStates if _dialect.ports_in_sacks and len(payload) >= 4 else Raw


class PortStates(_WithPorts):
    """Behind the CC_STATE of a SACK, in a dialect that has port states there."""

    name = "MRC port states"
    fields_desc = [XIntField("port_status_mask", 0)]  # noqa: RUF012


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
    """The request id is BTH.psn[15:0]. Which bit of `port_status_mask` is which port, depends on the dialect."""

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


def encapsulate(
    da: str,
    src: str,
    dst: str,
    *,
    ev: int = 0,
    dscp: int = 10,
    ecn: int = 2,
    outer_src: str | None = None,
    udp_port: int | None = None,
    ether_dst: str = "02:00:00:00:00:01",
    ether_src: str = "02:00:00:00:00:02",
) -> Packet:
    """Ethernet, the outer IPv6 to the uSID list `da`, the inner IPv6 and UDP, with the EV striped over them.

    `udp_port` is the dialect's where none is given. The Ethernet addresses have defaults because Scapy would otherwise
    ask the network for them.
    """
    tc, high, low = dscp << 2 | ecn, ev >> 16, ev & 0xFFFF
    sport, label = (high, low) if _dialect.ev_halves == "high-in-port" else (low, high)
    if _dialect.ev_halves == "low-in-both":
        label = ev & 0xFFFFF
    inner_label = 0 if _dialect.ev_label == "outer" else label
    outer_label = 0 if _dialect.ev_label == "inner" else label
    outer = IPv6(src=outer_src or src, dst=da, tc=tc, fl=outer_label, nh=41, hlim=64)
    inner = IPv6(src=src, dst=dst, tc=tc, fl=inner_label, nh=17, hlim=64)
    dport = _dialect.udp_port_of(UDP_PORTS[0]) if udp_port is None else udp_port
    return Ether(dst=ether_dst, src=ether_src) / outer / inner / UDP(sport=sport, dport=dport, chksum=0)


def entropy(packet: Packet) -> int:
    """The EV that a packet carries in its UDP source port and a flow label, as the dialect has it."""
    udp = packet[UDP]
    labelled = packet[IPv6] if _dialect.ev_label == "outer" else udp.underlayer  # the first is the outer one
    if _dialect.ev_halves == "low-in-both":
        return int(labelled.fl)
    label = labelled.fl & 0xFFFF
    return int(label << 16 | udp.sport if _dialect.ev_halves == "low-in-port" else udp.sport << 16 | label)


def usids(address: str) -> list[int]:
    """The micro-segments of a destination address, the active one first (F3216: 32 bits of block, 16 a uSID)."""
    words = struct.unpack("!8H", IPv6Address(address).packed)
    return [word for word in words[2:] if word]


def compute_check(bth: Mrc, transport: bytes) -> int:
    """The integrity check of the dialect, over a BTH and all behind it."""
    return client_check(transport) if _dialect.icrc == "mrc-client" else compute_icrc(bth, transport)


def client_check(transport: bytes) -> int:
    """MRC-Client's check: CRC-32C's polynomial as it is written, in a register that shifts to the right."""
    state = 0xFFFFFFFF
    for byte in transport:
        state ^= byte
        for _ in range(8):
            state = state >> 1 ^ (0x1EDC6F41 if state & 1 else 0)
    return state ^ 0xFFFFFFFF


def _check_order() -> str:
    return ">I" if _dialect.icrc == "mrc-client" else "<I"


def compute_icrc(bth: Mrc, transport: bytes) -> int:
    """The ICRC of a BTH and all behind it, below UDP and IPv6 (IBTA annex A17: mutable fields are all ones)."""
    udp = bth.underlayer
    if not isinstance(udp, UDP) or not isinstance(udp.underlayer, IPv6):
        return 0
    ip = udp.underlayer
    length = 8 + len(transport) + 4
    pseudo = b"\xff" * 8
    pseudo += b"\x6f\xff\xff\xff" + struct.pack("!HBB", length, 17, 0xFF)
    pseudo += IPv6Address(ip.src).packed + IPv6Address(ip.dst).packed
    pseudo += struct.pack("!HHHH", udp.sport, udp.dport, length, 0xFFFF)
    return zlib.crc32(pseudo + transport[:4] + b"\xff" + transport[5:])


def _ports(mask: int) -> list[int]:
    first = 1 if _dialect.port_mask == "bit-1" else 0
    return [port for port in range(1, 33 - first) if mask >> (port - 1 + first) & 1]


def _promised(bth: Packet) -> int:
    """Bytes from the BTH to the ICRC as the UDP header has them; 0 while it has not been built."""
    udp = bth.underlayer
    length = udp.len if isinstance(udp, UDP) else None
    return length - 8 if length is not None else 0


def _bth(layer: Packet | None) -> Mrc | None:
    while layer is not None and not isinstance(layer, Mrc):
        layer = layer.underlayer
    return layer
