"""Scapy layers for MRC (OCP MRC 1.0) and for the RoCEv2 RC packets of the baseline: for crafting and decoding.

    >>> from scapy.all import rdpcap
    >>> from endpoint.scapy import *
    >>> frame = encapsulate("fcbb:bbbb:1000:2003:1001:3002::", "fd00::1", "fd00::2", ev=0x00010007)
    >>> frame /= Mrc(opcode="WRITE_ONLY", dqpn=0x123, psn=7) / Meth(msn=1) / Reth(va=0x1000, rkey=5, length=3) / b"abc"
    >>> rdpcap("h0.pcap")[0][Mrc].show()

Optional: it needs Scapy (GPL-2.0), which nothing else in the project imports. The layers are
made of the table in `endpoint.nic.headers`. The ICRC is computed when a packet is built, and kept when one was
dissected; a trimmed packet has none.

All layers can build and dissect MRC-Client's reading of the specification instead (docs/reference/dialects.md):

    >>> use_dialect("mrc-client")
"""

import struct
import zlib
from dataclasses import MISSING, fields
from ipaddress import IPv6Address
from typing import Any

from scapy.fields import BitEnumField, BitField, SignedShortField, XBitField, XIntField, XLEIntField
from scapy.layers.inet import UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Ether
from scapy.packet import Packet, Raw, bind_layers

from endpoint.nic import dialect as dialects
from endpoint.nic import headers, wire
from endpoint.roce import wire as roce

__all__ = [
    "ENDPOINT_OPS", "MARKS", "NACK_REASONS", "OPCODES", "UDP_PORTS", "Aeth", "CcState", "Cnp", "Eeth", "Erth", "ImmDt",
    "Meth", "Mrc", "Neth", "Peth", "Reth", "Seth", "Tseth", "client_check", "compute_check", "compute_icrc",
    "encapsulate", "entropy", "use_dialect", "usids",
]  # fmt: skip

UDP_PORTS = dialects.UDP_PORTS
OPCODES = {code.value: code.name for code in wire.Opcode} | {
    code.value: code.name if code is roce.Opcode.CNP else f"RC_{code.name}" for code in roce.Opcode
}
NACK_REASONS = {reason.value: reason.name for reason in wire.NackReason}
ENDPOINT_OPS = {op.value: op.name for op in wire.EndpointOp}
MARKS = {mark.value: mark.name for mark in wire.PathMark}

NAMES = {
    "solicited": "se", "migrated": "m", "p_key": "pkey", "dest_qpn": "dqpn", "pds_type": "type", "mark": "m",
    "probe_response": "pr", "bitmap": "sack_bitmap", "rcvd_units": "rcvd_bytes", "vendor": "vendor_info",
}  # fmt: skip
"""What fields are called here, where not as in the table: as in the specification."""
FLAGS = (("a", 1), ("r", 1), ("rtx", 1), ("ts", 1), ("res", 4))
DEFAULTS = {"opcode": wire.Opcode.WRITE_ONLY, "syndrome": wire.Syndrome.ACK, "reason": wire.NackReason.TRIMMED}
CODES = {"opcode": OPCODES, "reason": NACK_REASONS, "op": ENDPOINT_OPS, "mark": MARKS}
HEXADECIMAL = ("p_key", "variant", "syndrome", "vendor", "probe_id")
"""And longer fields but for `length`."""

_dialect = dialects.DEFAULT


def described(kind: type[headers.Header]) -> list[Any]:
    """The fields of a header, reserved ones included."""
    own: Any = kind
    defaults = {field.name: 0 if field.default is MISSING else int(field.default) for field in fields(own)} | DEFAULTS
    layers: list[Any] = []
    for name, bits, signed, _ in (field for word in kind.LAYOUT for field in word):
        called, default = NAMES.get(name, name), int(defaults.get(name, 0))
        if name == "flags":
            layers += [BitField(flag, 0, size) for flag, size in FLAGS]
        elif signed:
            layers.append(SignedShortField(called, default))
        elif name in CODES:
            layers.append(BitEnumField(called, default, bits, CODES[name]))
        else:
            shown = XBitField if name in HEXADECIMAL or (bits >= 24 and name != "length") else BitField
            layers.append(shown(called, default, bits))
    return layers


