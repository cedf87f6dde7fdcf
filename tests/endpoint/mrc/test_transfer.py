"""Writes arrive whole over a virtual wire: each kind of fault alone, each PMTU, each variant of the wire."""

from dataclasses import replace
from random import Random

import pytest

from benchmarks.rig.profiles import profile as profile_data
from endpoint import profile as profiles
from endpoint.mrc.endpoint import Endpoint
from endpoint.nic import wire
from endpoint.nic.attributes import VerbError
from endpoint.nic.wire import Opcode
from endpoint.roce.endpoint import RoceEndpoint
from endpoint.transport import CompletionStatus, QPState
from tests.helpers.transport import Bench, Faults, Flow, Wire, roce_wire


def test_a_write_of_one_byte_arrives() -> None:
    wire = Wire()
    flow = Flow(wire)
    flow.post(1)
    flow.finish()
    assert wire.now_ns < 2 * wire.base_rtt_ns


TRANSPORTS = pytest.mark.parametrize("make", [Wire, roce_wire], ids=["mrc", "roce"])


@TRANSPORTS
@pytest.mark.parametrize("length", [1, 2, 3, 4095, 4096, 4097, 8192, 100_001])
def test_writes_of_every_kind_of_length_arrive_with_and_without_immediate(length, make) -> None:
    wire = make()
    flow = Flow(wire)
    flow.post(length)
    flow.post(length, immediate=0xABCD)
    flow.finish()


FAULTS = {
    "loss": Faults(loss=0.05),
    "duplicates": Faults(duplicate=0.2),
    "reordering": Faults(reorder=0.3, reorder_ns=30_000),
    "corruption": Faults(corrupt=0.05),
    "everything": Faults(loss=0.02, duplicate=0.05, reorder=0.1, reorder_ns=50_000, corrupt=0.02),
}


@TRANSPORTS
@pytest.mark.parametrize("name", FAULTS)
def test_a_long_transfer_survives(name: str, make) -> None:
    wire = make(seed=3)
    for link in wire.links.values():
        link.faults = FAULTS[name]
    flow = Flow(wire)
    for number in range(40):
        flow.post(25_000, immediate=number if number % 3 == 0 else None)
    flow.finish()


SUCCESS = CompletionStatus.SUCCESS


