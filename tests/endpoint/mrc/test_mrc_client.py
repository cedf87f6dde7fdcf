"""MRC-Client (anichol67): its frames by hand after its published sources, and a checkout of it, where one is given.

It writes BTH and extension headers in an IPv6 packet, with an outer header only where it sends by SRv6, and then
perhaps a segment routing header. Its check is a CRC of another kind. In its format ECMP an EV is in the UDP source port
and in the flow label, and its responder echoes the source port alone: EVs of 16 bits come back whole.
"""

from __future__ import annotations

import importlib
import os
import shutil
import struct
import sys
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

from endpoint.nic import check, frame as frames, icrc, wire
from endpoint.nic.wire import Opcode
from tests.helpers.dissector import DST, SRC, USIDS, dissected, number
from tests.helpers.transport import Bench, Packet

MRC_CLIENT = "MRCLAB_MRC_CLIENT"
"""The environment variable that says where a checkout of MRC-Client is."""
DIALECT = "mrc-client"
PACKETS = 1_000_000
"""Of each direction below: one to three minutes of a processor."""
EV = 0x0C003
PORT = 4971

needs_tshark = pytest.mark.skipif(shutil.which("tshark") is None, reason="needs tshark on PATH")


def crc(data: bytes) -> bytes:
    """Bit by bit: the check as MRC-Client computes it."""
    state = 0xFFFFFFFF
    for byte in data:
        state ^= byte
        for _ in range(8):
            state = (state >> 1) ^ 0x1EDC6F41 if state & 1 else state >> 1
    return struct.pack("!I", state ^ 0xFFFFFFFF)


def client_frame(opcode: int, qpn: int, psn: int, body: bytes, *, ev: int = EV, dscp: int = 4) -> bytes:
    """A frame of h0 to h1: Ethernet, IPv6, UDP, BTH with P_Key 0, what follows, the check."""
    bth = struct.pack("!BBHII", opcode, 0, 0, qpn, psn)
    udp = struct.pack("!HHHH", ev & 0xFFFF, PORT, 8 + 12 + len(body) + 4, 0)
    ipv6 = struct.pack("!IHBB", 6 << 28 | dscp << 22 | ev & 0xFFFFF, len(udp) + 12 + len(body) + 4, 17, 64)
    return bytes(12) + b"\x86\xdd" + ipv6 + SRC + DST + udp + bth + body + crc(bth + body)


def write_body(va: int, rkey: int, payload: bytes, msn: int = 0) -> bytes:
    """METH, RETH, payload."""
    return struct.pack("!HH", 0, msn) + struct.pack("!QII", va, rkey, len(payload)) + payload


class Answer(NamedTuple):
    """One of our frames, taken apart by MRC-Client's layout, in a packet without an outer header."""

    label: int
    source_port: int
    opcode: int
    qpn: int
    psn: int
    body: bytes

    @classmethod
    def read(cls, frame: bytes) -> Answer:
        (first,) = struct.unpack_from("!I", frame, 14)
        assert frame[20] == 17
        assert frame[-4:] == crc(frame[62:-4])
        source, port = struct.unpack_from("!HH", frame, 54)
        assert port == PORT
        return cls(
            first & 0xFFFFF,
            source,
            frame[62],
            int.from_bytes(frame[67:70], "big"),
            int.from_bytes(frame[71:74], "big"),
            frame[74:-4],
        )


def plain_bench(**changes: Any) -> Bench:
    """Two of our NICs without SRv6 on one plane, whose EVs have 16 bits, and which acknowledge every packet."""
    own = {"encapsulation": "none", "ev_first": EV, **changes}
    return Bench(planes=1, changes=own, dialect=DIALECT, sack_threshold_bytes=0)


def answered(bench: Bench, *given: bytes) -> list[Answer]:
    for frame in given:
        bench.b.receive(1, [frame], bench.now_ns)
    found: list[Answer] = []
    for _ in range(100):
        batch = bench.b.packets_to_send(bench.now_ns, 64)
        if not batch:
            return found
        found += [Answer.read(frame) for _, frame in batch]
    raise AssertionError("answers without end")


