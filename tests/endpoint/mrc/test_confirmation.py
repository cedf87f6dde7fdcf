"""Transport acknowledgements: writes may wait for them, late refusals count, and refusals until the peer has heard."""

import pytest

from endpoint import FORM
from endpoint.mrc.paths.ev_set import EvPath
from endpoint.nic import codec, wire
from endpoint.nic.attributes import VerbError
from endpoint.nic.wire import PSN_MASK, NackReason, Opcode, Syndrome
from endpoint.transport import CompletionStatus, QPState
from tests.helpers.transport import Bench, Flow, Packet, Wire

SACK, ACK = Opcode.SACK, Opcode.ACKNOWLEDGE
SUCCESS, FLUSHED = CompletionStatus.SUCCESS, CompletionStatus.FLUSHED
REFUSED = CompletionStatus.REMOTE_ACCESS_ERROR


def nak(bench: Bench, psn: int, msn: int) -> Packet:
    """A NAK of `b`, as another implementation may send it after its SACK: acceptance comes before placement."""
    route = bench.qp_b.reverse.live()[0]
    bench.qp_b.responder._answers.transport_ack(route, Syndrome.NAK_REMOTE_ACCESS_ERROR, psn, msn)
    (packet,) = bench.answers(ACK)
    return packet


def refusal(bench: Bench) -> Packet:
    """The NAK among the answers of `b`, all of which are taken off the line."""
    return next(answer for answer in bench.answers(ACK) if answer.frame[answer.at] != Syndrome.ACK)


@pytest.mark.parametrize("psn", [0, 2, 5])
def test_a_nak_that_a_sack_has_overtaken_ends_the_connection(psn: int) -> None:
    bench = Bench(sack_threshold_bytes=0, confirm_writes=True)
    for _ in range(6):
        bench.post()
    bench.to_b(*bench.writes())
    bench.to_a(*(answer for answer in bench.answers() if answer.opcode is SACK))
    assert bench.qp_a.requester.flight.una == 6
    bench.to_a(nak(bench, psn, psn))
    assert bench.qp_a.state is QPState.ERROR
    assert [(done.wr_id, done.status) for done in bench.completions()] == [
        (number, SUCCESS if number < psn else REFUSED if number == psn else FLUSHED) for number in range(6)
    ]


@pytest.mark.parametrize("confirm_writes", [False, True])
@pytest.mark.parametrize("immediate", [None, 5])
def test_a_nak_confirms_writes_before_the_refused_one_whose_acknowledgement_was_lost(immediate, confirm_writes) -> None:
    bench = Bench(sack_threshold_bytes=0, confirm_writes=confirm_writes)
    bench.qp_b.post_recv(1)
    bench.post(2)
    bench.post(1, immediate)
    bench.qp_a.post_write(2, bench.region, 0, 4096, bench.target.va, bench.target.rkey ^ 1)
    bench.posted += 1
    bench.to_b(*bench.write())
    bench.to_a(refusal(bench))
    assert bench.qp_a.state is QPState.ERROR
    statuses = [SUCCESS, SUCCESS, REFUSED, FLUSHED]
    assert [(done.wr_id, done.status) for done in bench.completions()] == list(enumerate(statuses))


def test_a_write_that_found_no_receive_is_refused_though_all_its_packets_have_arrived() -> None:
    bench = Bench(sack_threshold_bytes=0)
    bench.post(2)
    bench.post(1, 5)  # no receive is posted: the NAK has the PSN of this write's last packet, and the count before it
    bench.to_b(*bench.write())
    bench.to_a(refusal(bench))
    operation_error = CompletionStatus.REMOTE_OPERATION_ERROR
    assert [done.status for done in bench.completions()] == [SUCCESS, operation_error, FLUSHED]


def test_a_nak_confirms_no_write_that_the_refused_packet_does_not_follow() -> None:
    """A count of messages beyond the NAK's own PSN is forged, or of another life of the queue pair."""
    bench = Bench()
    bench.post(2)
    bench.write()
    for _ in range(2):  # not sent yet: their PSNs are unknown
        bench.qp_a.post_write(bench.posted, bench.region, 0, 4096, bench.target.va, bench.target.rkey)
        bench.posted += 1
    bench.to_a(nak(bench, 0, 4))
    assert [done.status for done in bench.completions()] == [REFUSED, FLUSHED, FLUSHED, FLUSHED]


