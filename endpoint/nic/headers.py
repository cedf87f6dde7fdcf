"""The headers behind UDP, in one table: which fields each has, and where (OCP MRC 1.0; RoCEv2 for BTH, RETH and AETH).

The text above a class has its fields with their bits as they are on the wire, in network byte order. A bar ends a
word, `s16` has a sign, and fields that the class lacks are reserved: sent as 0, not read. From it come `pack` and
`unpack`, C's offsets (`native/layouts.h`), Scapy's fields (`endpoint.scapy`) and docs/reference/headers.md. The
Wireshark script is written apart from it, as a second reading. `unpack` raises `struct.error` when the bytes end too
early, and accepts every value.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from dataclasses import fields as fields_of
from struct import Struct
from typing import Any, ClassVar, NamedTuple, Self, TypeVar, dataclass_transform

Buffer = bytes | bytearray | memoryview
CODES = {8: "B", 16: "H", 32: "I", 64: "Q"}
"""How `struct` reads a word of so many bits."""


class Field(NamedTuple):
    """`at` is the bit of the header that the field begins with, from 0."""

    name: str
    bits: int
    signed: bool
    at: int


class Header:
    """A header of `BYTES` bytes."""

    LAYOUT: ClassVar[tuple[tuple[Field, ...], ...]]
    """Its words, reserved fields included."""
    BYTES: ClassVar[int]

    def pack(self) -> bytes:
        raise NotImplementedError

    @classmethod
    def unpack(cls, data: Buffer, offset: int = 0) -> Self:
        raise NotImplementedError


Kind = TypeVar("Kind", bound=type[Header])


@dataclass_transform()
def header(layout: str) -> Callable[[Kind], Kind]:
    """Makes a data class with this layout of a class with the fields of a header."""

    def laid_out(kind: Kind) -> Kind:
        cls: Any = dataclass(kind)
        words, at = [], 0
        for text in layout.split("|"):
            word = []
            for name, _, bits in (field.partition(":") for field in text.split()):
                word.append(Field(name, int(bits.lstrip("s")), bits[0] == "s", at))
                at += word[-1].bits
            words.append(tuple(word))
        cls.LAYOUT, cls.BYTES = tuple(words), at // 8
        _compose(cls)
        return kind

    return laid_out


def _compose(cls: Any) -> None:
    """Write the methods that pack and unpack a header, as `collections.namedtuple` writes its own."""
    types = {field.name: field.type for field in fields_of(cls)}
    codes = "!"
    words: list[str] = []
    packed: list[str] = []
    read: dict[str, str] = {}
    for word in cls.LAYOUT:
        end = word[-1].at + word[-1].bits
        size, own = end - word[0].at, [field for field in word if field.name in types]
        if not own:
            codes += f"{size // 8}x"
            continue
        codes += CODES[size].lower() if own[0].signed else CODES[size]
        words.append(f"w{len(words)}")
        packed.append(" | ".join(f"self.{name} << {end - at - bits}" for name, bits, _, at in own))
        for name, bits, _, at in own:
            shift, mask = end - at - bits, (1 << bits) - 1
            value = words[-1] if bits == size else f"{words[-1]} >> {shift} & {mask}"
            read[name] = f"{words[-1]} & {mask << shift} != 0" if types[name] == "bool" else value
    source = f"""
def pack(self):
    return struct.pack({", ".join(packed)})
def unpack(cls, data, offset=0):
    {", ".join(words)}, = struct.unpack_from(data, offset)
    return cls({", ".join(read[name] for name in types)})
"""
    namespace: dict[str, Any] = {"struct": Struct(codes)}
    exec(source, namespace)
    cls.pack, cls.unpack = namespace["pack"], classmethod(namespace["unpack"])


@header("opcode:8 | solicited:1 migrated:1 pad:2 tver:4 | p_key:16 | variant:8 dest_qpn:24 | flags:8 psn:24")
class Bth(Header):
    """Base transport header, 12 bytes. Of `solicited` and `migrated`, MRC-Client's dialect has the second one first."""

    opcode: int
    dest_qpn: int
    psn: int
    flags: int = 0
    """Byte 8: ACK_REQUEST, RETRANSMISSION, TIMESTAMP."""
    pad: int = 0
    solicited: bool = False
    migrated: bool = False
    p_key: int = 0xFFFF
    variant: int = 0
    """FECN and BECN in RoCE; not covered by the ICRC."""


@header("rqmsn:16 | msn:16")
class Meth(Header):
    """Message header, 4 bytes, in every write. `rqmsn` counts writes with immediate, `msn` all writes; modulo 2^16."""

    rqmsn: int
    msn: int


