"""State is bounded, and hostile or damaged packets do no harm."""

import gc
import sys
from collections import deque
from random import Random

import pytest

from endpoint.mrc.loss.loss_detection import ROOM, SentLog
from endpoint.mrc.peer import PORTS_ALL
from endpoint.nic import wire
from endpoint.transport import CompletionStatus, QPState
from tests.helpers.transport import Bench, Wire
from tests.helpers.transport.hostile import corpus, mutate


def stream(bench: Bench, messages: int, depth: int = 64) -> int:
    """Write one-packet messages as fast as they are acknowledged; returns how many completed well."""
    posted = done = 0
    qp, region, target = bench.qp_a, bench.region, bench.target
    while done < messages:
        while posted < messages and posted - done < depth:
            qp.post_write(posted, region, 0, 16, target.va, target.rkey)
            posted += 1
        for port, frame in bench.a.packets_to_send(bench.now_ns, 64):
            bench.b.receive(port, [frame], bench.now_ns)
        for port, frame in bench.b.packets_to_send(bench.now_ns, 64):
            bench.a.receive(port, [frame], bench.now_ns)
        bench.now_ns += 20_000
        bench.timers()
        for completion in bench.cq_a.poll(depth):
            assert completion.status is CompletionStatus.SUCCESS
            done += 1
    return done


def growth(messages: int, psn: int) -> int:
    """Memory blocks that so many messages leave behind."""
    bench = Bench(psn=psn, events_max=100)
    stream(bench, 10_000)
    gc.collect()
    before = sys.getallocatedblocks()
    stream(bench, messages)
    gc.collect()
    after = sys.getallocatedblocks()
    requester = bench.qp_a.requester
    assert requester.flight.una == requester.flight.nxt == bench.qp_b.responder.epsn
    assert len(requester._rule.log) < 5000
    return after - before


def test_thirty_thousand_messages_over_the_psn_wrap_leave_no_memory_behind() -> None:
    assert growth(30_000, psn=2**24 - 20_000) < 1000


def test_control_frames_to_a_port_that_never_sends_are_bounded() -> None:
    bench = Bench(control_frames_max=100, sack_threshold_bytes=0)
    sent = bench.write(60)
    for _ in range(10):
        bench.to_b(*sent)
    assert all(len(port.control) <= 100 for port in bench.b.ports)
    assert sum(port["drop_control"] for port in bench.b.counters()["ports"]) > 0


@pytest.mark.parametrize(("spare", "packets"), [(-1, 7), (0, 8), (1, 8), (4096, 9)])
def test_a_window_is_filled_to_its_last_byte_and_no_further(spare: int, packets: int) -> None:
    bench = Bench(congestion="fixed_window")
    bench.qp_a.requester.cc.window_bytes = 8 * 4096 + spare
    assert len(bench.write(20)) == packets


def test_packets_trimmed_again_and_again_leave_a_bounded_log_of_transmissions() -> None:
    """While every copy is trimmed there is no evidence to judge the log by; it may hold a few entries per packet."""
    bench = Bench(congestion="fixed_window", trims_before_wait=0)
    bench.post(8)
    flight = bench.qp_a.requester.flight
    sent = 0
    while sent < 20 * flight.mask:
        copies = bench.writes()
        assert copies
        sent += len(copies)
        bench.to_b(*(copy.trimmed() for copy in copies))
        bench.to_a(*bench.answers(wire.Opcode.NACK))
        assert len(flight.rule.log) <= 4 * (flight.mask + 1) + len(copies)


def test_events_are_bounded() -> None:
    bench = Bench(events_max=10)
    for _ in range(50):
        bench.a.port_changed(1, False, bench.now_ns)
        bench.a.port_changed(1, True, bench.now_ns)
        bench.out(bench.a)
    assert len(bench.a.log) == 10