def test_a_nak_tells_of_the_end_of_unsignaled_writes_before_the_refused_one() -> None:
    bench = Bench()
    bench.qp_a.post_write(0, bench.region, 0, 4096, bench.target.va, bench.target.rkey, signaled=False)
    for number, rkey in ((1, bench.target.rkey), (2, bench.target.rkey ^ 1)):
        bench.qp_a.post_write(number, bench.region, 0, 4096, bench.target.va, rkey)
    bench.to_b(*bench.writes())
    bench.to_a(refusal(bench))
    assert [(done.wr_id, done.status) for done in bench.completions()] == [(1, SUCCESS), (2, REFUSED)]


def test_a_nak_for_what_may_still_be_told_of_reaches_back_half_the_psns_and_over_the_wrap() -> None:
    bench = Bench(psn=PSN_MASK - 1, sack_threshold_bytes=0)
    for _ in range(6):
        bench.to_b(*bench.write())
        bench.to_a(*bench.answers())
    bench.write()
    bench.to_a(nak(bench, PSN_MASK, 1))
    assert bench.qp_a.state is QPState.ERROR


def test_writes_that_wait_to_be_confirmed_are_not_done_by_a_sack() -> None:
    bench = Bench(sack_threshold_bytes=0, confirm_writes=True)
    for _ in range(3):
        bench.post(2)
    bench.to_b(*bench.writes())
    answers = bench.answers()
    bench.to_a(*(answer for answer in answers if answer.opcode is SACK))
    assert bench.completions() == []
    acks = [answer for answer in answers if answer.opcode is ACK]
    counts = [wire.Aeth.unpack(ack.frame, ack.at).msn for ack in acks]
    assert counts[-1] == 3
    bench.to_a(acks[0])
    assert len(bench.completions()) == counts[0]
    bench.to_a(*acks[1:])
    assert len(bench.completions()) == 3 - counts[0]


def test_a_lost_confirmation_is_asked_for_with_a_probe() -> None:
    bench = Bench(sack_threshold_bytes=0, confirm_writes=True)
    bench.to_b(*bench.write())
    bench.to_a(*(answer for answer in bench.answers() if answer.opcode is SACK))
    bench.later(3)
    probes = bench.out(bench.a, Opcode.PROBE)
    assert probes
    bench.to_b(*probes)
    bench.to_a(*bench.answers())
    assert [done.status for done in bench.completions()] == [SUCCESS]


def test_a_repair_ends_with_the_transport_acknowledgement_of_what_was_lost() -> None:
    bench = Bench(sack_threshold_bytes=0)
    requester = bench.qp_a.requester
    bench.write()
    requester._lose(0, bench.now_ns, proved=True)
    requester.retry.asked(bench.now_ns)
    bench.qp_a.agenda.wake()
    bench.wait()
    bench.to_b(*bench.writes())
    bench.to_a(*bench.answers(ACK))  # the SACK is lost
    assert [done.status for done in bench.completions()] == [SUCCESS]
    assert "repair" in [event.kind for event in iter(bench.a.next_event, None)]
    assert requester.retry._asked == 0


def test_confirmed_writes_all_complete_in_order_over_a_lossy_fabric() -> None:
    wire_ = Wire(seed=3, confirm_writes=True)
    flow = Flow(wire_)
    wire_.disturb(loss=0.05, duplicate=0.05, reorder=0.2, reorder_ns=wire_.base_rtt_ns)
    for number in range(40):
        flow.post(10_000, immediate=number if number % 3 == 0 else None)
    flow.finish(4000)
    assert list(flow.statuses) == sorted(flow.statuses)


def test_whether_writes_are_confirmed_is_true_or_false() -> None:
    bench = Bench()
    with pytest.raises(VerbError, match="confirm_writes is 1; it must be true or false"):
        bench.a.create_qp(bench.cq_a, confirm_writes=1)


INTERPRETED_ONLY = pytest.mark.skipif(FORM.compiled, reason="what is compiled takes its own codec, and no other")
REFUSALS = (Opcode.ACKNOWLEDGE, Opcode.NACK)


