"""The wire format: headers, frames, ICRC, dialects, and frames of other senders."""

import contextlib
import re
import shutil
import struct
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from benchmarks.rig.profiles import profile as profile_data
from common.linux import bpf
from endpoint import factory, profile as profiles
from endpoint.frame_filter import SEGMENTS_MAX, udp_over_ipv6
from endpoint.nic import frame, frame as frames, icrc, packet, wire
from endpoint.nic.attributes import VerbError
from endpoint.nic.config import ConfigError
from endpoint.nic.headers import ClientEeth
from endpoint.nic.wire import Opcode
from endpoint.transport import QPState
from tests.helpers import headers_page
from tests.helpers.dissector import build, dissected, number
from tests.helpers.transport import Bench, Flow, Packet, Wire

U1, U2, U4, U7, U8 = (st.integers(0, 2**bits - 1) for bits in (1, 2, 4, 7, 8))
U15, U16, U24, U32, U64 = (st.integers(0, 2**bits - 1) for bits in (15, 16, 24, 32, 64))
BOOL = st.booleans()
S16 = st.integers(-(2**15), 2**15 - 1)

HEADERS = [
    st.builds(wire.Bth, U8, U24, U24, U8, U2, BOOL, BOOL, U16, U8),
    st.builds(wire.Meth, U16, U16),
    st.builds(wire.Tseth, U16, U1, U4),
    st.builds(wire.Reth, U64, U32, U32),
    st.builds(wire.Aeth, U8, U24),
    st.builds(wire.Seth, U24, S16, U64, U32, U2, BOOL, S16, U4, U4, U8, U16, U16, U4),
    st.builds(wire.CcState, U16, U15, BOOL, U7, U24),
    st.builds(wire.Neth, U8, U24, U32, U16, U8, U16, U16, U4, U4, U4),
    st.builds(wire.Peth, U16, U16, U1, U4, U8, U16, U16),
    st.builds(wire.Erth, U2, U32, U16, U1, U4, U8),
    st.builds(wire.Eeth, U2, U32, U16, U1, U4, U8),
]


@given(st.one_of(HEADERS), st.integers(0, 7))
def test_every_header_survives_packing_at_any_offset(header: Any, offset: int) -> None:
    packed = header.pack()
    assert type(header).unpack(b"\0" * offset + packed, offset) == header


BY_HAND: dict[str, Any] = {
    "c8a0ffff40123456b0abcdef": wire.Bth(
        wire.Opcode.WRITE_LAST, 0x123456, 0xABCDEF, 0xB0, pad=2, solicited=True, variant=0x40
    ),
    "00070003c0010203": wire.CcState(7, 3, True, 64, 0x010203),
    "01020304": wire.Meth(0x0102, 0x0304),
    "0102800f": wire.Tseth(0x0102, 1, 15),
    "01020304050607080909090a0000000b": wire.Reth(0x0102030405060708, 0x0909090A, 11),
    "1f010203": wire.Aeth(0x1F, 0x010203),
    "8042fffedeadbeef06070809000a0b0c1507ffff0102030405060708": wire.Seth(
        0x0A0B0C, -1, 0x0102030405060708, 0xDEADBEEF, 2, True, -2, 1, 5, 7, 0x0607, 0x0809
    ),
    "a00002550102030406070809000a0b0c25001122": wire.Neth(2, 0x0A0B0C, 0x01020304, 0x1122, 0x55, 0x0607, 0x0809, 2, 5),
    "0000005501020000060708091122800f": wire.Peth(0x0102, 0x1122, 1, 15, 0x55, 0x0607, 0x0809),
    "0001005501020304000000001122800f": wire.Erth(1, 0x01020304, 0x1122, 1, 15, 0x55),
    "0004005501020304" + "00" * 20 + "1122800f00000000": wire.Eeth(1, 0x01020304, 0x1122, 1, 15, 0x55),
    "0010005501020304" + "00" * 20 + "1122800f00000000": ClientEeth(1, 0x01020304, 0x1122, 1, 15, 0x55),
}
"""Headers with a value in every field, and their bytes by the specification's figures."""


