"""Variants of the wire: time stamps, packets without an outer header, either UDP port."""

import pytest

from endpoint.nic import wire
from endpoint.nic.wire import Opcode
from endpoint.transport import CompletionStatus
from tests.helpers.transport.bench import Bench
from tests.helpers.transport.flows import Flow
from tests.helpers.transport.virtual_wire import Wire

SUCCESS = CompletionStatus.SUCCESS


def test_with_timestamps_every_write_carries_one_and_the_sack_echoes_it() -> None:
    bench = Bench(timestamps=True)
    bench.post(2)
    sent = bench.writes()
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
    bench.post(1)
    (sent,) = bench.writes()
    assert wire.Tseth.unpack(sent.frame, sent.at + 4).tsr == 1


def test_without_encapsulation_there_is_one_ipv6_header() -> None:
    wire_ = Wire(profile_changes={"encapsulation": "none"})
    flow = Flow(wire_)
    for _ in range(10):
        flow.post(20_000)
    wire_.run(1000 * wire_.base_rtt_ns, stop=lambda: flow.finished)
    flow.check()


@pytest.mark.parametrize("port", [4791, 4971])
def test_both_udp_ports_are_accepted(port: int) -> None:
    wire_ = Wire(profile_changes={"udp_port": port})
    flow = Flow(wire_)
    flow.post(20_000)
    wire_.run(1000 * wire_.base_rtt_ns, stop=lambda: flow.finished)
    flow.check()


UDP_DPORT = 54 + 40 + 2  # behind Ethernet and the outer header, and the inner one; the low byte is next


FOREIGN = 0x05  # of RoCE, which MRC does not have


@pytest.mark.parametrize(
    ("opcode", "port", "answered"),
    [
        (Opcode.WRITE_ONLY, 5000, False),
        (Opcode.WRITE_ONLY, 4971, True),
        (Opcode.ENDPOINT_REQUEST, 5000, False),
        (Opcode.ENDPOINT_REQUEST, 4971, True),
        (FOREIGN, 5000, False),
        (FOREIGN, 4971, False),
    ],
)
def test_a_packet_for_another_udp_port_is_for_us_only_if_the_port_is_one_of_mrcs(
    opcode: int, port: int, answered: bool
) -> None:
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