def refused_bench() -> Bench:
    """`b` has refused a write with a wrong rkey, and nothing that it sent has arrived."""
    bench = Bench(planes=2)
    bench.qp_a.post_write(0, bench.region, 0, 4096, bench.target.va, bench.target.rkey ^ 1)
    bench.to_b(*bench.writes())
    assert bench.qp_b.state is QPState.ERROR
    assert len(bench.answers(*REFUSALS)) == 2  # by each port
    return bench


def probes(bench: Bench, *paths: EvPath) -> list[Packet]:
    for path in paths or bench.qp_a.evs.planes[0].active[:3]:
        bench.qp_a.requester.probe(path, bench.now_ns)
    return bench.out(bench.a, Opcode.PROBE)


def readdressed(packet: Packet) -> Packet:
    """The same as another host would send it."""
    at = packet.outside.offset + 8 + 15  # the last byte of the inner source address
    return packet.with_bytes({at: bytes([packet.frame[at] ^ 1])})


@pytest.mark.parametrize("planes", [1, 4])
@pytest.mark.parametrize("lost", [1, 3])
def test_a_sender_whose_nak_was_lost_is_told_again(planes: int, lost: int) -> None:
    wire = Wire(planes=planes, evs_per_plane=4)
    flow = Flow(wire)
    naks: list[int] = []

    def lossy(host: str, port: int, frame: bytes) -> bool:
        nak = host == "h1" and Packet(port, frame).opcode is Opcode.ACKNOWLEDGE
        naks.extend([wire.now_ns] * nak)
        return not nak or len(naks) >= lost + planes

    wire.tap(lossy)
    flow.qp.post_write(5, flow.region, 0, 4096, flow.target.va, flow.target.rkey ^ 1)
    wire.run(100 * wire.base_rtt_ns)
    assert [done.status for done in flow.cq.poll(9)] == [CompletionStatus.REMOTE_ACCESS_ERROR]
    assert flow.qp.state is QPState.ERROR
    told = len(naks)
    wire.run(1000 * wire.base_rtt_ns)
    assert len(naks) == told == lost + planes


@pytest.mark.parametrize("immediate", [None, 3])
def test_a_write_that_overtakes_a_lost_one_is_refused_after_it(immediate: int | None) -> None:
    """A NAK is about the next message in order: the lost write would be named as the guilty one."""
    wire = Wire(planes=2, evs_per_plane=4)
    flow = Flow(wire)
    lost: list[int] = []

    def lossy(host: str, port: int, frame: bytes) -> bool:
        if host == "h0" and not lost and Packet(port, frame).opcode is Opcode.WRITE_ONLY:
            lost.append(port)
            return False
        return True

    wire.tap(lossy)
    flow.qp.post_write(4, flow.region, 0, 1000, flow.target.va, flow.target.rkey)
    flow.qp.post_write(5, flow.region, 0, 1000, flow.target.va, flow.target.rkey ^ 1, immediate=immediate)
    flow.qp.post_write(6, flow.region, 0, 1000, flow.target.va, flow.target.rkey)
    wire.run(1000 * wire.base_rtt_ns)
    assert lost
    # Writes may be done in any order.
    assert [(one.wr_id, one.status) for one in flow.cq.poll(9)] == [(6, SUCCESS), (4, SUCCESS), (5, REFUSED)]


def test_an_unexpected_event_whose_nack_was_lost_is_told_again() -> None:
    bench = Bench()
    (sent,) = bench.write()
    bench.to_b(sent.with_bytes({sent.outside.bth: bytes([Opcode.WRITE_MIDDLE, 1 << 4])}))  # one byte of pad
    (lost,) = bench.answers()
    bench.wait(5)
    (probe,) = probes(bench, bench.qp_a.evs.planes[1].active[0])
    bench.to_b(probe)
    (nack,) = bench.answers()
    assert nack.port == probe.port == 2
    assert nack.neth == lost.neth
    assert nack.neth.reason == NackReason.UNEXP_EVENT
    bench.to_a(nack)
    assert bench.qp_a.state is QPState.ERROR
    assert [done.status for done in bench.completions()] == [CompletionStatus.REMOTE_OPERATION_ERROR]


