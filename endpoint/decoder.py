"""The first bytes of a frame in the words of the transports: for packet logs and sampled lines."""

import struct
from collections.abc import Collection, Mapping
from typing import Any

from common.linux.bpf import run as run_filter
from endpoint import prober
from endpoint.nic import frame as frames
from endpoint.nic import icrc, wire
from endpoint.nic.dialect import UDP_PORTS, Dialect
from endpoint.roce import wire as roce

Fields = dict[str, Any]

OPERATIONS: dict[int, str] = {code.value: code.name for code in (*roce.Opcode, *wire.Opcode)}
NOTHING: Fields = dict.fromkeys(
    (
        "src", "dst", "op", "qpn", "psn", "ev", "echo_ev", "cause_psn", "sacked", "va", "payload", "retransmission",
        "marked", "trimmed",
    )
)  # fmt: skip


class Decoder:
    """Decodes frames of one fabric; `hosts` are names by inner address, `trimmed` the DSCPs of trimmed packets."""

    def __init__(self, hosts: Mapping[bytes, str], trimmed: Collection[int], udp_port: int, dialect: Dialect) -> None:
        self._dialect = dialect
        self._udp_ports = {*UDP_PORTS, udp_port}
        self._hosts = hosts
        self._trimmed = frozenset(trimmed)

    def fields(self, head: bytes) -> Fields:
        """The fields from src to trimmed of the packet log (docs/contracts.md); all None for a frame of no transport.

        `head` is the frame's beginning, everything in front of the payload.
        """
        try:
            frame = frames.parse(head, self._dialect)
            return {**NOTHING, **self._outside(frame), **self._inside(head, frame)}
        except (frames.MalformedFrame, struct.error):
            return dict(NOTHING)

    def _outside(self, frame: frames.Frame) -> Fields:
        return {
            "src": self._hosts.get(bytes(frame.src)),
            "dst": self._hosts.get(bytes(frame.dst)),
            "marked": frame.marked,
            "trimmed": frame.dscp in self._trimmed,
        }

    def _inside(self, head: bytes, frame: frames.Frame) -> Fields:
        if frame.udp_dport not in self._udp_ports:
            return {"op": "PATH_PROBE"} if run_filter(prober.FRAMES, head) else {}
        bth = wire.Bth.unpack(head, frame.bth)
        body = frame.bth + wire.BTH_BYTES
        told: Fields = {
            "op": OPERATIONS.get(bth.opcode, f"{bth.opcode:#04x}"),
            "qpn": bth.dest_qpn,
            "psn": bth.psn,
            "ev": frame.ev,
            "retransmission": bool(bth.flags & wire.RETRANSMISSION),
        }
        if bth.opcode in wire.WRITES or bth.opcode in roce.FIRSTS:
            told |= placed(head, body, bth, frame.udp_end - icrc.SIZE)
        elif bth.opcode == wire.Opcode.SACK:
            told |= answered(wire.Seth.unpack(head, body))
        elif bth.opcode == wire.Opcode.NACK:
            nack = wire.Neth.unpack(head, body)
            told |= {"psn": nack.nack_psn, "echo_ev": nack.entropy, "cause_psn": nack.nack_psn}
        return told


def placed(head: bytes, body: int, bth: wire.Bth, end: int) -> Fields:
    """Where a write's payload goes, and its bytes when it was sent. `end` is where payload and pad end by the UDP
    length, which trimming leaves alone."""
    if bth.opcode in wire.WRITES:
        body += wire.METH_BYTES + (wire.TSETH_BYTES if bth.flags & wire.TIMESTAMP else 0)
    immediate = wire.IMMEDIATE.size if bth.opcode in wire.IMMEDIATES or bth.opcode in roce.IMMEDIATES else 0
    payload = end - body - wire.RETH_BYTES - immediate - bth.pad
    cut = len(head) < body + wire.RETH_BYTES  # trimmed to so few bytes that the place itself is gone
    return {"va": None if cut else wire.Reth.unpack(head, body).va, "payload": max(0, payload)}


def answered(sack: wire.Seth) -> Fields:
    """The acknowledgement of a SACK: its cumulative PSN as `psn`, the PSNs beyond as ranges, and what has caused it."""
    ranges: list[list[int]] = []
    for bit in range(wire.SACK_BITS):
        if not sack.bitmap >> bit & 1:
            continue
        psn = sack.cack_psn + sack.sack_offset + bit
        if ranges and ranges[-1][1] == psn - 1:
            ranges[-1][1] = psn
        else:
            ranges.append([psn, psn])
    cause = None if sack.probe_response else (sack.cack_psn + sack.ack_psn_offset) % (1 << wire.PSN_BITS)
    return {
        "psn": sack.cack_psn,
        "echo_ev": sack.entropy,
        "cause_psn": cause,
        "sacked": [[first % (1 << wire.PSN_BITS), last % (1 << wire.PSN_BITS)] for first, last in ranges],
    }


def acknowledges(answer: Mapping[str, Any], psn: int) -> bool:
    """Whether a SACK's fields say that this PSN has arrived: up to the cumulative one, or among the ranges beyond."""
    half, modulus = 1 << wire.PSN_BITS - 1, 1 << wire.PSN_BITS
    if (answer["psn"] - psn) % modulus < half:
        return True
    return any((psn - first) % modulus <= (last - first) % modulus for first, last in answer["sacked"] or ())
