"""ERROR → RESET → a new life: what is flushed, what begins anew, and that packets of the life before are refused."""

from random import Random
from typing import Any

import pytest

from endpoint.mrc.endpoint import Endpoint
from endpoint.nic.attributes import VerbError
from endpoint.nic.nic import QPN_FIRST, QPN_MAX
from endpoint.nic.verbs import RESET_PSNS
from endpoint.roce.endpoint import RoceEndpoint
from endpoint.transport import CompletionStatus, QPState
from tests.helpers.transport import Bench, Flow, Wire

MAKES: list[Any] = [Endpoint, RoceEndpoint]


def reconnect(flow: Flow) -> None:
    for qp in (flow.qp, flow.remote):
        qp.modify(QPState.RESET, flow.wire.now_ns)
    flow.qp.connect(flow.remote.info(), flow.wire.now_ns)
    flow.remote.connect(flow.qp.info(), flow.wire.now_ns)


@pytest.mark.parametrize("make", MAKES)
@pytest.mark.parametrize("by_error", [True, False])
def test_a_qp_that_was_reset_carries_data_again_under_its_old_number(make: Any, by_error: bool) -> None:
    wire = Wire(make=make)
    flow = Flow(wire)
    numbers, psn = (flow.qp.qpn, flow.remote.qpn), flow.qp.info().psn
    for life in range(4):
        for number in range(20):
            flow.post(30_000, immediate=number)
        flow.finish(400)
        if by_error:
            flow.qp.modify(QPState.ERROR, wire.now_ns)
            flow.remote.modify(QPState.ERROR, wire.now_ns)
        reconnect(flow)
        assert flow.qp.state is QPState.RTS
        assert (flow.qp.qpn, flow.remote.qpn) == numbers
        assert flow.qp.info().psn != psn, life
        psn = flow.qp.info().psn


@pytest.mark.parametrize("make", MAKES)
def test_reset_from_error_keeps_flushed_completions_and_reset_from_rts_drops_the_work_in_silence(make: Any) -> None:
    wire = Wire(make=make)
    flow = Flow(wire)
    flow.post(1000)
    flow.qp.modify(QPState.ERROR, 0)
    flow.qp.modify(QPState.RESET, 0)
    assert [done.status for done in flow.cq.poll()] == [CompletionStatus.FLUSHED]
    assert flow.qp.cause == ""
    flow = Flow(wire)
    flow.post(1000)
    flow.qp.post_recv(7)
    flow.qp.modify(QPState.RESET, 0)
    assert flow.cq.poll() == []
    with pytest.raises(VerbError, match="is in RESET; writes can be posted in RTS and SQD only"):
        flow.post(1000)
    for _ in range(flow.cq.capacity):
        flow.cq.reserve()  # all room is back


@pytest.mark.parametrize("make", MAKES)
@pytest.mark.parametrize("seed", range(5))
def test_packets_of_the_former_life_change_nothing_in_the_new_one(make: Any, seed: int) -> None:
    """Everything that either host had heard comes again after the reset, in any order, in the midst of new writes."""
    wire = Wire(make=make, seed=seed + 1)
    flow = Flow(wire, seed=seed)
    for number in range(30):
        flow.post(20_000, immediate=number if number % 3 == 0 else None)
    flow.finish(400)
    stale = [(host, port, frame) for host, heard in wire.heard.items() for port, frame in heard]
    reconnect(flow)
    flow.sink[:] = bytes(len(flow.sink))
    flow.posted.clear()
    flow.statuses.clear()
    flow.immediates.clear()
    Random(seed).shuffle(stale)
    for at, (host, port, frame) in enumerate(stale):
        wire.at(
            wire.now_ns + at * wire.base_rtt_ns // 20,
            lambda host=host, port=port, frame=frame: wire.transports[host].receive(port, [frame], wire.now_ns),
        )
    for number in range(30):
        flow.post(20_000, immediate=number if number % 3 == 0 else None)
    flow.finish(800)


def test_a_stale_transport_acknowledgement_confirms_nothing_in_the_new_life() -> None:
    """Its MSN is of a long life, and would confirm what the new life has placed and not completed."""
    bench = Bench()
    for number in range(5):
        bench.qp_b.post_recv(number)
        bench.post(1, immediate=number)
    bench.to_b(*bench.writes())
    stale = bench.answers()
    bench.to_a(*stale)
    assert len(bench.completions()) == 5
    for qp in (bench.qp_a, bench.qp_b):
        qp.modify(QPState.RESET, bench.now_ns)
    bench.qp_a.connect(bench.qp_b.info(), bench.now_ns)
    bench.qp_b.connect(bench.qp_a.info(), bench.now_ns)
    bench.qp_b.post_recv(9)
    bench.to_b(*bench.write(1, immediate=9))
    sacks = [packet for packet in bench.answers() if packet.opcode.name == "SACK"]
    bench.to_a(*sacks, *stale)
    assert bench.completions() == []
    assert bench.a.log.drops["ack_of_unsent"] >= 1


