"""What the responder reports, when it does, and what the requester makes of it."""

from dataclasses import replace

import pytest

from endpoint.mrc.arrived import Sack
from endpoint.nic import wire
from endpoint.nic.wire import NackReason, Opcode, PathMark
from endpoint.transport import CompletionStatus, QPState
from tests.helpers.transport import Bench, Flow, Packet, Wire

SACK, NACK, ACK = Opcode.SACK, Opcode.NACK, Opcode.ACKNOWLEDGE


def sack_by(bench: Bench, packet: Packet) -> list[Packet]:
    bench.to_b(packet)
    return bench.answers(SACK)


def test_the_example_of_the_specification() -> None:
    """PSN 0-11 sent, 5 and 8 lost: cumulative 4, offset 1, bitmap 0 1 1 0 1 1 1 from PSN 5, exactly 5 and 8 resent."""
    bench = Bench(sack_threshold_bytes=1 << 20)
    sent = bench.write(12)
    assert [packet.psn for packet in sent] == list(range(12))
    bench.to_b(*(packet for packet in sent if packet.psn not in (5, 8)))
    (sack,) = bench.answers(SACK)  # asked for by the last packet's A bit
    assert (sack.seth.cack_psn, sack.seth.sack_offset) == (4, 1)
    assert [sack.seth.bitmap >> bit & 1 for bit in range(7)] == [0, 1, 1, 0, 1, 1, 1]
    assert sack.seth.bitmap >> 7 == 0
    assert sack.psn == 4
    assert sack.cc_state.ooo_count == 5
    bench.wait()
    bench.to_a(sack)
    # The write was sent in one go: only a probe, sent a reorder window later, proves that 5 and 8 are gone.
    assert bench.writes() == []
    for _ in range(100):
        bench.later(0.5)
        probes = bench.out(bench.a, Opcode.PROBE)
        if probes:
            break
    bench.to_b(*probes)
    bench.to_a(*bench.answers(SACK))
    resent = bench.writes()
    assert [packet.psn for packet in resent] == [5, 8]
    assert all(packet.retransmission for packet in resent)
    first = {packet.psn: packet.ev for packet in sent}
    assert all(packet.ev != first[packet.psn] for packet in resent)
    bench.to_b(*resent)
    bench.to_a(*bench.answers())
    assert [done.status for done in bench.completions()] == [CompletionStatus.SUCCESS]
    assert bench.sink[: 12 * 4096] == bench.source[: 12 * 4096]


# --- the triggers that no vector has (those are in-order, marked, probe and duplicate) -------------------------


def test_bytes_over_the_threshold_trigger_a_sack() -> None:
    bench = Bench(sack_threshold_bytes=8192)
    sent = bench.write(10)
    assert [len(sack_by(bench, packet)) for packet in sent[:6]] == [0, 0, 1, 0, 0, 1]


def test_a_small_packet_counts_as_1024_bytes() -> None:
    bench = Bench(sack_threshold_bytes=4096)
    for number in range(10):
        bench.qp_a.post_write(number, bench.region, 0, 1, bench.target.va, bench.target.rkey)
    sent = bench.writes()
    assert [len(sack_by(bench, packet)) for packet in sent[:5]] == [0, 0, 0, 0, 1]


def test_what_was_refused_is_sent_again_from_the_oldest_gap_on() -> None:
    """The second MRC paper (arXiv:2606.18170): a retransmission takes the oldest gap first. New data waits."""
    bench = Bench(congestion="fixed_window")
    sent = bench.write(12)
    nacks = []
    for psn in (9, 2, 5):
        bench.to_b(sent[psn].trimmed())
        nacks += bench.answers(NACK)
    bench.post(3)
    bench.to_a(*nacks)
    again = bench.writes()
    assert [(packet.psn, packet.retransmission) for packet in again[:3]] == [(2, True), (5, True), (9, True)]
    assert [packet.psn for packet in again[3:]] == [12, 13, 14]