@pytest.mark.parametrize("text", BY_HAND)
def test_every_field_sits_at_its_bytes(text: str) -> None:
    header: Any = BY_HAND[text]
    assert header.pack().hex() == text
    assert type(header).unpack(bytes.fromhex(text)) == header


@given(U32)
def test_an_ev_survives_striping(value: int) -> None:
    source_port, flow_label = frame.stripe(value)
    assert 0 <= source_port < 2**16
    assert 0 <= flow_label < 2**16
    assert frame.unstripe(source_port, flow_label) == value
    assert frame.unstripe(source_port, flow_label | 0xF0000) == value


def _frame(outer: bool = True, payload: bytes = b"payload!") -> bytes:
    extension = wire.Meth(0, 1).pack() + wire.Reth(0x1000, 5, len(payload)).pack() + payload
    return build(wire.Bth(wire.Opcode.WRITE_ONLY, 7, 9), extension, ev=0xABCD1234, encapsulated=outer)


@pytest.mark.parametrize("outer", [True, False])
def test_a_frame_comes_apart_into_what_it_was_made_of(outer: bool) -> None:
    data = _frame(outer)
    parsed = frame.parse(data)
    assert (parsed.ev, parsed.udp_dport, parsed.dscp, parsed.marked) == (0xABCD1234, 4791, 10, False)
    assert parsed.end == len(data)
    assert (parsed.outer is not None) is outer
    assert wire.Bth.unpack(data, parsed.bth).psn == 9
    assert icrc.verify(data[parsed.offset :])
    assert len(data) == 14 + 40 * (1 + outer) + 8 + 12 + 4 + 16 + 8 + 4


def test_the_icrc_ignores_exactly_what_may_change_on_the_way() -> None:
    data = _frame()
    inner = 54
    mutable_bits = {(inner, bit) for bit in range(4)}  # traffic class, high half
    mutable_bits |= {(inner + i, bit) for i in (1, 2, 3, 7, 46, 47, 52) for bit in range(8)}
    for index in range(len(data)):
        for bit in range(8):
            changed = bytearray(data)
            changed[index] ^= 1 << bit
            covered = index >= inner and (index, bit) not in mutable_bits
            # The version nibble is fixed at 6 in the CRC and checked by the parser instead.
            if (index == inner) and bit >= 4:
                with pytest.raises(frame.MalformedFrame):
                    frame.parse(changed)
            else:
                assert icrc.verify(changed[inner:]) is not covered, (index, bit)


def test_the_icrc_agrees_with_a_crc_computed_bit_by_bit() -> None:
    inner = bytearray(_frame()[54:])
    masked = bytearray(b"\xff" * 8) + inner[:-4]
    masked[8] |= 0x0F
    masked[9:12] = b"\xff\xff\xff"
    masked[8 + 7] = 0xFF
    masked[8 + 46 : 8 + 48] = b"\xff\xff"
    masked[8 + 52] = 0xFF
    register = 0xFFFFFFFF
    for byte in masked:
        register ^= byte
        for _ in range(8):
            register = register >> 1 ^ (0xEDB88320 if register & 1 else 0)
    assert (register ^ 0xFFFFFFFF).to_bytes(4, "little") == inner[-4:]


@given(st.binary(max_size=200), st.binary(max_size=20), st.integers(0, 200))
def test_hostile_bytes_parse_or_are_refused_with_a_reason(data: bytes, patch: bytes, at: int) -> None:
    whole = _frame()
    for hostile in (data, whole[:at] + data, whole[:at] + patch + whole[at + len(patch) :]):
        with contextlib.suppress(frame.MalformedFrame):
            parsed = frame.parse(hostile)
            assert parsed.bth <= len(hostile)
            assert (hostile[parsed.offset] >> 4, hostile[parsed.offset + 6]) == (6, frame.NEXT_UDP)
            assert parsed.src + parsed.dst == hostile[parsed.offset + 8 : parsed.offset + 40]
    assert not icrc.verify(data)