def use_dialect(name: str = "") -> dialects.Dialect:
    """From now on build and dissect packets of this dialect. Raises `ConfigError` with the valid names."""
    global _dialect
    wanted = dialects.named(name)
    if wanted is not _dialect:
        Mrc.fields_desc[1:3] = reversed(Mrc.fields_desc[1:3])  # bits 7 and 6
        Eeth.fields_desc[1:4] = reversed(Eeth.fields_desc[1:4])  # 4 bits, the operation, 2 bits; or 2 and 4
    _dialect = wanted
    return wanted


# --- the integrity check ----------------------------------------------------------------------------------------------


def compute_check(bth: Packet, transport: bytes) -> int:
    """The integrity check of the dialect, over a BTH and all behind it."""
    return client_check(transport) if _dialect.client_check else compute_icrc(bth, transport)


def client_check(transport: bytes) -> int:
    """MRC-Client's check: CRC-32C's polynomial as it is written, in a register that shifts to the right."""
    state = 0xFFFFFFFF
    for byte in transport:
        state ^= byte
        for _ in range(8):
            state = state >> 1 ^ (0x1EDC6F41 if state & 1 else 0)
    return state ^ 0xFFFFFFFF


def compute_icrc(bth: Packet, transport: bytes) -> int:
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


def _check_order() -> str:
    """How `struct` reads the check from the wire."""
    return ">I" if _dialect.client_check else "<I"


def _promised(bth: Packet) -> int:
    """Bytes from the BTH to the ICRC as the UDP header has them; 0 while it has not been built."""
    udp = bth.underlayer
    length = udp.len if isinstance(udp, UDP) else None
    return length - 8 if length is not None else 0


class _IcrcField(XLEIntField):
    """The last four bytes of the datagram, unless it was trimmed: not where the header's other fields are."""

    def getfield(self, pkt: Packet, s: bytes) -> tuple[bytes, Any]:
        if len(s) < 4 or _promised(pkt) > 12 + len(s):
            return s, None
        return s[:-4], struct.unpack(_check_order(), s[-4:])[0]

    def addfield(self, pkt: Packet, s: bytes, val: int | None) -> bytes:
        return s  # `Mrc.post_build` puts it behind the payload


# --- the headers ------------------------------------------------------------------------------------------------------


class Mrc(Packet):
    """The base transport header; the next header depends on the opcode and, for a TSETH, on bit `ts`."""

    name = "MRC BTH"
    fields_desc = [*described(headers.Bth), _IcrcField("icrc", None)]  # noqa: RUF012

    def post_dissect(self, s: bytes) -> bytes:
        self.raw_packet_cache = None  # it would not know that the ICRC was taken from the end
        return s

    def post_build(self, p: bytes, pay: bytes) -> bytes:
        if _promised(self) > len(p) + len(pay) + 4:
            return p + pay  # trimmed, and left so
        icrc = compute_check(self, p + pay) if self.icrc is None else self.icrc
        return p + pay + struct.pack(_check_order(), icrc)

    def guess_payload_class(self, payload: bytes) -> type[Packet]:
        if self.opcode in wire.WRITES:
            return Meth
        return Reth if self.opcode in roce.FIRSTS else _AFTER_BTH.get(self.opcode, Raw)

    def mysummary(self) -> str:
        return self.sprintf("MRC %Mrc.opcode% QP %Mrc.dqpn% PSN %Mrc.psn%")


class Meth(Packet):
    name = "MRC METH"
    fields_desc = described(headers.Meth)

    def guess_payload_class(self, payload: bytes) -> type[Packet]:
        return Tseth if isinstance(self.underlayer, Mrc) and self.underlayer.ts else Reth


class Tseth(Packet):
    """The tick of `tx_timestamp` is 128 ns with tsr 0, and the sender's own with tsr 1."""

    name = "MRC TSETH"
    fields_desc = described(headers.Tseth)

    def guess_payload_class(self, payload: bytes) -> type[Packet]:
        return Reth

    def tick_ns(self) -> int | None:
        """The length of a tick; None if it is the sender's own."""
        return None if self.tsr else wire.TIMESTAMP_TICK_NS