def test_a_new_life_begins_where_every_psn_of_the_last_one_lies_beyond_the_window() -> None:
    for seed in range(50):
        bench = Bench(psn=Random(seed).getrandbits(24))
        old = bench.qp_a.info().psn
        bench.write(30)
        bench.qp_a.modify(QPState.RESET, bench.now_ns)
        for stale in (old, old + 29):
            ahead = (stale - bench.qp_a.info().psn) & 0xFFFFFF
            assert RESET_PSNS - 30 <= ahead < 1 << 23  # of the 2^24: neither in a window nor taken for a duplicate


def test_a_step_to_the_same_state_sets_attributes() -> None:
    bench = Bench()
    qp = bench.a.create_qp(bench.cq_a)
    qp.modify(QPState.RESET, 0)
    qp.modify(QPState.INIT, 0)
    qp.modify(QPState.INIT, 0, sq_psn=77)
    assert qp.state is QPState.INIT
    assert qp.info().psn == 77
    bench.qp_a.modify(QPState.RTS, 0, timeout=9)
    assert bench.qp_a.values["timeout"] == 9


@pytest.mark.parametrize("make", MAKES)
def test_in_sqd_what_was_posted_ends_and_what_is_posted_waits_for_rts(make: Any) -> None:
    wire = Wire(make=make)
    flow = Flow(wire)
    flow.post(20_000)
    flow.qp.post_write(50, flow.region, 0, 20_000, flow.target.va, flow.target.rkey, signaled=False)
    flow.qp.modify(QPState.SQD, wire.now_ns)
    wire.kick("h0")
    assert not flow.qp.drained
    flow.post(5000)
    flow.post(5000)
    wire.run(wire.now_ns + 400 * wire.base_rtt_ns)
    assert flow.qp.drained
    assert [done.status for done in flow.cq.poll()] == [CompletionStatus.SUCCESS]
    assert flow.qp.silenced == 1
    wire.run(wire.now_ns + 4000 * wire.base_rtt_ns)  # nothing waits for an answer
    assert flow.qp.state is QPState.SQD
    flow.qp.modify(QPState.RTS, wire.now_ns)
    wire.kick("h0")
    wire.run(wire.now_ns + 400 * wire.base_rtt_ns)
    assert [done.status for done in flow.cq.poll()] == [CompletionStatus.SUCCESS] * 2
    assert flow.remote.counters()["received_bytes"] == 50_000


@pytest.mark.parametrize("make", MAKES)
@pytest.mark.parametrize("target", [QPState.ERROR, QPState.RESET])
def test_what_waits_in_sqd_is_flushed_by_error_and_forgotten_by_reset(make: Any, target: QPState) -> None:
    wire = Wire(make=make)
    flow = Flow(wire)
    flow.qp.modify(QPState.SQD, wire.now_ns)
    assert flow.qp.drained
    flow.post(5000)
    flow.post(5000)
    flow.qp.modify(target, wire.now_ns)
    flushed = [CompletionStatus.FLUSHED] * 2 if target is QPState.ERROR else []
    assert [done.status for done in flow.cq.poll()] == flushed
    for _ in range(flow.cq.capacity):
        flow.cq.reserve()  # all room is back


@pytest.mark.parametrize(
    ("states", "target", "valid"),
    [
        ([], QPState.RTS, "RESET and cannot go to RTS; valid: INIT, ERROR"),
        ([], QPState.RTR, "RESET and cannot go to RTR; valid: INIT, ERROR"),
        ([QPState.INIT], QPState.RTS, "INIT and cannot go to RTS; valid: RTR, ERROR, RESET"),
        ([QPState.INIT], QPState.SQD, "INIT and cannot go to SQD; valid: RTR, ERROR, RESET"),
        ([QPState.ERROR], QPState.RTS, "ERROR and cannot go to RTS; valid: RESET"),
    ],
)
def test_every_refused_step_names_the_steps_that_there_are(states: list[QPState], target: QPState, valid: str) -> None:
    bench = Bench()
    qp = bench.a.create_qp(bench.cq_a)
    for state in states:
        qp.modify(state, 0)
    before = qp.state
    with pytest.raises(VerbError, match=valid):
        qp.modify(target, 0)
    assert qp.state is before


def test_a_reset_qp_leaves_its_peer_and_the_penalty_and_wants_no_timer() -> None:
    bench = Bench()
    bench.write(4)
    bench.qp_a.modify(QPState.RESET, bench.now_ns)
    assert bench.a.next_timer_ns() is None
    assert bench.qp_a.peer_name is None
    assert bench.a.peers.named("h1").users == 0
    bench.later(1000)
    assert bench.a.next_timer_ns() is None
    assert bench.writes() == []
    bench.a.destroy_qp(bench.qp_a, bench.now_ns)


def test_the_number_of_a_queue_pair_is_given_to_no_other_for_as_long_as_possible() -> None:
    bench = Bench()
    first = bench.a.create_qp(bench.cq_a)
    bench.a.destroy_qp(first, bench.now_ns)
    assert bench.a.create_qp(bench.cq_a).qpn == first.qpn + 1
    bench.a._next_qpn = QPN_MAX
    assert bench.a.create_qp(bench.cq_a).qpn == QPN_MAX
    assert bench.a.next_qpn() >= QPN_FIRST