@given(HEADERS[5], HEADERS[6], U24)
def test_the_fused_sack_layout_is_the_plain_headers_in_a_row(seth: wire.Seth, state: wire.CcState, psn: int) -> None:
    plain = wire.Bth(wire.Opcode.SACK, 7, psn).pack() + seth.pack() + state.pack()
    assert len(plain) == packet.SACK.size
    assert packet.SACK.pack(*packet.SACK.unpack(plain)) == plain
    first, answer, entropy, _, _, cack, kind, mpr, offset, bitmap, stamp, ooo, last = packet.SACK.unpack(plain)[5:]
    credit = kind << 8 | mpr
    assert (answer, entropy, cack & 0xFFFFFF, offset, bitmap) == (
        seth.ack_psn_offset,
        seth.entropy,
        seth.cack_psn,
        seth.sack_offset,
        seth.bitmap,
    )
    assert (first >> 5 & 3, bool(first & 2), last >> 24 & 0x7F) == (seth.mark, seth.probe_response, state.rcv_cwnd_pen)
    assert (credit >> 12, credit >> 8 & 0xF, credit & 0xFF) == (seth.cc_type, seth.cc_flags, seth.mpr)
    assert (stamp, ooo & 0x7FFF) == (state.tx_timestamp, state.ooo_count)


@given(HEADERS[0], HEADERS[1], HEADERS[3])
def test_the_fused_write_layout_is_the_plain_headers_in_a_row(bth: wire.Bth, meth: wire.Meth, reth: wire.Reth) -> None:
    plain = bth.pack() + meth.pack() + reth.pack()
    assert len(plain) == packet.WRITE.size
    assert packet.WRITE.pack(*packet.WRITE.unpack(plain)) == plain
    assert packet.WRITE.unpack(plain)[5:] == (meth.rqmsn, meth.msn, reth.va, reth.rkey, reth.length)


ROOT = Path(__file__).parents[3]
C = (ROOT / "endpoint/nic/native/codec_direct.c").read_text()
OFFSETS = {
    "OUTER": frame.ETHERNET,
    "INNER": packet.INNER_OFFSET,
    "LENGTH": packet.LENGTH_OFFSET,
    "OPCODE": packet.BTH_OFFSET,
}


@pytest.mark.parametrize("name", OFFSETS)
def test_c_and_python_say_where_the_headers_in_front_of_the_bth_are(name: str) -> None:
    assert re.findall(rf"\b{name} = (\d+)\b", C) == [str(OFFSETS[name])]


def test_what_is_made_of_the_table_of_headers_is_up_to_date() -> None:
    assert headers_page.PAGE.read_text() == headers_page.page(), "python -m tests.helpers.headers_page writes it"
    assert headers_page.OFFSETS.read_text() == headers_page.offsets(), "python -m tests.helpers.headers_page writes it"


@pytest.mark.parametrize("folder", ["endpoint/nic", "endpoint/mrc"])
def test_opcodes_are_numbers_in_one_file_only(folder: str) -> None:
    """A literal opcode elsewhere would not change with `wire.py`."""
    for path in [*sorted((ROOT / folder).rglob("*.py")), *sorted((ROOT / folder).rglob("*.c"))]:
        if path.name != "wire.py":
            text = path.read_text().replace("data[12] != 0x86 or data[13] != 0xDD", "")  # the ethertype
            assert re.findall(r"\b(?:0xC[6-9AB]|0xD[189CDE])\b", text) == [], path


ETHERNET, IPV6, UDP, BTH = 14, 40, 8, 12
OUTER, INNER = ETHERNET, ETHERNET + IPV6
SOURCE_PORT = slice(ETHERNET + 2 * IPV6, ETHERNET + 2 * IPV6 + 2)
UDP_PORT = slice(SOURCE_PORT.stop, SOURCE_PORT.stop + 2)
EXTENSION = ETHERNET + 2 * IPV6 + UDP + BTH
DIALECTS = ("default", "mrc-client")


