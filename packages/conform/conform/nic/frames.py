"""Frames that the tester sends, built by the rule, and frames of the device, taken apart into fields."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from ipaddress import IPv6Address
from typing import Any

from conform.nic.device_file import DeviceFile, mac
from endpoint.nic import frame, icrc, wire
from endpoint.nic.wire import Opcode

PSN = 0xFFFFFF
ENDPOINT_QPN = 2
ASK, AGAIN, STAMPED = 0x80, 0x20, 0x10
"""Bits of BTH byte 8: acknowledge, retransmission, timestamp."""
TRIMMED, TRIMMED_LASTHOP, NO_RESOURCE, OUT_OF_WINDOW, UNEXPECTED = 0x01, 0x02, 0x0A, 0x0B, 0x19
ACK, NAK_INVALID, NAK_ACCESS, NAK_OPERATION = 0x1F, 0x61, 0x62, 0x63
WRITES = ("WRITE_FIRST", "WRITE_MIDDLE", "WRITE_LAST", "WRITE_LAST_IMM", "WRITE_ONLY", "WRITE_ONLY_IMM")
ICRC = 4


@dataclass(frozen=True, slots=True)
class Packet:
    """A frame of the device, taken apart. `fault` says why it could not be, or ""."""

    t_ns: int
    port: int
    data: bytes
    kind: str = ""
    """The opcode's name."""
    fault: str = ""
    values: dict[str, Any] = field(default_factory=dict)

    def __getattr__(self, name: str) -> Any:
        try:
            return self.values[name]
        except KeyError:
            raise AttributeError(f"{self.kind} has no {name}") from None

    def __str__(self) -> str:
        if self.fault:
            return f"a frame that cannot be read ({self.fault})"
        kept = ("psn", "cack", "received", "entropy", "reason", "nack_psn", "syndrome", "msn", "probe_id", "op")
        return self.kind + "".join(f" {name}={self.values[name]}" for name in kept if name in self.values)


def taken_apart(t_ns: int, port: int, data: bytes) -> Packet:
    """Never raises: a frame that cannot be read has a fault."""
    try:
        outside = frame.parse(data)
        at = outside.bth
        bth = wire.Bth.unpack(data, at)
        values: dict[str, Any] = {
            "psn": bth.psn, "qpn": bth.dest_qpn, "flags": bth.flags, "pad": bth.pad, "p_key": bth.p_key, "bth": at,
            "ev": outside.ev, "dscp": outside.dscp, "ecn": outside.traffic_class & 3, "outside": outside,
            "again": bool(bth.flags & AGAIN), "ask": bool(bth.flags & ASK),
        }  # fmt: skip
        kind = Opcode(bth.opcode).name
        values |= behind(kind, data, at + wire.BTH_BYTES, bth)
        return Packet(t_ns, port, data, kind, "", values)
    except (ValueError, struct.error) as error:
        return Packet(t_ns, port, data, fault=str(error))


def behind(kind: str, data: bytes, at: int, bth: wire.Bth) -> dict[str, Any]:
    """The fields behind the BTH."""
    if kind in WRITES:
        meth = wire.Meth.unpack(data, at)
        at += wire.METH_BYTES + (4 if bth.flags & STAMPED else 0)
        reth = wire.Reth.unpack(data, at)
        at += wire.RETH_BYTES
        found = {"rqmsn": meth.rqmsn, "msn": meth.msn, "va": reth.va, "rkey": reth.rkey, "length": reth.length}
        if kind.endswith("IMM"):
            found["imm"] = struct.unpack_from("!I", data, at)[0]
            at += 4
        return {**found, "payload": data[at : len(data) - ICRC - bth.pad]}
    if kind == "SACK":
        seth = wire.Seth.unpack(data, at)
        state = wire.CcState.unpack(data, at + wire.Seth.BYTES)
        first = seth.cack_psn + seth.sack_offset
        received = [(first + bit) & PSN for bit in range(64) if seth.bitmap >> bit & 1]
        return {
            "cack": seth.cack_psn, "offset": seth.sack_offset, "received": received, "entropy": seth.entropy,
            "mark": seth.mark, "probe": seth.probe_response, "probe_id": seth.ack_psn_offset & 0xFFFF,
            "cc_type": seth.cc_type, "mpr": seth.mpr, "units": state.rcvd_units, "ooo": state.ooo_count,
            "stamp": state.tx_timestamp,
        }  # fmt: skip
    if kind == "NACK":
        neth = wire.Neth.unpack(data, at)
        return {
            "reason": neth.reason, "nack_psn": neth.nack_psn, "entropy": neth.entropy, "cc_type": neth.cc_type,
            "stamp": neth.tx_timestamp,
        }  # fmt: skip
    if kind == "ACKNOWLEDGE":
        aeth = wire.Aeth.unpack(data, at)
        return {"syndrome": aeth.syndrome, "msn": aeth.msn}
    if kind == "PROBE":
        return {"probe_id": wire.Peth.unpack(data, at).probe_id}
    if kind == "ENDPOINT_REQUEST":
        erth = wire.Erth.unpack(data, at)
        return {"op": erth.op, "mask": erth.port_status_mask, "stamp": erth.tx_timestamp}
    eeth = wire.Eeth.unpack(data, at)
    return {"op": eeth.op, "mask": eeth.port_status_mask, "stamp": eeth.tx_timestamp}