@pytest.mark.parametrize(("mine", "theirs"), [(4096, 1024), (1024, 4096), (4096, 4096), (256, 4096)])
def test_writes_go_through_between_ends_of_different_pmtus(mine: int, theirs: int) -> None:
    bench = Bench()
    bench.qp_a, bench.qp_b = qp_a, qp_b = bench.pair({"pmtu": mine}, {"pmtu": theirs})
    agreed = min(mine, theirs)
    assert (qp_a.pmtu, qp_b.pmtu) == (agreed, agreed)
    qp_b.post_recv(1)
    bench.qp_a.post_write(0, bench.region, 0, 10_001, bench.target.va, bench.target.rkey, 7)
    for _ in range(100):
        bench.to_b(*bench.out(bench.a))
        bench.to_a(*bench.answers())
    assert [done.status for done in bench.completions()] == [SUCCESS]
    assert bench.sink[:10_001] == bench.source[:10_001]
    assert qp_a.requester.data_packets == -(-10_001 // agreed)


def test_both_directions_use_what_was_agreed() -> None:
    bench = Bench()
    _, qp_b = bench.pair({}, {"pmtu": 512})
    back = bench.b.register_memory(bytearray(4096))
    into = bench.a.register_memory(bytearray(4096))
    qp_b.post_write(0, back, 0, 4096, into.va, into.rkey)
    assert len([packet for packet in bench.out(bench.b) if packet.opcode in wire.WRITES]) == 8


def test_a_peer_that_does_not_say_is_taken_to_have_ours() -> None:
    bench = Bench()
    qp = bench.a.create_qp(bench.cq_a)
    qp.connect(replace(bench.qp_b.info(), pmtu=None), bench.now_ns)
    assert qp.pmtu == 4096


@pytest.mark.parametrize("theirs", [0, 255, 65_536, -1, 4096.0, "4096"])
@pytest.mark.parametrize("make", [Endpoint, RoceEndpoint])
def test_a_pmtu_that_cannot_be_is_refused_with_both_numbers_and_changes_nothing(make, theirs) -> None:
    nic = make(profiles.parse(profile_data(0)), rng=Random(1), now_ns=0)
    qp = nic.create_qp(nic.create_cq(4))
    qp.modify(QPState.INIT, 0)
    info = replace(qp.info(), host="h1", pmtu=theirs)
    with pytest.raises(VerbError, match=rf"the peer's PMTU is {theirs!r} and ours 4096; .* 256 to 65535 bytes"):
        qp.modify(QPState.RTR, 0, peer=info)
    assert qp.state is QPState.INIT
    qp.modify(QPState.RTR, 0, peer=replace(info, pmtu=1024))
    assert qp.pmtu == 1024


@pytest.mark.parametrize("make", [Endpoint, RoceEndpoint])
def test_a_qp_cannot_have_more_than_its_ports_carry(make) -> None:
    nic = make(profiles.parse(profile_data(0)), rng=Random(1), now_ns=0)
    with pytest.raises(VerbError, match="pmtu is 8192; the profile's, which fits the ports, is 4096"):
        nic.create_qp(nic.create_cq(1), pmtu=8192)
    with pytest.raises(VerbError, match="pmtu is 100; it must be from 256 to 65535"):
        nic.create_qp(nic.create_cq(1), pmtu=100)


def test_with_timestamps_every_write_carries_one_and_the_sack_echoes_it() -> None:
    bench = Bench(timestamps=True)
    sent = bench.write(2)
    assert all(packet.bth.flags & wire.TIMESTAMP for packet in sent)
    stamps = [wire.Tseth.unpack(packet.frame, packet.at + 4) for packet in sent]
    assert all(stamp.tx_timestamp == bench.a.scheduler.now_ns // 128 & 0xFFFF for stamp in stamps[:1])
    bench.to_b(*sent)
    sack = bench.answers(Opcode.SACK)[-1]
    assert sack.cc_state.tx_timestamp == stamps[-1].tx_timestamp
    bench.to_a(sack)
    assert [done.status for done in bench.completions()] == [SUCCESS]
    assert bench.sink[:8192] == bench.source[:8192]


def test_a_timestamp_tick_of_the_profiles_own_outlasts_a_timeout_where_128_ns_would_wrap() -> None:
    bench = Bench(timestamps=True, base_rtt_ns=54_000_000)
    tick_ns = bench.a._context.stamps.tick_ns
    assert tick_ns % 128 == 0
    assert tick_ns << 16 >= bench.a.limits.timeout_ns
    (sent,) = bench.write(1)
    assert wire.Tseth.unpack(sent.frame, sent.at + 4).tsr == 1


@pytest.mark.parametrize("port", [4791, 4971])
def test_both_udp_ports_are_accepted(port: int) -> None:
    wire_ = Wire(profile_changes={"udp_port": port})
    flow = Flow(wire_)
    flow.post(20_000)
    flow.finish(1000)


UDP_DPORT = 54 + 40 + 2  # behind Ethernet and the outer header, and the inner one; the low byte is next


FOREIGN = 0x05  # of RoCE, which MRC does not have


@pytest.mark.parametrize(
    ("opcode", "port", "answered"),
    [
        (Opcode.WRITE_ONLY, 5000, False), (Opcode.WRITE_ONLY, 4971, True), (Opcode.ENDPOINT_REQUEST, 5000, False),
        (Opcode.ENDPOINT_REQUEST, 4971, True), (FOREIGN, 5000, False), (FOREIGN, 4971, False),
    ],
)  # fmt: skip
def test_a_packet_for_another_udp_port_is_for_us_only_if_the_port_is_one_of_mrcs(opcode, port, answered) -> None:
    """Writes come in on the usual way, operations on the plain one."""
    bench = Bench()
    bench.post(1)
    route = bench.qp_a.reverse.candidate()
    assert route is not None
    bench.qp_a.probe_ev(route)
    packets = {packet.opcode: packet for packet in bench.out(bench.a)}
    sent = packets[Opcode.WRITE_ONLY if opcode == Opcode.WRITE_ONLY else Opcode.ENDPOINT_REQUEST]
    bench.to_b(sent.with_bytes({UDP_DPORT: port.to_bytes(2, "big"), sent.outside.bth: bytes([opcode])}))
    assert bool(bench.answers()) is answered
    assert bench.b.counters()["drops"].get("not_for_us", 0) == int(not answered)