def test_many_qps_come_and_go() -> None:
    wire = Wire()
    a, b = wire.transports["h0"], wire.transports["h1"]
    cq_a, cq_b = a.create_cq(100), b.create_cq(100)
    numbers = set()
    for _ in range(300):
        qp, peer = a.create_qp(cq_a), b.create_qp(cq_b)
        qp.connect(peer.info(), wire.now_ns)
        peer.connect(qp.info(), wire.now_ns)
        numbers.add(qp.qpn)
        a.destroy_qp(qp, wire.now_ns)
        b.destroy_qp(peer, wire.now_ns)
    assert len(numbers) == 300
    assert a.qps == b.qps == {}
    assert a.next_timer_ns() is None


def test_a_destroyed_qp_hears_nothing_more_and_is_kept_nowhere() -> None:
    bench = Bench()
    bench.to_b(*(packet.trimmed() for packet in bench.write()))  # looked up among recent ones in either form
    late = bench.write()
    heard = bench.qp_b.responder.epsn
    bench.b.destroy_qp(bench.qp_b, bench.now_ns)
    assert all(kept is not bench.qp_b for kept in bench.b._recent)
    bench.to_b(*late)
    assert bench.b.counters()["drops"] == {"no_qp": len(late)}
    assert bench.qp_b.responder.epsn == heard


def test_port_status_updates_that_are_never_answered_are_remembered_eight_at_a_time() -> None:
    bench = Bench(planes=4)
    bench.a.port_changed(2, False, bench.now_ns)
    peer = bench.a.peers.named("h1")
    for _ in range(20):
        peer.announce(bench.a.ports.up, bench.now_ns)
    assert len(peer.asked) == 8


def test_a_port_status_update_is_repeated_when_its_answer_is_overdue_and_not_before() -> None:
    bench = Bench(planes=4)
    bench.a.port_changed(2, False, bench.now_ns)
    assert bench.out(bench.a, wire.Opcode.ENDPOINT_REQUEST)
    due_ns = bench.a.peers.named("h1").due_ns
    bench.a.handle_timer(due_ns - 1)
    bench.now_ns = due_ns - 1
    assert not bench.out(bench.a, wire.Opcode.ENDPOINT_REQUEST)
    bench.now_ns = due_ns
    bench.a.handle_timer(due_ns)
    assert bench.out(bench.a, wire.Opcode.ENDPOINT_REQUEST)


def test_a_peer_whose_port_goes_down_is_heard_while_a_queue_pair_has_no_peer_yet() -> None:
    bench = Bench(planes=4)
    bench.b.create_qp(bench.cq_b)
    bench.a.port_changed(2, False, bench.now_ns)
    bench.to_b(*bench.out(bench.a, wire.Opcode.ENDPOINT_REQUEST))
    assert bench.b.peers.named("h0").ports & 0b1111 == 0b1101
    assert bench.qp_b.evs.wanted_ports == 0b1101


def test_a_sack_reports_the_packets_that_it_counts_and_those_of_its_bitmap_that_were_sent() -> None:
    bench = Bench()
    assert len(bench.write(6)) == 6
    flight = bench.qp_a.requester.flight
    assert [flight.reported(count, 0, 0) for count in (-1, 0, 1, 3)] == [0, 0, 0b1, 0b111]
    assert flight.reported(1, 2, 0b101) == 0b010101
    assert flight.reported(0, 4, 0b11111) == 0b111000
    assert flight.reported(0, 0, 0b111) == 0b11


@pytest.mark.parametrize("seed", range(5))
def test_it_is_a_deque_of_pairs(seed: int) -> None:
    chance, log, model = Random(seed), SentLog(), deque[tuple[int, int]]()
    for number in range(128 * ROOM):
        choice = chance.random()
        if choice < 0.5 + 0.1 * (number < 16 * ROOM):
            log.append((number, 1 << number % 70))
            model.append((number, 1 << number % 70))
        elif choice < 0.99 and model:
            assert log.popleft() == model.popleft()
        elif choice > 0.999:
            log.clear()
            model.clear()
        elif choice > 0.995:
            log.extend([(number, 1), (number, 2)])
            model.extend([(number, 1), (number, 2)])
        assert len(log) == len(model)
        if model:
            assert (log[0], log[-1]) == (model[0], model[-1])
        if number % 64 == 0:
            assert list(log) == list(model)