class Reth(Packet):
    name = "MRC RETH"
    fields_desc = described(headers.Reth)

    def guess_payload_class(self, payload: bytes) -> type[Packet]:
        layer = self.underlayer
        while layer is not None and not isinstance(layer, Mrc):
            layer = layer.underlayer
        return ImmDt if layer is not None and layer.opcode in wire.IMMEDIATES | roce.IMMEDIATES else Raw


class ImmDt(Packet):
    name = "MRC ImmDt"
    fields_desc = [XIntField("immediate", 0)]  # noqa: RUF012


class Aeth(Packet):
    name = "MRC AETH"
    fields_desc = described(headers.Aeth)


class Seth(Packet):
    """`ack_psn_offset` is the probe's id when `pr` is set. Bit i of `sack_bitmap`: PSN cack + offset + i arrived."""

    name = "MRC SETH"
    fields_desc = described(headers.Seth)

    def guess_payload_class(self, payload: bytes) -> type[Packet]:
        return CcState if self.cc_type == 0 else Raw

    def received(self) -> list[int]:
        """The PSNs above the cumulative one that this SACK says have arrived, in order."""
        first = self.cack_psn + self.sack_offset
        return [(first + bit) & 0xFFFFFF for bit in range(64) if self.sack_bitmap >> bit & 1]


class CcState(Packet):
    name = "MRC CC_STATE"
    fields_desc = described(headers.CcState)


class Neth(Packet):
    name = "MRC NETH"
    fields_desc = described(headers.Neth)


class Peth(Packet):
    name = "MRC PETH"
    fields_desc = described(headers.Peth)


class Erth(Packet):
    """The request id is BTH.psn[15:0]. Bit n - 1 of `port_status_mask` is port n."""

    name = "MRC ERTH"
    fields_desc = described(headers.Erth)

    def ports(self) -> list[int]:
        """The ports that can be reached, from 1."""
        return [port for port in range(1, 33) if self.port_status_mask >> (port - 1) & 1]


class Eeth(Erth):
    """Which bits of its second byte are `op`, depends on the dialect."""

    name = "MRC EETH"
    fields_desc = described(headers.Eeth)


class Cnp(Packet):
    """RoCEv2's congestion notification: sixteen bytes of nothing."""

    name = "RoCEv2 CNP"
    fields_desc = [XBitField("reserved", 0, 128)]  # noqa: RUF012


_AFTER_BTH: dict[int, type[Packet]] = {
    roce.Opcode.WRITE_LAST_IMM: ImmDt,
    roce.Opcode.ACKNOWLEDGE: Aeth,
    roce.Opcode.CNP: Cnp,
    wire.Opcode.ACKNOWLEDGE: Aeth,
    wire.Opcode.ENDPOINT_REQUEST: Erth,
    wire.Opcode.ENDPOINT_RESPONSE: Eeth,
    wire.Opcode.SACK: Seth,
    wire.Opcode.NACK: Neth,
    wire.Opcode.PROBE: Peth,
}

for _port in UDP_PORTS:
    bind_layers(UDP, Mrc, dport=_port)


# --- frames around them -----------------------------------------------------------------------------------------------


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
    tc = dscp << 2 | ecn
    label = ev & 0xFFFFF if _dialect.ev_bits == 20 else ev >> 16
    outer = IPv6(src=outer_src or src, dst=da, tc=tc, fl=label, nh=41, hlim=64)
    inner = IPv6(src=src, dst=dst, tc=tc, fl=label, nh=17, hlim=64)
    dport = udp_port or _dialect.udp_port or UDP_PORTS[0]
    return Ether(dst=ether_dst, src=ether_src) / outer / inner / UDP(sport=ev & 0xFFFF, dport=dport, chksum=0)


def entropy(packet: Packet) -> int:
    """The EV that a packet carries in its UDP source port and the flow label above it, as the dialect has it."""
    udp = packet[UDP]
    label = udp.underlayer.fl
    return int(label if _dialect.ev_bits == 20 else (label & 0xFFFF) << 16 | udp.sport)


def usids(address: str) -> list[int]:
    """The micro-segments of a destination address, the active one first (F3216: 32 bits of block, 16 a uSID)."""
    words = struct.unpack("!8H", IPv6Address(address).packed)
    return [word for word in words[2:] if word]