# --- the bytes --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("dialect", "label", "port"), [("default", 0x00001, "12b7"), ("mrc-client", 0x1C003, "136b")])
def test_ev_1c003_and_the_udp_port_are_where_the_dialect_has_them(dialect: str, label: int, port: str) -> None:
    bench = Bench(planes=2, evs_per_plane=1, changes={"ev_first": 0xC003}, dialect=dialect)
    bench.post(2)
    (frame,) = [packet.frame for packet in bench.writes() if packet.port == 2]
    assert frame[SOURCE_PORT].hex() == "c003"
    assert frame[UDP_PORT].hex() == port
    for at in (OUTER, INNER):
        assert int.from_bytes(frame[at : at + 4], "big") & 0xFFFFF == label


def test_an_ev_of_more_than_20_bits_is_refused_where_packets_carry_20() -> None:
    data = profile_data(0, planes=17, evs_per_plane=1)
    factory.make("mrc", profiles.parse(data), 1, {}, 0)
    with pytest.raises(ConfigError, match="dialect mrc-client carries EVs of 20 bits, and h0 has EV 0x100000"):
        factory.make("mrc", profiles.parse(data), 1, {"dialect": "mrc-client"}, 0)


def test_payload_is_not_counted_where_a_frame_without_it_could_not_be_known() -> None:
    with pytest.raises(factory.TransportError, match="payload must be real in the dialect mrc-client"):
        factory.make("mrc", profiles.parse(profile_data(0)), 1, {"dialect": "mrc-client"}, 0, counted=True)


def test_se_and_m_are_the_upper_bits_of_bth_byte_1() -> None:
    assert wire.Bth(0xCA, 1, 1, solicited=True).pack()[1] == 0x80
    assert wire.Bth(0xCA, 1, 1, migrated=True, pad=3).pack()[1] == 0x40 | 0x30


@pytest.mark.parametrize(("dialect", "byte"), [("default", 0b0100), ("mrc-client", 0b01_0000)])
def test_the_operation_of_an_ev_probes_response_is_in_the_dialects_bits(dialect: str, byte: int) -> None:
    bench = Bench(dialect=dialect)
    route = bench.qp_a.reverse.candidate()
    assert route is not None
    bench.qp_a.probe_ev(route)
    (request,) = bench.out(bench.a, Opcode.ENDPOINT_REQUEST)
    assert request.frame[EXTENSION + 1] == 1  # ERTH: undisputed
    bench.to_b(request)
    (response,) = bench.answers(Opcode.ENDPOINT_RESPONSE)
    assert response.frame[EXTENSION + 1] == byte


def test_ports_1_3_and_4_are_bits_0_2_and_3_of_a_port_status_mask() -> None:
    bench = Bench(planes=4)
    bench.a.port_changed(2, False, bench.now_ns)
    requests = bench.out(bench.a, Opcode.ENDPOINT_REQUEST)
    assert {packet.frame[EXTENSION + 4 : EXTENSION + 8].hex() for packet in requests} == {"0000000d"}


def test_a_timestamp_with_tsr_1_counts_our_own_ticks() -> None:
    bench = Bench(timestamps=True, timeout=15)  # 33.6 ms, and 16 bits of 128 ns are 8.4 ms
    (packet,) = bench.write()
    assert packet.frame[EXTENSION + 4 : EXTENSION + 8].hex() == f"{1_000_000 // (128 * 4):04x}8001"


@pytest.mark.parametrize("name", ["client", "eeth_op=5:4"])
def test_a_dialect_that_is_none_is_refused_with_the_valid_names(name: str) -> None:
    with pytest.raises(ConfigError, match=f"dialect must be one of default, mrc-client \\(got '{name}'\\)"):
        factory.make("mrc", profiles.parse(profile_data(0)), 1, {"dialect": name}, 0)