def test_a_log_has_only_what_was_not_taken_out() -> None:
    log = SentLog()
    log.extend([(1, 10), (2, 20)])
    assert log.popleft() == (1, 10)
    for place in (1, -2):
        with pytest.raises(IndexError, match="the log has 1 transmissions"):
            log[place]
    log.clear()
    with pytest.raises(IndexError):
        log.popleft()


def fuzz(count: int, seed: int, dialect: str = "") -> None:
    rng = Random(seed)
    bench = Bench(max_recv_wr=1 << 16, dialect=dialect)
    frames = corpus(bench)
    untouched = bytearray(rng.randbytes(4096))
    outside = bytes(untouched)
    bench.b.register_memory(untouched, remote_write=False)
    source = bytes(bench.source)
    for number in range(count):
        frame = mutate(rng.choice(frames), rng)
        endpoint = bench.a if rng.random() < 0.4 else bench.b
        endpoint.receive(rng.randrange(1, 5), [memoryview(frame) if rng.random() < 0.5 else frame], bench.now_ns)
        if number % 64 == 0:
            bench.now_ns += rng.randrange(20_000)
            for one in (bench.a, bench.b):
                due_ns = one.next_timer_ns()
                if due_ns is not None and due_ns <= bench.now_ns:
                    one.handle_timer(bench.now_ns)
                assert len(one.packets_to_send(bench.now_ns, 64)) <= 64
                assert len(one.log) <= 65536
            if QPState.ERROR in (bench.qp_a.state, bench.qp_b.state):
                # With a right ICRC a packet may say what ends a connection. Go on with a new one.
                # The last connection may have been told, with a right ICRC, that the peer has no port left.
                for one in (bench.a, bench.b):
                    for peer in one.peers:
                        peer.ports = PORTS_ALL
                bench = renewed(bench)
                frames = corpus(bench)
                bench.b.register_memory(untouched, remote_write=False)
                source = bytes(bench.source)
    assert bytes(untouched) == outside
    assert bytes(bench.source) == source
    for endpoint in (bench.a, bench.b):
        assert len(endpoint.counters()["drops"]) < 20
    works(renewed(bench))


def renewed(bench: Bench) -> Bench:
    """Two new QPs on the same endpoints."""
    bench.a.destroy_qp(bench.qp_a, bench.now_ns)
    bench.b.destroy_qp(bench.qp_b, bench.now_ns)
    bench.cq_a, bench.cq_b = bench.a.create_cq(10_000), bench.b.create_cq(10_000)
    bench.qp_a, bench.qp_b = bench.pair()
    return bench


def works(bench: Bench) -> None:
    """The endpoints still carry a write."""
    for endpoint, peer in ((bench.a, "h1"), (bench.b, "h0")):
        endpoint.peers.named(peer).ports = (1 << 32) - 1  # a forged port status update with a right ICRC is believed
        for qp in (bench.qp_a, bench.qp_b):
            qp.refresh_ports()
        assert endpoint.ports.up == 0b1111
    bench.sink[:] = bytes(len(bench.sink))
    bench.post(4)
    for _ in range(40):
        bench.to_b(*bench.out(bench.a))
        bench.to_a(*bench.answers())
        bench.later()
    assert [done.status.value for done in bench.completions()] == ["success"]
    assert bench.sink[: 4 * 4096] == bench.source[: 4 * 4096]


@pytest.mark.parametrize(("count", "dialect"), [(50_000, ""), (15_000, "mrc-client")])
def test_many_hostile_packets_do_no_harm(count: int, dialect: str) -> None:
    fuzz(count, seed=1, dialect=dialect)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10))
def test_a_million_hostile_packets_do_no_harm(seed: int) -> None:
    fuzz(100_000, seed=100 + seed)


def test_a_frame_to_someone_else_is_not_ours() -> None:
    bench = Bench()
    (sent,) = bench.write(1)
    for at in (38, 54 + 24, 54 + 8):  # outer destination, inner destination, inner source
        bench.to_b(sent.with_bytes({at + 3: bytes([sent.frame[at + 3] ^ 0xFF])}))
    assert bench.b.counters()["drops"] == {"not_for_us": 2, "wrong_peer": 1}
    assert bench.sink[:4096] == bytes(4096)