@dataclass(slots=True)
class Builder:
    """Builds frames from the tester to the device, for one queue pair."""

    about: DeviceFile
    qpn: int
    """The device's queue pair."""
    va: int = 0
    rkey: int = 0

    def seal(
        self, transport: bytes, ev: int, dscp: str, *, marked: bool = False, udp_port: int = 0, bare: bool = False
    ) -> bytes:
        """A whole frame, as the last switch leaves it; `bare`: without an outer header."""
        about = self.about
        number = about.evs.get(ev, 1) - 1
        outer = (packed(about.tester.port_addresses[number]), packed(about.device.usid_address))
        front = frame.headers(
            ether_dst=mac(about.device.macs[number]),
            ether_src=mac(about.tester.macs[number]),
            outer=None if bare or about.encapsulation == "none" else outer,
            src=about.tester.packed,
            dst=about.device.packed,
            traffic_class=about.dscp[dscp] << 2 | (3 if marked else frame.ECN_CAPABLE),
            ev=ev,
            udp_dport=udp_port or about.udp_port,
            length=len(transport) + ICRC,
        )
        return frame.seal(front, transport)

    def write(
        self, kind: str, psn: int, at: int, payload: bytes, total: int, *, msn: int = 0, rqmsn: int = 0, flags: int = 0,
        rkey: int | None = None, imm: int | None = None, qpn: int | None = None, va: int | None = None,
        stamp: int | None = None,
    ) -> bytes:  # fmt: skip
        """BTH to pad of a packet of a write, `at` bytes into the device's memory."""
        pad = -len(payload) % 4
        flags |= STAMPED if stamp is not None else 0
        bth = wire.Bth(Opcode[kind], self.qpn if qpn is None else qpn, psn & PSN, flags, pad=pad)
        body = bth.pack() + wire.Meth(rqmsn & 0xFFFF, msn & 0xFFFF).pack()
        if stamp is not None:
            body += struct.pack("!HBB", stamp, 0, 1)
        va = (self.va + at if va is None else va) % (1 << 64)
        body += wire.Reth(va, self.rkey if rkey is None else rkey, total).pack()
        return body + (b"" if imm is None else struct.pack("!I", imm)) + payload + bytes(pad)

    def sack(
        self, cack: int, received: tuple[int, ...] = (), *, ev: int = 0, mark: int = 0, probe_id: int | None = None,
        answer: int = -0x8000,
    ) -> bytes:  # fmt: skip
        """BTH to CC_STATE of a SACK."""
        bitmap = sum(1 << ((psn - cack - 1) & PSN) for psn in received)
        told = answer if probe_id is None else probe_id - 0x10000 if probe_id & 0x8000 else probe_id
        seth = wire.Seth(cack & PSN, 1, bitmap, ev, mark, probe_id is not None, told)
        return wire.Bth(Opcode.SACK, self.qpn, cack & PSN).pack() + seth.pack() + wire.CcState().pack()

    def acknowledge(self, psn: int, msn: int, syndrome: int = ACK) -> bytes:
        return wire.Bth(Opcode.ACKNOWLEDGE, self.qpn, psn & PSN).pack() + wire.Aeth(syndrome, msn & PSN).pack()

    def nack(self, psn: int, reason: int, ev: int) -> bytes:
        return wire.Bth(Opcode.NACK, self.qpn, psn & PSN).pack() + wire.Neth(reason, psn & PSN, ev).pack()

    def probe(self, psn: int, probe_id: int) -> bytes:
        return wire.Bth(Opcode.PROBE, self.qpn, psn & PSN).pack() + wire.Peth(probe_id).pack()


def request(op: int, number: int, mask: int, stamp: int = 0, qpn: int = ENDPOINT_QPN) -> bytes:
    """BTH to ERTH of an endpoint request."""
    return wire.Bth(Opcode.ENDPOINT_REQUEST, qpn, number).pack() + wire.Erth(op, mask, tx_timestamp=stamp).pack()


def response(op: int, number: int, mask: int, stamp: int) -> bytes:
    return (
        wire.Bth(Opcode.ENDPOINT_RESPONSE, ENDPOINT_QPN, number).pack() + wire.Eeth(op, mask, tx_timestamp=stamp).pack()
    )


def packed(address: str) -> bytes:
    return IPv6Address(address).packed


def ipv6_headers(data: bytes) -> list[int]:
    """Where the IPv6 headers of a frame begin, the outer one first."""
    return [14, 54] if data[20] == 41 else [14]


def with_dscp(data: bytes, dscp: int) -> bytes:
    """The frame with another DSCP in its outermost header, as a switch writes it."""
    first = struct.unpack_from("!I", data, 14)[0] & ~(0x3F << 22) | dscp << 22
    return data[:14] + struct.pack("!I", first) + data[18:]


def trimmed(data: bytes, about: DeviceFile, lasthop: bool = False, lengths: bool = False) -> bytes:
    """A frame as a switch leaves it that trims. `lengths`: the outermost header's length is that of what is left."""
    cut = with_dscp(data, about.dscp["trimmed_lasthop" if lasthop else "trimmed"])[: about.trim_bytes]
    if lengths:
        cut = cut[:18] + struct.pack("!H", len(cut) - 54) + cut[20:]
    return cut


def icrc_right(packet: Packet) -> bool:
    outside = packet.outside
    return icrc.verify(packet.data[outside.offset : outside.end])
