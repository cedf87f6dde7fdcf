"""Packets that switches send back because the link behind them is down: the path is left, the packet goes elsewhere."""

import pytest

from endpoint.mrc.paths.ev_state import EvState
from endpoint.nic.wire import NackReason, Opcode
from tests.helpers.transport import Bench, Packet

DSCP = 11
ADDRESSES = 14 + 8, 14 + 24, 14 + 40  # of the outer IPv6 header: source, destination, behind them


def returned(packet: Packet, size: int = 128, dscp: int = DSCP) -> Packet:
    """What a switch makes of it (the vendor's description): cut, source and destination exchanged, another DSCP."""
    source, destination, behind = ADDRESSES
    frame = packet.frame
    swapped = frame[:source] + frame[destination:behind] + frame[source:destination] + frame[behind:size]
    return Packet(packet.port, swapped).with_dscp(dscp)


@pytest.fixture
def bench() -> Bench:
    return Bench(returned_dscp=DSCP)


def out_of(bench: Bench) -> list[int]:
    return [ev for ev, path in bench.qp_a.evs.paths.items() if path.state is EvState.ASSUMED_BAD]


def test_the_path_is_left_at_once_and_the_packet_goes_by_another_plane(bench: Bench) -> None:
    packet, *others = bench.write(8)
    window = bench.qp_a.requester.cc.window_bytes
    bench.to_a(returned(packet))
    assert out_of(bench) == [packet.ev]
    (copy,) = bench.writes()
    assert (copy.psn, copy.retransmission) == (packet.psn, True)
    assert copy.ev >> 16 != packet.ev >> 16
    assert bench.qp_a.requester.cc.window_bytes == window  # no queue was full
    assert bench.qp_a.requester.flight.inflight_bytes == 8 * 4096
    bench.to_b(copy, *others)
    bench.to_a(*bench.answers())
    assert [done.wr_id for done in bench.completions()] == [0]
    assert bench.sink[: 8 * 4096] == bench.source[: 8 * 4096]


def test_one_packet_counts_once_however_its_loss_is_told(bench: Bench) -> None:
    packet, *_ = bench.write(8)
    bench.to_a(returned(packet), returned(packet))
    assert len(bench.writes()) == 1
    requester = bench.qp_a.requester
    assert (requester.returned.count, requester.retransmits, requester.trims) == (1, 1, 0)
    bench.to_a(returned(packet))  # of the transmission that a copy has replaced
    assert (requester.returned.count, requester.flight.lost) == (1, 0)


def test_a_packet_that_was_trimmed_is_not_returned_as_well(bench: Bench) -> None:
    packet, *_ = bench.write(8)
    bench.to_b(packet.trimmed())
    (nack,) = bench.answers(Opcode.NACK)
    assert nack.neth.reason == NackReason.TRIMMED
    bench.to_a(nack, returned(packet))
    requester = bench.qp_a.requester
    assert (requester.trims, requester.returned.count, out_of(bench)) == (1, 0, [])


def test_an_acknowledged_packet_and_one_never_sent_change_nothing(bench: Bench) -> None:
    packet, *_ = bench.write(1)
    bench.to_b(packet)
    bench.to_a(*bench.answers())
    bench.to_a(returned(packet))
    ahead = packet.with_bytes({packet.outside.bth + 8: (packet.psn + 5).to_bytes(4, "big")})
    bench.to_a(returned(ahead))
    assert (bench.qp_a.requester.returned.count, out_of(bench)) == (0, [])


def test_the_last_path_of_all_stays() -> None:
    bench = Bench(planes=2, evs_per_plane=1, returned_dscp=DSCP)
    first, second = bench.write(2)
    bench.to_a(returned(first), returned(second))
    assert len(out_of(bench)) == 1
    bench.later()
    assert {packet.psn for packet in bench.writes()} == {first.psn, second.psn}


def test_a_plane_whose_port_is_known_to_be_down_loses_no_path(bench: Bench) -> None:
    """After the port's return its paths would wait for probes."""
    packet, *_ = bench.write(8)
    bench.a.port_changed(packet.port, False, bench.now_ns)
    bench.to_a(Packet(packet.port % 4 + 1, returned(packet).frame))
    assert out_of(bench) == []
    assert bench.qp_a.requester.returned.count == 1


def test_no_timer_is_put_off_by_switches_alone() -> None:
    """Where every link is down, only switches speak, and the local ACK timeout must still end the queue pair."""
    bench = Bench(returned_dscp=DSCP, retry_linear=2, retry_exponential=0)
    bench.post(1)
    for _ in range(400):
        bench.to_a(*map(returned, bench.writes()))
        bench.later()
    assert [done.status.name for done in bench.completions()] == ["RETRY_EXCEEDED"]


def test_where_no_path_is_left_a_packet_comes_back_once_a_round_trip() -> None:
    """The storm that would have no end: each notification is answered by a copy, and each copy by a notification."""
    bench = Bench(planes=1, evs_per_plane=1, returned_dscp=DSCP)
    sent = bench.write(8)
    first = len(sent)
    for _ in range(100):
        bench.to_a(*map(returned, sent))
        bench.later(0.25)
        sent = bench.writes()
    assert bench.qp_a.requester.retransmits <= first * 25


def test_without_the_setting_nothing_is_known_of_it() -> None:
    bench = Bench()
    packet, *_ = bench.write(8)
    bench.to_a(returned(packet))
    assert (out_of(bench), bench.writes()) == ([], [])
    assert bench.a.counters()["drops"] == {"not_for_us": 1}


@pytest.mark.parametrize("size", [122, 256, 1024, 9999])
def test_any_size_that_keeps_the_headers_will_do(bench: Bench, size: int) -> None:
    packet, *_ = bench.write(8)
    bench.to_a(returned(packet, size))
    assert out_of(bench) == [packet.ev]


def test_other_hosts_and_queue_pairs_are_not_blamed(bench: Bench) -> None:
    packet, *_ = bench.write(8)
    bench.to_a(returned(packet, dscp=10), returned(packet.with_bytes({packet.outside.bth + 4: b"\0\0\x12\x34"})))
    assert (bench.qp_a.requester.returned.count, out_of(bench)) == (0, [])