def test_a_write_of_mrc_client_by_hand_is_placed_and_acknowledged_in_its_own_dialect() -> None:
    bench = plain_bench()
    target, qpn = bench.target, bench.qp_b.qpn
    sack, ack = answered(
        bench, client_frame(Opcode.WRITE_ONLY, qpn, 0, write_body(target.va + 8, target.rkey, b"abcd" * 1024))
    )
    assert bench.sink[8 : 8 + 4096] == b"abcd" * 1024
    assert (sack.opcode, sack.qpn, sack.psn) == (Opcode.SACK, bench.qp_a.qpn, 0)
    assert int.from_bytes(sack.body[4:8], "big") == EV  # the echo
    assert sack.body[12:16] == b"\x00\x00\x00\x00"  # cumulative PSN 0
    assert (ack.opcode, ack.body) == (Opcode.ACKNOWLEDGE, b"\x1f\x00\x00\x01")  # one message
    assert (sack.label, sack.source_port) == (sack.label & 0xFFFF, sack.label & 0xFFFF)


def test_a_probe_an_ev_probe_and_a_port_status_of_mrc_client_are_answered() -> None:
    bench = plain_bench()
    peth = struct.pack("!BBBBHHHHHH", 0, 0, 0, 0, 77, 0, 1, 2, 5, 1)
    sack, _ = answered(bench, client_frame(Opcode.PROBE, bench.qp_b.qpn, 0, peth))
    assert sack.opcode == Opcode.SACK
    assert sack.body[1] & 0x02  # in answer to a probe
    assert sack.body[2:4] == struct.pack("!H", 77)
    for operation, mask in ((1, 0), (0, 1)):
        erth = struct.pack("!BBBBIIHH", 0, operation, 0, 0, mask, 0, 9, 1)
        (response,) = answered(bench, client_frame(Opcode.ENDPOINT_REQUEST, 2, 0x1234, erth, dscp=0))
        assert (response.opcode, response.psn & 0xFFFF) == (Opcode.ENDPOINT_RESPONSE, 0x1234)
        assert response.body[1] >> 4 & 3 == operation
    assert "icrc" not in bench.b.log.drops


@pytest.mark.parametrize("at", [-1, 66, 80])
def test_a_damaged_frame_of_mrc_client_is_dropped_and_counted(at: int) -> None:
    bench = plain_bench()
    frame = bytearray(
        client_frame(Opcode.WRITE_ONLY, bench.qp_b.qpn, 0, write_body(bench.target.va, bench.target.rkey, b"abcd"))
    )
    frame[at] ^= 1
    assert answered(bench, bytes(frame)) == []
    assert bench.b.log.drops["icrc"] == 1
    assert not any(bench.sink)


@pytest.mark.parametrize("encapsulation", ["srv6", "none"])
def test_trimmed_and_cut_frames_are_read_as_in_the_default_dialect(encapsulation: str) -> None:
    """A trimmed packet is refused and comes again; any other cut, and any length, is dropped without an exception."""
    bench = Bench(planes=1, changes={"encapsulation": encapsulation}, dialect=DIALECT)
    whole = bench.write(2)
    bench.to_b(whole[0].trimmed())
    bench.to_b(whole[1])
    for size in range(len(whole[1].frame)):
        bench.b.receive(1, [whole[1].frame[:size]], bench.now_ns)
    bench.to_a(*bench.answers())
    bench.to_b(*bench.writes())
    bench.to_a(*bench.answers())
    assert [done.status.value for done in bench.completions()] == ["success"]
    assert bench.sink[:8192] == bench.source[:8192]


@pytest.mark.parametrize("length", [*range(26), 0xFFFF])
def test_a_udp_length_that_ends_before_the_packet_does_is_dropped(length: int) -> None:
    """Before the header, in it, or right behind it; the check of MRC-Client over nothing is 0, and so right."""
    bench = plain_bench()
    frame = bytearray(client_frame(Opcode.WRITE_ONLY, bench.qp_b.qpn, 0, write_body(bench.target.va, 1, bytes(8))))
    struct.pack_into("!H", frame, 18, length)
    struct.pack_into("!H", frame, 58, length)
    frame[62:] = bytes(len(frame) - 62)
    assert answered(bench, bytes(frame)) == []
    assert sum(bench.b.log.drops.values()) == 1
    assert not any(bench.sink)