@header("tx_timestamp:16 | tsr:1 res1:7 | res2:4 ftype:4")
class Tseth(Header):
    """Timestamp, 4 bytes, present when BTH.flags has TIMESTAMP."""

    tx_timestamp: int
    tsr: int = 0
    """0: ticks of 128 ns; 1: ticks of the sender's own."""
    ftype: int = 1


@header("va:64 | rkey:32 | length:32")
class Reth(Header):
    """RDMA header, 16 bytes, in every packet of a write: `va` is this packet's own, `length` the whole message's."""

    va: int
    rkey: int
    length: int


@header("syndrome:8 msn:24")
class Aeth(Header):
    """Transport acknowledgement, 4 bytes: `msn` messages have been completed in order, modulo 2^24."""

    syndrome: int
    msn: int


@header(
    "pds_type:4 nxt:5 mark:2 res1:3 probe_response:1 res2:1 | ack_psn_offset:s16 | entropy:32 | spdcid:16 | dpdcid:16 |"
    "res3:8 cack_psn:24 | cc_type:4 cc_flags:4 | mpr:8 | sack_offset:s16 | bitmap:64"
)
class Seth(Header):
    """Selective acknowledgement, 28 bytes. Bit i of `bitmap` says that PSN cack_psn + sack_offset + i has arrived."""

    cack_psn: int
    sack_offset: int
    bitmap: int
    entropy: int
    """The EV of the packet that caused this acknowledgement."""
    mark: int = 0
    """A `PathMark`."""
    probe_response: bool = False
    ack_psn_offset: int = 0
    """PSN of the packet that caused this, from cack_psn; with `probe_response` the probe's id (as a signed number)."""
    cc_type: int = 0
    """A `CcType`."""
    cc_flags: int = 0
    mpr: int = 0
    """In units of 128 PSNs; 0 when the dynamic MPR is off."""
    spdcid: int = 0
    dpdcid: int = 0
    pds_type: int = 8
    """A `PdsType`."""


@header("tx_timestamp:16 | res:1 ooo_count:15 | restore_cwnd:1 rcv_cwnd_pen:7 rcvd_units:24")
class CcState(Header):
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


@header(
    "pds_type:4 nxt:5 res1:7 | reason:8 | vendor:8 | entropy:32 | spdcid:16 | dpdcid:16 | res2:8 nack_psn:24 |"
    "cc_type:4 cc_flags:4 | res3:8 | tx_timestamp:16"
)
class Neth(Header):
    """Negative acknowledgement of one PSN, 20 bytes."""

    reason: int
    nack_psn: int
    entropy: int
    """The EV of the packet that is refused."""
    tx_timestamp: int = 0
    vendor: int = 0
    spdcid: int = 0
    dpdcid: int = 0
    cc_type: int = 2
    cc_flags: int = 0
    pds_type: int = 10


@header(
    "res1:16 | res2:8 | vendor:8 | probe_id:16 | res3:16 | spdcid:16 | dpdcid:16 | tx_timestamp:16 | tsr:1 res4:7 |"
    "res5:4 ftype:4"
)
class Peth(Header):
    """Reliability probe, 16 bytes. It uses up no PSN; BTH.psn says from where on the sender wants to know."""

    probe_id: int
    tx_timestamp: int = 0
    tsr: int = 0
    ftype: int = 1
    vendor: int = 0
    spdcid: int = 0
    dpdcid: int = 0


@header(
    "res1:8 | res2:6 op:2 | res3:8 | vendor:8 | port_status_mask:32 | res4:32 | tx_timestamp:16 | tsr:1 res5:7 |"
    "res6:4 ftype:4"
)
class Erth(Header):
    """Endpoint request, 16 bytes. BTH.psn[15:0] is the request id."""

    op: int
    port_status_mask: int = 0
    """Bit n - 1 is port n."""
    tx_timestamp: int = 0
    tsr: int = 0
    ftype: int = 1
    vendor: int = 0


@header(
    "res1:8 | res2:4 op:2 res3:2 | res4:8 | vendor:8 | port_status_mask:32 | res5:160 | tx_timestamp:16 |"
    "tsr:1 res6:7 | res7:4 ftype:4 | res8:32"
)
class Eeth(Erth):
    """Endpoint response, 36 bytes: the request's fields, with its id in BTH.psn[15:0] and its timestamp echoed."""


@header(
    "res1:8 | res2:2 op:2 res3:4 | res4:8 | vendor:8 | port_status_mask:32 | res5:160 | tx_timestamp:16 |"
    "tsr:1 res6:7 | res7:4 ftype:4 | res8:32"
)
class ClientEeth(Eeth):
    """The same where MRC-Client's dialect has it: `op` in other bits of byte 1."""