# --- two hosts --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("encapsulation", ["srv6", "none"])
@pytest.mark.parametrize("dialect", DIALECTS)
def test_two_hosts_of_one_dialect_write_and_lose_ports(dialect: str, encapsulation: str) -> None:
    """Writes, with a port of each host down for a while, until all have arrived."""
    wire_ = Wire(ev_first=0xC000, timestamps=True, dialect=dialect, profile_changes={"encapsulation": encapsulation})
    flow = Flow(wire_)
    trip_ns = wire_.base_rtt_ns
    for wait, host, up in ((5, "h0", False), (9, "h1", False), (40, "h0", True), (50, "h1", True)):
        port = 2 if host == "h0" else 3
        wire_.at(wait * trip_ns, lambda host=host, port=port, up=up: wire_.set_port(host, port, up))
    flow.keep_posted(50_000, 16, 60 * trip_ns)
    wire_.run(100 * trip_ns)
    wire_.run(1000 * trip_ns, stop=lambda: flow.finished)
    assert flow.done_bytes > 2_000_000
    flow.check()
    for host, peer in (("h0", "h1"), ("h1", "h0")):
        events = "\n".join(line for line in wire_.journal if f" {host} plane " in line)
        for state in ("down", "up"):  # each host has heard of the other's port
            assert f"'side': 'peer', 'peer': '{peer}', 'state': '{state}'" in events
    evs = wire_.transports["h0"].peers.named("h1").by_ev
    heard = [Packet(port, frame) for port, frame in wire_.heard["h0"]]
    echoed = {packet.seth.entropy for packet in heard if packet.opcode is Opcode.SACK}
    assert echoed
    assert echoed <= set(evs)


def test_a_host_of_another_dialect_is_refused() -> None:
    wire_ = Wire(host_settings={"h1": {"dialect": "mrc-client"}})
    here, there = wire_.transports["h0"], wire_.transports["h1"]
    qp, peer = here.create_qp(here.create_cq(8)), there.create_qp(there.create_cq(8))
    qp.modify(QPState.INIT, 0)
    with pytest.raises(
        VerbError, match=r"h1 and h0 must have the same setting 'dialect' \(got 'mrc-client' and 'default'\)"
    ):
        qp.modify(QPState.RTR, 0, peer=peer.info())
    assert qp.state is QPState.INIT
    qp.modify(QPState.RTR, 0, peer=replace(peer.info(), dialect=None))  # nothing was changed


@pytest.mark.parametrize("said", ["nonsense", "x" * 600, "", 5, b"default", ["default"]])
def test_any_other_statement_of_a_peer_is_refused(said) -> None:
    bench = Bench()
    qp = bench.a.create_qp(bench.cq_a)
    with pytest.raises(VerbError, match="must have the same setting 'dialect'") as refused:
        qp.connect(replace(bench.qp_b.info(), dialect=said), bench.now_ns)
    assert len(str(refused.value)) < 200


def test_answers_of_a_silent_peer_of_another_dialect_fail_the_integrity_check() -> None:
    wire_ = Wire(host_settings={"h1": {"dialect": "mrc-client"}})
    flow = Flow(wire_, silent=True)
    flow.post(50_000)
    wire_.run(20 * wire_.base_rtt_ns)
    flow.poll()
    assert wire_.transports["h0"].counters()["drops"]["icrc"] > 0
    assert not flow.statuses


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


@pytest.mark.parametrize("routed", [False, True])
def test_a_check_of_another_kind_is_dropped_and_counted(routed: bool) -> None:
    bench = Bench()
    # Four other bytes in place of the ICRC: the check of a NIC that reads the rule otherwise.
    sent = [Packet(p.port, p.frame[:-4] + bytes(byte ^ 0x5A for byte in p.frame[-4:])) for p in bench.write(2)]
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