@pytest.mark.parametrize("timestamps", [False, True])
def test_received_bytes_are_the_datagrams_and_40_each_rounded_up(timestamps: bool) -> None:
    """UEC 3.6.13.9, and what MRC-Client's requester takes off its bytes in flight."""
    bench = Bench(sack_threshold_bytes=1, timestamps=timestamps)
    bench.post(9)
    bench.qp_a.post_write(5, bench.region, 0, 101, bench.target.va, bench.target.rkey, immediate=7)
    sent = bench.writes()
    counted = 0
    for packet in sent:
        counted += int.from_bytes(packet.frame[packet.outside.bth - 4 : packet.outside.bth - 2], "big") + 40
        assert sack_by(bench, packet)[-1].cc_state.rcvd_units == -(-counted // 256)
    assert counted == 9 * (4096 + 84) + 101 + 3 + 84 + 4 + 4 * timestamps * 10


def test_a_window_that_closes_asks_but_not_with_every_packet() -> None:
    bench = Bench(congestion="fixed_window", sack_threshold_bytes=16384)
    bench.post(64)
    bench.post(64)
    asked = 0
    total = 0
    for _ in range(40):
        sent = bench.writes()
        total += len(sent)
        asked += sum(bool(packet.bth.flags & wire.ACK_REQUEST) for packet in sent)
        bench.to_b(*sent)
        bench.wait()
        bench.to_a(*bench.answers())
    assert len(bench.completions()) == 2
    assert total == 128
    assert 0 < asked <= 128 / 4


def test_only_the_last_of_several_sacks_for_a_probe_names_what_caused_it() -> None:
    """A hunt found a peer that took the first of them for a late duplicate, and its reorder window grew to a second."""
    bench = Bench(sack_threshold_bytes=1 << 20, base_rtt_ns=60_000)
    for _ in range(3):
        bench.post(64)
    sent = bench.writes()
    arrived = [packet for packet in sent if packet.psn % 2]
    assert arrived[-1].psn - arrived[0].psn > wire.SACK_BITS
    bench.to_b(*arrived)
    bench.answers(SACK)  # lost
    bench.qp_b.responder.unreported = bench.qp_b.responder.bitmap
    bench.later(20)
    probe = bench.out(bench.a, Opcode.PROBE)[0]
    *others, last = sack_by(bench, probe)
    assert others
    assert all(sack.seth.ack_psn_offset == -0x8000 and not sack.seth.probe_response for sack in others)
    assert last.seth.probe_response


# --- which bits a SACK carries ---------------------------------------------------------------------------------


def test_packets_far_beyond_a_hole_are_reported_in_a_shifted_bitmap() -> None:
    bench = Bench(sack_threshold_bytes=1 << 20, congestion="fixed_window", changes={"base_rtt_ns": 60_000})
    bench.post(64)
    sent = bench.write(36, at=1)
    assert len(sent) == 100
    bench.to_b(*sent[1:])
    sacks = bench.answers(SACK)
    reported = set()
    for sack in sacks:
        for bit in range(64):
            if sack.seth.bitmap >> bit & 1:
                reported.add(sack.seth.cack_psn + sack.seth.sack_offset + bit & 0xFFFFFF)
    assert reported == set(range(1, 100))
    assert all(sack.seth.cack_psn == 0xFFFFFF for sack in sacks)


def test_a_later_sack_repeats_what_a_lost_one_said() -> None:
    bench = Bench(sack_threshold_bytes=4096)
    sent = bench.write(6)
    bench.to_b(sent[1], sent[2])
    assert bench.answers(SACK)[0].seth.bitmap == 0b110
    bench.to_b(sent[3], sent[4])
    assert bench.answers(SACK)[0].seth.bitmap == 0b11110


# --- duplicates and the window ---------------------------------------------------------------------------------


def test_a_duplicate_above_the_cumulative_psn_is_not_placed_again_but_sacked() -> None:
    bench = Bench(sack_threshold_bytes=1 << 20)
    sent = bench.write(3)
    bench.to_b(sent[1])
    bench.sink[4096:8192] = bytes(4096)
    (sack,) = sack_by(bench, sent[1])
    assert sack.seth.bitmap == 0b10
    assert bench.sink[4096:8192] == bytes(4096)
    assert bench.qp_b.responder.duplicates == 1


@pytest.mark.parametrize(("distance", "accepted"), [(0, True), (1023, True), (1024, False), (2**23, False)])
def test_the_window_ends_where_the_mpr_says(distance: int, accepted: bool) -> None:
    bench = Bench(mpr=8, psn=0)
    (sent,) = bench.write(1)
    bench.to_b(_with_psn(sent, distance))
    assert (bench.qp_b.responder.received_packets == 1) is accepted
    assert bench.qp_b.responder.out_of_window == (not accepted)
    if not accepted:
        assert bench.answers() == []  # dropped silently by default


@pytest.mark.parametrize("distance", [2**23 + 1, 2**24 - 1])
def test_psns_of_the_half_space_below_are_duplicates(distance: int) -> None:
    bench = Bench(mpr=8, psn=0)
    (sent,) = bench.write(1)
    bench.to_b(_with_psn(sent, distance))
    assert bench.qp_b.responder.received_packets == 0
    assert bench.qp_b.responder.duplicates == 1
    assert [packet.opcode for packet in bench.answers()] == [SACK, ACK]


def test_a_psn_outside_of_the_window_is_nacked_if_so_set() -> None:
    bench = Bench(mpr=8, oor_nack=True)
    (sent,) = bench.write(1)
    bench.to_b(_with_psn(sent, 1024))
    (nack,) = bench.answers()
    assert (nack.neth.reason, nack.neth.nack_psn) == (NackReason.PSN_OOR_WINDOW, 1024)


def test_the_requester_never_sends_beyond_the_peers_window() -> None:
    bench = Bench(
        congestion="fixed_window", changes={"base_rtt_ns": 1_000_000}, sack_threshold_bytes=0, remote={"mpr": 1}
    )
    for number in range(300):
        bench.qp_a.post_write(number, bench.region, 0, 100, bench.target.va, bench.target.rkey)
    sent = bench.writes()
    assert [packet.psn for packet in sent] == list(range(128))
    bench.to_b(*sent[:100])
    bench.to_a(*bench.answers())
    assert [packet.psn for packet in bench.writes()] == list(range(128, 228))


def test_sequence_numbers_wrap_at_24_bits() -> None:
    bench = Bench(psn=2**24 - 5, sack_threshold_bytes=8192)
    for number in range(3):
        bench.post(5, immediate=number)
        bench.qp_b.post_recv(number)
    sent = bench.writes()
    assert [packet.psn for packet in sent] == [(2**24 - 5 + n) % 2**24 for n in range(15)]
    bench.to_b(*reversed(sent))
    for _ in range(3):
        bench.wait()
        bench.to_a(*bench.answers())
    assert [done.status for done in bench.completions()] == [CompletionStatus.SUCCESS] * 3
    assert [done.immediate for done in bench.received()] == [0, 1, 2]
    assert bench.qp_b.responder.epsn == 2**24 + 10


# --- what the requester refuses to believe ---------------------------------------------------------------------


def test_a_sack_of_packets_never_sent_changes_nothing() -> None:
    bench = Bench()
    bench.write(4)
    before = bench.qp_a.requester.flight.una
    bench.qp_a.requester.receive_sack(bench.now_ns, Sack(500, 1, 2**64 - 1))
    assert bench.qp_a.requester.flight.una == before
    assert bench.a.counters()["drops"] == {"sack_of_unsent": 1}
    assert bench.completions() == []


def test_an_old_sack_takes_nothing_back() -> None:
    bench = Bench(sack_threshold_bytes=4096)
    sent = bench.write(8)
    bench.to_b(*sent[:4])
    old = bench.answers(SACK)
    bench.to_b(*sent[4:6])
    new = bench.answers(SACK)
    bench.to_a(*new)
    before = (bench.qp_a.requester.flight.una, bench.qp_a.requester.flight.inflight_bytes)
    bench.to_a(*old)
    assert (bench.qp_a.requester.flight.una, bench.qp_a.requester.flight.inflight_bytes) == before


# --- each NACK reason ------------------------------------------------------------------------------------------


def test_an_old_acknowledgement_puts_off_no_timer() -> None:
    bench = Bench()
    bench.qp_b.post_recv(0)
    bench.to_b(*bench.write(1, immediate=1))
    answers = bench.answers(SACK, ACK)
    bench.to_a(*answers)
    assert len(bench.completions()) == 1
    bench.write(1)  # lost, and so is everything that follows
    for _ in range(200):
        bench.later(0.5)
        bench.out(bench.a)
        bench.to_a(*answers)
    assert bench.qp_a.requester.timeouts > 1


@pytest.mark.parametrize("lasthop", [True, False])
def test_a_trim_is_noticed_without_an_outer_header_although_the_only_ip_length_is_rewritten(lasthop: bool) -> None:
    bench = Bench(changes={"encapsulation": "none"})
    first, second = bench.write(2)
    cut = first.trimmed(lasthop)
    assert len(cut.frame) == cut.outside.end == 128  # by its IPv6 header the packet is whole
    bench.to_b(cut)
    (nack,) = bench.answers(NACK)
    assert nack.neth.reason == (NackReason.TRIMMED_LASTHOP if lasthop else NackReason.TRIMMED)
    assert (nack.neth.nack_psn, nack.neth.entropy) == (first.psn, first.ev)
    assert bench.b.counters()["drops"] == {}
    bench.to_a(nack)
    (again,) = bench.writes()
    assert again.psn == first.psn
    bench.to_b(again, second)
    bench.to_a(*bench.answers())
    assert len(bench.completions()) == 1
    assert bench.qp_a.evs.out_count == 0


@pytest.mark.parametrize("encapsulation", ["srv6", "none"])
def test_every_trim_of_an_incast_brings_a_nack_with_or_without_an_outer_header(encapsulation: str) -> None:
    wire_ = Wire(hosts=4, profile_changes={"encapsulation": encapsulation})
    flows = [Flow(wire_, f"h{source}", "h0", seed=source) for source in (1, 2, 3)]
    for flow in flows:
        flow.post(60_000, times=8)
    wire_.run(2000 * wire_.base_rtt_ns, stop=lambda: all(flow.finished for flow in flows))
    for flow in flows:
        flow.check()
    trims = sum(link.trimmed for link in wire_.links.values())
    assert trims > 10
    assert sum(flow.qp.requester.nacks for flow in flows) == trims
    assert sum(flow.qp.evs.out_count for flow in flows) == 0
    assert sum(flow.qp.requester.spurious for flow in flows) == 0


@pytest.mark.parametrize("lasthop", [False, True])
def test_a_trimmed_packet_is_nacked_and_sent_again_at_once_on_another_ev(lasthop: bool) -> None:
    bench = Bench()
    sent = bench.write(8)
    bench.to_b(sent[3].trimmed(lasthop))
    (nack,) = bench.answers()
    reason = NackReason.TRIMMED_LASTHOP if lasthop else NackReason.TRIMMED
    assert (nack.neth.reason, nack.neth.nack_psn, nack.neth.entropy) == (reason, 3, sent[3].ev)
    bench.to_a(nack)
    (again,) = bench.writes()
    assert (again.psn, again.retransmission) == (3, True)
    assert again.ev != sent[3].ev
    assert bench.qp_a.requester.trims == 1


def test_a_trimmed_packet_that_the_window_holds_back_needs_no_patience() -> None:
    """The rest has arrived and nothing asked for an acknowledgement: without one the window stays closed."""
    bench = Bench(loss_patience_ns=50 * 12_000, congestion="fixed_window", sack_threshold_bytes=1 << 20)
    sent = bench.write(5)
    bench.to_b(*sent[:2], sent[2].trimmed(), *sent[3:])
    bench.qp_a.requester.cc.window_bytes = 1  # congestion control has closed the window meanwhile
    bench.to_a(*bench.answers(NACK))
    assert bench.writes() == []
    waited = 0
    while not bench.writes():
        waited += 1
        bench.later(0.5)
        bench.to_b(*bench.out(bench.a))
        bench.to_a(*bench.answers(SACK))
    assert waited <= 8, "four round trips, not fifty"


@pytest.mark.parametrize(("setting", "waits"), [({}, 3), ({"trims_before_wait": 0}, 0), ({"trims_before_wait": 3}, 8)])
def test_a_packet_that_is_trimmed_again_and_again_leaves_the_step_of_what_trims_it(setting, waits) -> None:
    bench = Bench(**setting)
    sent = bench.write(1)
    waited = 0
    times = set()
    for _ in range(11):
        bench.to_b(*(packet.trimmed() for packet in sent))
        bench.to_a(*bench.answers(NACK))
        since_ns = bench.now_ns
        sent = bench.writes()
        if not sent:
            waited += 1
            while not sent:
                bench.later(0.05)
                sent = bench.writes()
            assert bench.now_ns - since_ns <= 1.05 * bench.base_rtt_ns
            times.add(bench.now_ns - since_ns)
        assert len(sent) == 1
    assert waited == waits
    assert len(times) >= min(waits, 2)
    bench.to_b(*sent)
    bench.to_a(*bench.answers())
    assert [done.status for done in bench.completions()] == [CompletionStatus.SUCCESS]


@pytest.mark.parametrize("attribute", [False, True])
def test_a_requester_that_wants_no_nacks_for_trims_gets_none_and_recovers_as_from_a_loss(attribute: bool) -> None:
    """By what it says of itself, or by the attribute `cap` of the responder."""
    bench = Bench(sack_threshold_bytes=0)
    qp_a, qp_b = bench.a.create_qp(bench.cq_a), bench.b.create_qp(bench.cq_b)
    qp_a.connect(qp_b.info(), bench.now_ns)
    qp_b.modify(QPState.INIT, bench.now_ns)
    qp_b.modify(QPState.RTR, bench.now_ns, peer=replace(qp_a.info(), trim_nack=attribute), cap=int(attribute))
    bench.qp_a, bench.qp_b = qp_a, qp_b
    sent = bench.write(3)
    bench.to_b(sent[0].trimmed(), *sent[1:])
    assert qp_b.responder.trimmed == 1
    answers = bench.answers()
    assert [packet.opcode for packet in answers] == [SACK, SACK]
    bench.to_a(*answers)
    for _ in range(20):
        bench.later(1.0)
        bench.to_b(*bench.out(bench.a))
        bench.to_a(*bench.answers())
    assert qp_a.requester.nacks == 0
    assert qp_a.requester.retransmits == 1
    assert [done.status for done in bench.completions()] == [CompletionStatus.SUCCESS]


@pytest.mark.parametrize(
    "reason", [NackReason.NO_BITMAP, NackReason.NO_PKT_BUFFER, NackReason.NO_RESOURCE, NackReason.PSN_OOR_WINDOW]
)
def test_a_packet_refused_for_want_of_something_is_sent_again_a_round_trip_later(reason: NackReason) -> None:
    bench = Bench()
    sent = bench.write(2)
    bench.to_b(sent[0])
    bench.qp_b.responder.nack(bench.b.ports[0], sent[1].ev, 1, reason, 0)
    bench.to_a(*bench.answers(NACK))
    assert bench.writes() == []
    assert bench.qp_a.evs.paths[sent[1].ev].state.value == "good"
    bench.later(1.01)
    assert [(packet.psn, packet.retransmission) for packet in bench.writes()] == [(1, True)]


def test_an_unexpected_event_is_of_the_write_that_was_refused() -> None:
    bench = Bench()
    bench.post()
    sent = bench.write(3)
    bench.qp_b.responder.nack(bench.b.ports[0], sent[2].ev, 2, NackReason.UNEXP_EVENT, 0)
    bench.to_a(*bench.answers(NACK))
    refused = CompletionStatus.REMOTE_OPERATION_ERROR
    assert [(done.wr_id, done.status) for done in bench.completions()] == [(0, CompletionStatus.FLUSHED), (1, refused)]


@pytest.mark.parametrize("psn", [-1, 2, 1 << 23])
def test_neither_nack_nor_nak_ends_a_connection_by_a_psn_that_is_not_under_way(psn: int) -> None:
    bench = Bench()
    (sent, _) = bench.write(2)
    responder = bench.qp_b.responder
    responder.nack(bench.b.ports[0], sent.ev, psn, NackReason.UNEXP_EVENT, 0)
    responder.epsn = psn + 1 if psn >= 0 else -1
    responder.refuse(bench.now_ns, wire.Syndrome.NAK_REMOTE_ACCESS_ERROR, "")
    forged = bench.answers(NACK, wire.Opcode.ACKNOWLEDGE)
    assert len(forged) == 5
    bench.to_a(*forged)
    assert bench.qp_a.state is QPState.RTS


def test_a_peer_that_refuses_for_ever_costs_no_memory() -> None:
    bench = Bench(mpr=1)
    bench.post(1)
    for _ in range(3000):
        for sent in bench.writes():
            bench.qp_b.responder.nack(bench.b.ports[0], sent.ev, sent.psn, NackReason.NO_RESOURCE, 0)
        bench.to_a(*bench.answers(NACK))
        bench.later(1.01)
    assert bench.qp_a.requester.retransmits > 2000
    assert len(bench.qp_a.requester._rule.log) <= 4 * 128 + 1


def test_a_nack_for_a_copy_that_was_replaced_is_ignored() -> None:
    bench = Bench()
    sent = bench.write(2)
    bench.to_b(sent[0].trimmed())
    nacks = bench.answers(NACK)
    bench.to_a(*nacks)
    assert len(bench.writes()) == 1
    bench.to_a(*nacks)
    assert bench.writes() == []


# --- trimmed packets that are whole ----------------------------------------------------------------------------


@pytest.mark.parametrize(("dscp", "mark"), [(20, PathMark.SKIP_ONCE), (22, PathMark.NONE)])
def test_a_packet_marked_trimmed_that_is_whole_is_delivered_and_its_path_signal_counts(dscp, mark) -> None:
    bench = Bench(sack_threshold_bytes=1 << 20)
    bench.qp_a.post_write(0, bench.region, 0, 10, bench.target.va, bench.target.rkey)
    (sent,) = bench.writes()
    bench.to_b(sent.with_dscp(dscp))
    assert bench.sink[:10] == bench.source[:10]
    sack, ack = bench.answers()
    assert (sack.opcode, sack.seth.mark, ack.opcode) == (SACK, mark, ACK)


def test_a_packet_marked_trimmed_whole_in_length_but_spoiled_is_dropped() -> None:
    bench = Bench()
    bench.qp_a.post_write(0, bench.region, 0, 10, bench.target.va, bench.target.rkey)
    (sent,) = bench.writes()
    spoiled = bytearray(sent.with_dscp(20).frame)
    spoiled[-6] ^= 1
    bench.b.receive(sent.port, [bytes(spoiled)], bench.now_ns)
    assert bench.sink[:10] == bytes(10)
    assert bench.b.counters()["drops"] == {"icrc": 1}


def _with_psn(packet: Packet, psn: int) -> Packet:
    """The same write with another PSN and a right ICRC."""
    return packet.with_bytes({packet.outside.bth + 9: psn.to_bytes(3, "big")})