def test_a_nak_is_repeated_once_per_probe_interval_however_much_arrives() -> None:
    bench = refused_bench()
    bench.to_b(*probes(bench))
    assert bench.answers() == []  # what was under way when the NAK was sent
    for _ in range(3):
        bench.now_ns += bench.b.limits.probe_interval_ns
        bench.post(8)
        bench.to_b(*bench.writes(), *probes(bench))
        (nak,) = bench.answers()
        assert nak.frame[nak.at] == Syndrome.NAK_REMOTE_ACCESS_ERROR
    bench.to_a(nak)
    assert next(iter(bench.completions())).status is CompletionStatus.REMOTE_ACCESS_ERROR
    assert bench.sink == bytes(len(bench.sink))


@pytest.mark.parametrize("in_c", [False, pytest.param(True, marks=INTERPRETED_ONLY)])
def test_a_write_draws_the_nak_again_in_either_codec(request, monkeypatch, in_c) -> None:
    bench = refused_bench()
    bench.wait(5)
    (write,) = bench.write()
    foreign = readdressed(write)
    if in_c:
        native = request.getfixturevalue("native")
        monkeypatch.setattr(codec, "IN_C", True)
        monkeypatch.setattr(codec, "usual", native.usual)
    bench.to_b(foreign)
    assert bench.answers() == []
    bench.to_b(write)
    (nak,) = bench.answers()
    assert nak.opcode is Opcode.ACKNOWLEDGE
    assert (nak.port, nak.ev) == (write.port, write.ev)
    assert bench.b.counters()["drops"] == {"no_qp": 2}


def test_answers_and_other_hosts_packets_are_not_refused_again() -> None:
    bench = refused_bench()
    bench.wait(5)
    responder, route = bench.qp_a.responder, bench.qp_a.reverse.live()[0]
    responder.acknowledge(bench.now_ns, route.port, route.ev, 0, 0, 0)
    responder.nack(route.port, route.ev, 0, NackReason.TRIMMED, 0)
    responder._answers.transport_ack(route, Syndrome.NAK_REMOTE_ACCESS_ERROR, 0, 0)
    sent = bench.out(bench.a)
    assert {packet.opcode for packet in sent} >= {Opcode.SACK, *REFUSALS}
    bench.to_b(*(packet for packet in sent if packet.opcode not in (Opcode.PROBE, Opcode.WRITE_ONLY)))
    (probe, *_) = probes(bench)
    bench.to_b(readdressed(probe))
    assert bench.answers() == []
    bench.to_b(probe)
    assert len(bench.answers()) == 1


@pytest.mark.parametrize("end", ["error", "reset", "destroyed"])
def test_a_queue_pair_that_has_refused_nothing_or_is_reset_keeps_silent(end: str) -> None:
    bench = refused_bench() if end != "error" else Bench()
    if end == "destroyed":
        bench.b.destroy_qp(bench.qp_b, bench.now_ns)
    else:
        bench.qp_b.modify(QPState.ERROR if end == "error" else QPState.RESET, bench.now_ns)
    bench.wait(5)
    bench.to_b(*probes(bench))
    assert bench.answers() == []
    assert bench.b.counters()["drops"] == {"no_qp": 3}


def test_a_nak_that_arrives_is_sent_once_per_port() -> None:
    wire = Wire(planes=2, evs_per_plane=4)
    flow = Flow(wire)
    flow.post(50_000, times=20)
    flow.qp.post_write(99, flow.region, 0, 4096, flow.target.va, flow.target.rkey ^ 1)
    flow.post(50_000, times=20)
    wire.run(1000 * wire.base_rtt_ns)
    assert flow.qp.state is flow.remote.state is QPState.ERROR
    naks = [packet for packet in (Packet(*heard) for heard in wire.heard["h0"]) if packet.opcode in REFUSALS]
    assert [packet.frame[packet.at] for packet in naks[-2:]] == [Syndrome.NAK_REMOTE_ACCESS_ERROR] * 2
    assert naks[-3].frame[naks[-3].at] != Syndrome.NAK_REMOTE_ACCESS_ERROR