@needs_tshark
def test_wireshark_judges_the_check_by_the_rule_of_the_dialect(tmp_path) -> None:
    right = client_frame(Opcode.WRITE_ONLY, 0x100, 7, write_body(64, 5, b"abcd"))
    wrong = right[:-1] + bytes([right[-1] ^ 1])
    good, bad = dissected(tmp_path, right, wrong, options=("-o", f"mrc.dialect:{DIALECT}"))
    assert (number(good, "mrc.icrc.status"), number(bad, "mrc.icrc.status")) == (1, 0)
    assert number(good, "mrc.ev") == EV
    assert "mrc.icrc.bad" in bad
    assert "mrc.icrc.bad" not in good


# --- a checkout of MRC-Client -----------------------------------------------------------------------------------------


@pytest.fixture
def client() -> Iterator[Any]:
    """MRC-Client's `core` package, from the checkout that the environment names."""
    place = os.environ.get(MRC_CLIENT)
    if not place:
        pytest.skip(f"needs a checkout of MRC-Client, and {MRC_CLIENT} with its place")
    sys.path.insert(0, place)
    try:
        names = ("packet_builder", "packet_parser", "mrc_responder", "mrc_headers", "congestion", "qp_manager")
        yield {name: importlib.import_module(f"core.{name}") for name in names}
    finally:
        sys.path.remove(place)


