"""Frames that other programs lay out in another way: segment routing headers, answers without an outer header, checks.

Linux' `seg6 mode encap` writes a segment routing header whenever it encapsulates. `test_mrc_client.py` has frames of
MRC-Client.
"""

import shutil
import struct

import pytest

from common.linux import bpf
from endpoint.frame_filter import SEGMENTS_MAX, udp_over_ipv6
from endpoint.nic import frame as frames, icrc, wire
from endpoint.nic.wire import Opcode
from tests.helpers.dissector import build, dissected, number
from tests.helpers.transport import Bench, Packet

SEGMENT = bytes.fromhex("fcbbbbbb100020031001300200000000")
FILTER = udp_over_ipv6((4791, 4971), 7, 3, segments=SEGMENTS_MAX)


def with_routing(frame: bytes, segments: int, left: int = 0) -> bytes:
    """An encapsulated frame with a segment routing header (RFC 8754, section 2) behind its outer header."""
    header = struct.pack("!BBBBBBH", 41, 2 * segments, 4, left, segments - 1, 0, 0) + SEGMENT * segments
    length = struct.unpack_from("!H", frame, 18)[0] + len(header)
    front = frame[:18] + struct.pack("!H", length) + bytes([43]) + frame[21:54]
    return front + header + frame[54:]


@pytest.mark.parametrize("segments", [1, 2, SEGMENTS_MAX])
def test_a_frame_with_a_segment_routing_header_is_read_as_without(segments: int) -> None:
    plain = build(wire.Bth(Opcode.ACKNOWLEDGE, 0x123, 7), wire.Aeth(0x1F, 1).pack())
    routed = with_routing(plain, segments, left=segments - 1)
    before, after = frames.parse(plain), frames.parse(routed)
    moved = 8 + 16 * segments
    assert after == before._replace(
        offset=before.offset + moved, end=before.end + moved, udp_end=before.udp_end + moved
    )
    assert wire.Bth.unpack(routed, after.bth).psn == 7
    assert icrc.verify(routed[after.offset : after.end])
    assert bpf.run(FILTER, routed) == 7


@pytest.mark.parametrize(
    ("at", "value", "complaint"),
    [(56, 3, "has type 3, not 4"), (54, 17, "segment routing header is 17, not IPv6"), (55, 255, "too few")],
)
def test_other_routing_headers_are_refused(at: int, value: int, complaint: str) -> None:
    routed = bytearray(with_routing(build(wire.Bth(Opcode.ACKNOWLEDGE, 1, 7), wire.Aeth(0x1F, 1).pack()), 1))
    routed[at] = value
    with pytest.raises(frames.MalformedFrame, match=complaint):
        frames.parse(routed)
    assert bpf.run(FILTER, bytes(routed)) in (3, 0)


def test_data_and_answers_behind_segment_routing_headers_complete_a_write() -> None:
    bench = Bench()
    bench.post(5)
    bench.to_b(*(Packet(one.port, with_routing(one.frame, 2, left=1)) for one in bench.writes()))
    bench.to_a(*(Packet(one.port, with_routing(one.frame, 1)) for one in bench.answers()))
    assert [done.status.value for done in bench.completions()] == ["success"]
    assert bench.sink[: 5 * 4096] == bench.source[: 5 * 4096]


def test_answers_without_an_outer_header_and_with_other_macs_complete_a_write() -> None:
    """As MRC-Client answers: one IPv6 header, MACs of zeros."""
    bench = Bench()
    bench.to_b(*bench.write(5))
    bench.to_a(*(Packet(one.port, bytes(12) + one.frame[12:14] + one.frame[54:]) for one in bench.answers()))
    assert [done.status.value for done in bench.completions()] == ["success"]


def with_other_check(packet: Packet) -> Packet:
    """With four other bytes in place of the ICRC: the check of a NIC that reads the rule otherwise."""
    return Packet(packet.port, packet.frame[:-4] + bytes(byte ^ 0x5A for byte in packet.frame[-4:]))


@pytest.mark.parametrize("routed", [False, True])
def test_a_check_of_another_kind_is_dropped_and_counted(routed: bool) -> None:
    bench = Bench()
    sent = [with_other_check(packet) for packet in bench.write(2)]
    if routed:
        sent = [Packet(packet.port, with_routing(packet.frame, 1)) for packet in sent]
    bench.to_b(*sent)
    assert bench.b.log.drops["icrc"] == 2
    assert not any(bench.sink)
    assert not bench.answers()


@pytest.mark.skipif(shutil.which("tshark") is None, reason="needs tshark on PATH")
def test_wireshark_reads_behind_a_segment_routing_header(tmp_path) -> None:
    plain = build(wire.Bth(Opcode.SACK, 0x123, 9), wire.Seth(9, 1, 0b110, 0x1C003).pack() + wire.CcState().pack())
    before, after = dissected(tmp_path, plain, with_routing(plain, 2, left=1))
    assert after == before
    assert number(after, "mrc.sack.cack_psn") == 9
    assert number(after, "mrc.icrc.status") == 1


def test_scapy_reads_behind_a_segment_routing_header() -> None:
    pytest.importorskip("scapy", reason="needs the optional package scapy")
    from scapy.layers.l2 import Ether

    from endpoint import scapy as layers

    frame = with_routing(
        build(wire.Bth(Opcode.ACKNOWLEDGE, 0x123, 7), wire.Aeth(0x1F, 1).pack(), ev=0x1C003), 2, left=1
    )
    seen = Ether(frame)
    assert (seen[layers.Mrc].dqpn, seen[layers.Mrc].psn, seen[layers.Aeth].msn) == (0x123, 7, 1)
    assert layers.entropy(seen) == 0x1C003
    assert layers.compute_icrc(seen[layers.Mrc], frame[-20:-4]) == struct.unpack("<I", frame[-4:])[0]