@pytest.fixture
def quick_check(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Our form of its check, which is the same and takes a third of the time."""
    monkeypatch.setattr(client["packet_builder"], "compute_icrc", check.client_crc)


ENDS = {"src_ipv6": "fd00::1", "dst_ipv6": "fd00::2", "src_mac": "02:00:00:00:00:01", "dst_mac": "02:00:00:00:00:02"}


def capture(client: Any, qpn: int, va: int, rkey: int) -> dict[str, bytes]:
    """One frame of each kind, as MRC-Client's builder makes them, for our QP and memory."""
    builder = client["packet_builder"].PacketBuilder()
    to, seen = {**ENDS, "src_qpn": qpn, "dst_qpn": qpn}, {"ev_value": EV}
    write = {**to, "va": va, "r_key": rkey, "dmalen": 4096, "payload": b"abcd" * 1024}
    segments = ["fcbb:bbbb:1000::", "fcbb:bbbb:3001::"]
    packets = {
        "write": builder.build_write(**write, **seen, psn=0, msn=0),
        "srv6": builder.build_srv6_write(**write, psn=1, msn=1, srv6_dst="fcbb:bbbb:3001::"),
        "srh": builder.build_srv6_write(**write, psn=2, msn=2, srv6_dst="fcbb:bbbb:3001::", segment_list=segments),
        "probe": builder.build_reliability_probe(**to, **seen, probe_id=77),
        "ev probe": builder.build_ev_probe(**ENDS, **seen, probe_id=78),
        "port status": builder.build_port_status_update(**ENDS, probe_id=79, port_mask=1),
    }
    return {name: packet.to_bytes() for name, packet in packets.items()}


def test_the_check_is_mrc_clients_own(client: Any) -> None:
    for data in (b"", b"a", bytes(range(256)) * 16):
        assert check.client_crc(data) == client["packet_builder"].compute_icrc(data)


def test_every_field_of_a_write_of_mrc_client_is_read(client: Any) -> None:
    segments = ["fcbb:bbbb:1000::", "fcbb:bbbb:3002::"]
    packet = client["packet_builder"].PacketBuilder().build_srv6_write(
        **ENDS, src_qpn=1, dst_qpn=0x123, psn=77, va=0x1000, r_key=0xBEEF, dmalen=4,
        payload=b"abcd", srv6_dst="fcbb:bbbb:1000:2003:1001:3002::", segment_list=segments, msn=5,
    )  # fmt: skip
    data = packet.to_bytes()
    found = frames.parse(data)
    bth = wire.Bth.unpack(data, found.bth)
    assert (found.src, found.dst, found.udp_dport) == (SRC, DST, PORT)
    assert found.outer is not None
    assert found.outer[1] == USIDS
    assert (bth.opcode, bth.dest_qpn, bth.psn) == (Opcode.WRITE_ONLY, 0x123, 77)
    at = found.bth + wire.BTH_BYTES
    assert wire.Meth.unpack(data, at) == wire.Meth(0, 5)
    assert wire.Reth.unpack(data, at + wire.METH_BYTES) == wire.Reth(0x1000, 0xBEEF, 4)
    assert data[at + wire.METH_BYTES + wire.RETH_BYTES : -4] == b"abcd"
    assert not icrc.verify(data[found.offset :])


def test_our_endpoint_answers_a_capture_of_mrc_client_and_its_parser_reads_the_answers(client: Any) -> None:
    bench = plain_bench()
    given = capture(client, bench.qp_b.qpn, bench.target.va, bench.target.rkey)
    read = client["packet_parser"].parse_packet
    told = {}
    for name, frame in given.items():
        bench.b.receive(1, [frame], bench.now_ns)
        told[name] = [read(answer) for _, answer in bench.b.packets_to_send(bench.now_ns, 64)]
    assert bench.sink[:4096] == b"abcd" * 1024
    for psn, name in enumerate(("write", "srv6", "srh")):
        sack, ack = told[name]
        assert (ack.bth.opcode, ack.aeth.msn) == (Opcode.ACKNOWLEDGE, psn + 1)
        assert (sack.bth.opcode, sack.bth.dqp, sack.seth.cack_psn) == (Opcode.SACK, bench.qp_a.qpn, psn)
    assert told["write"][0].seth.entropy == EV
    assert told["srv6"][0].seth.entropy == told["srh"][0].seth.entropy == 0  # it writes no EV there
    assert (told["probe"][0].seth.pr, told["probe"][0].seth.ack_psn_offset) == (1, 77)
    assert (told["ev probe"][0].eeth.op, told["port status"][0].eeth.op) == (1, 0)
    assert [told[name][0].bth.psn & 0xFFFF for name in ("ev probe", "port status")] == [78, 79]
    assert not bench.b.log.drops


def test_mrc_clients_responder_acknowledges_our_write(client: Any) -> None:
    """Its `process_packet` fails on a keyword that its own CC_STATE does not have (986ded2), so the SACK is made here,
    as there, from its state of the queue pair and by its builder. It answers to the QP that the write names, since it
    knows no other: both QPs here have one number."""
    bench = plain_bench()
    bench.post(8)
    state = client["mrc_responder"].ResponderQPState()
    builder = client["packet_builder"].PacketBuilder()
    for _, frame in _sent(bench):
        packet = client["packet_parser"].parse_packet(frame)
        state.receive_psn(packet.bth.psn, len(packet.payload))
        offset, bitmap = state.build_sack_bitmap()
        sack = builder.build_sack(
            src_ipv6=packet.ipv6.dst_addr, dst_ipv6=packet.ipv6.src_addr, src_mac="00:00:00:00:00:00",
            dst_mac="00:00:00:00:00:00", src_qpn=packet.bth.dqp, dst_qpn=packet.bth.dqp, cack_psn=state.cack_psn,
            ack_psn_offset=packet.bth.psn - state.cack_psn, sack_offset=offset, sack_bitmap=bitmap, mpr=8,
            entropy=packet.udp.src_port,
            cc_state=client["mrc_headers"].CCState(rcvd_bytes=state.rcvd_bytes_256),
        )  # fmt: skip
        bench.a.receive(1, [sack.to_bytes()], bench.now_ns)
    assert [done.status.value for done in bench.completions()] == ["success"]
    assert not bench.a.log.drops


EVERY = 97
"""Packets between two that the network harms in turn: one is lost, one is marked, one is trimmed."""


def harmed(number: int) -> str:
    """The fate of a packet by its number. The first arrives whole: MRC-Client's responder counts from it."""
    return ("lost", "marked", "trimmed")[number // EVERY % 3] if number % EVERY == EVERY - 1 else ""


class ClientRequester:
    """MRC-Client's queue pair, builder, parser and congestion control as a requester of empty writes.

    What 986ded2 has no code for is made here: SACKs and NACKs move its window of PSNs, and a packet that later ones
    have overtaken is lost. A copy is not counted again, because its congestion control takes no lost packet off what is
    in flight.
    """

    def __init__(self, client: Any, bench: Bench) -> None:
        self.bench = bench
        self.read = client["packet_parser"].parse_packet
        self.builder = client["packet_builder"].PacketBuilder()
        self.ends = {**ENDS, "src_qpn": 1, "dst_qpn": bench.qp_b.qpn}
        self.control = client["congestion"].QPCC(1)
        self.qp = client["qp_manager"].QPManager().create_qp()
        self.qp.modify_to_init()
        self.qp.modify_to_rtr(0, bench.qp_b.qpn, "fd00::2", "02:00:00:00:00:02")
        self.qp.modify_to_rts(1)
        self.waiting: dict[int, int] = {}
        """PSNs that are not acknowledged, and how often each was sent, in their order."""
        self.again: list[int] = []
        self.sent = 0

    def turn(self, packets: int) -> None:
        """Send what both windows let, hear the answers, and find what was lost."""
        copies, self.again = self.again, []
        for psn in copies:
            self.send(psn)
        before = self.sent
        while self.sent < packets and self.qp.can_send() and self.control.can_send():
            self.sent += 1
            self.send(self.qp.next_psn())
        if tail := self.sent == before:
            probe = self.builder.build_reliability_probe(**self.ends, probe_id=1, ev_value=EV)
            self.bench.to_b(Packet(1, probe.to_bytes()))
        highest = 0
        for answer in self.bench.out(self.bench.b):
            found = self.read(answer.frame)
            if found.neth is not None:
                self.control.on_nack(found.neth.nack_reason, 0.0, arrival_time=12e-6)
                self.again.append(found.neth.nack_psn)
            elif found.seth is not None:
                highest = max(highest, self.heard(found.seth))
        for psn in [psn for psn in self.waiting if (psn < highest or tail) and psn not in self.again]:
            self.control.on_inferred_loss()
            self.again.append(psn)

    def send(self, psn: int) -> None:
        times = self.waiting[psn] = self.waiting.get(psn, 0) + 1
        target = self.bench.target
        frame = self.builder.build_write(
            **self.ends, psn=psn, va=target.va, r_key=target.rkey, dmalen=0,
            payload=b"", msn=psn - 1 & 0xFFFF, ev_value=EV, is_retransmit=times > 1,
        ).to_bytes()  # fmt: skip
        packet, fate = Packet(1, frame), harmed(psn) if times == 1 else ""
        if times == 1:
            (udp_length,) = struct.unpack_from("!H", frame, 58)
            self.control.on_send(self.control.get_nominal_pktsize(udp_length))
        if fate == "marked":
            packet = packet.marked()
        elif fate == "trimmed":
            packet = packet.trimmed(size=len(frame))
        if fate != "lost":
            self.bench.to_b(packet)

    def heard(self, seth: Any) -> int:
        """A SACK moves the windows; the highest PSN that it acknowledges."""
        acknowledged = [psn for psn in self.waiting if psn <= seth.cack_psn]
        first = seth.cack_psn + seth.sack_offset
        acknowledged += [first + bit for bit in range(64) if seth.sack_bitmap >> bit & 1]
        for psn in acknowledged:
            self.waiting.pop(psn, None)
        self.qp.requestor.unack_psn = seth.cack_psn
        self.control.on_ack(seth.cc_state.rcvd_bytes, 0.0, seth.m == 1, arrival_time=12e-6)
        return max(acknowledged, default=0)


@pytest.mark.slow
def test_mrc_clients_requester_writes_a_million_packets_to_our_responder(client: Any, quick_check: None) -> None:
    """Its window neither leaks, so that nothing is in flight when all has arrived, nor stalls."""
    bench = Bench(planes=1, changes={"encapsulation": "none", "ev_first": EV}, dialect=DIALECT, psn=1)
    requester = ClientRequester(client, bench)
    quiet = PACKETS // 8
    for until in range(quiet, PACKETS + 1, quiet):
        turns = 0
        while requester.sent < until or requester.waiting:
            requester.turn(until)
            bench.later()
            turns += 1
            assert turns < quiet / 8
        assert requester.qp.requestor.unack_psn == until == bench.qp_b.responder.msn
        assert requester.control.window.inflight < 256
        assert requester.control.window.cwnd > requester.control.config.min_cwnd
    assert not bench.b.log.drops


@pytest.mark.slow
def test_our_requester_writes_a_million_packets_to_mrc_clients_responder(client: Any, quick_check: None) -> None:
    """Its SACKs, and NACKs for what was trimmed, neither let our window leak nor stall.

    One packet of 291 is trimmed and takes 1,024 bytes off 1.5 times 100 Gb/s and 12 µs, which increases give back. Of
    writes of no bytes nothing would count as arrived, and each trim would cut the window to a packet.
    """
    bench = plain_bench()
    builder, read = client["packet_builder"].PacketBuilder(), client["packet_parser"].parse_packet
    state = client["mrc_responder"].ResponderQPState()
    ends = {
        "src_ipv6": "fd00::2", "dst_ipv6": "fd00::1", "src_mac": "02:00:00:00:00:02", "dst_mac": "02:00:00:00:00:01",
        "src_qpn": bench.qp_b.qpn, "dst_qpn": bench.qp_a.qpn,
    }  # fmt: skip
    posted = done = seen = turns = 0
    while done < PACKETS:
        while posted < min(PACKETS, done + 256):
            bench.qp_a.post_write(posted, bench.region, 0, 1024, bench.target.va, bench.target.rkey)
            posted += 1
        before = done
        for _, frame in _sent(bench):
            packet = read(frame)
            if packet.meth is None:
                continue  # a probe, which it does not answer
            fate = "" if packet.bth.rtx else harmed(seen)
            seen += not packet.bth.rtx
            if fate == "trimmed":
                nack = builder.build_nack(**ends, nack_psn=packet.bth.psn, nack_reason=1, entropy=packet.udp.src_port)
                bench.a.receive(1, [nack.to_bytes()], bench.now_ns)
            if fate in ("trimmed", "lost"):
                continue
            state.receive_psn(packet.bth.psn, len(packet.payload))
            if state.should_sack(fate == "marked", bool(packet.bth.rtx), bool(packet.bth.a)):
                offset, bitmap = state.build_sack_bitmap()
                sack = builder.build_sack(
                    **ends, cack_psn=state.cack_psn, ack_psn_offset=packet.bth.psn - state.cack_psn,
                    sack_offset=offset, sack_bitmap=bitmap, mpr=8, m_flag=int(fate == "marked"),
                    entropy=packet.udp.src_port,
                    cc_state=client["mrc_headers"].CCState(rcvd_bytes=state.rcvd_bytes_256),
                )  # fmt: skip
                bench.a.receive(1, [sack.to_bytes()], bench.now_ns)
        found = bench.completions()
        assert {one.status.value for one in found} <= {"success"}
        done += len(found)
        turns = turns + 1 if done == before else 0
        assert turns < 64
        assert bench.qp_a.requester.cc.window_bytes > 0.9 * 225_000
        bench.later(0.5)
    assert (bench.qp_a.requester.flight.inflight_bytes, state.cack_psn) == (0, PACKETS - 1)
    assert not bench.a.log.drops


def _sent(bench: Bench) -> Iterator[tuple[int, bytes]]:
    """What our requester sends, frame by frame, as its window and its ports let it."""
    for _ in range(1000):
        batch = bench.a.packets_to_send(bench.now_ns, 1)
        if not batch:
            due_ns = bench.a.scheduler.pacing_ns
            if due_ns > bench.now_ns + 10 * bench.base_rtt_ns:
                return
            bench.now_ns = due_ns
        yield from batch


@needs_tshark
def test_wireshark_decodes_every_header_of_a_capture_of_mrc_client(client: Any, tmp_path) -> None:
    given = capture(client, 0x123, 0x1000, 0xBEEF)
    builder = client["packet_builder"].PacketBuilder()
    to = {**ENDS, "src_qpn": 1, "dst_qpn": 0x123}
    given["sack"] = builder.build_sack(
        **to, cack_psn=9, ack_psn_offset=2, sack_offset=1, sack_bitmap=2, mpr=8, entropy=EV
    ).to_bytes()
    given["nack"] = builder.build_nack(**to, nack_psn=11, nack_reason=1, entropy=EV).to_bytes()
    given["response"] = builder.build_endpoint_response(**ENDS, probe_id=78).to_bytes()
    shown = dict(
        zip(given, dissected(tmp_path, *given.values(), options=("-o", f"mrc.dialect:{DIALECT}")), strict=True)
    )
    assert {name: number(fields, "mrc.icrc.status") for name, fields in shown.items()} == dict.fromkeys(given, 1)
    assert number(shown["write"], "mrc.ev") == EV
    for name in ("write", "srv6", "srh"):
        assert (number(shown[name], "mrc.reth.va"), number(shown[name], "mrc.reth.rkey")) == (0x1000, 0xBEEF)
    assert (number(shown["sack"], "mrc.sack.cack_psn"), number(shown["sack"], "mrc.entropy")) == (9, EV)
    assert (number(shown["nack"], "mrc.nack.reason"), number(shown["nack"], "mrc.nack.psn")) == (1, 11)
    assert number(shown["probe"], "mrc.probe_id") == 77
    assert {fields["mrc.opcode"][0] for fields in shown.values()} == {
        f"0x{code:02x}" for code in (0xCA, 0xD8, 0xD9, 0xDC, 0xDD, 0xDE)
    }
