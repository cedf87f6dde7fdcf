"""A queue pair's attributes, and its lives: what each step takes, and what a reset or SQD leaves behind."""

from collections.abc import Callable
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from endpoint.mrc.endpoint import Endpoint
from endpoint.nic.attributes import VerbError
from endpoint.nic.nic import QPN_FIRST, QPN_MAX
from endpoint.nic.verbs import RESET_PSNS
from endpoint.nic.wire import Opcode
from endpoint.roce.endpoint import RoceEndpoint
from endpoint.transport import CompletionStatus, QPState
from tests.helpers.transport import Bench, Flow, Link, Wire

STATES = [QPState.RESET, QPState.INIT, QPState.RTR, QPState.RTS]


def in_state(state: QPState) -> Any:
    bench = Bench()
    qp, peer = bench.a.create_qp(bench.cq_a), bench.b.create_qp(bench.cq_b)
    for step in STATES[1 : STATES.index(state) + 1]:
        qp.modify(step, 0, peer=peer.info() if step is QPState.RTR else None)
    return qp, peer


# The API's table of attributes on the way to INIT, RTR and RTS (mrc.h, `mrc_qp_attr_mask`), written out by hand.
ON_THE_WAY = {
    QPState.INIT: {"ev_profile_id": 0, "cc_profile_id": 0},
    QPState.RTR: {"max_wimm_dest": 40, "mpr_dest": 9, "cap": 4},
    QPState.RTS: {"max_wimm": 30, "mpr": 7, "linear_cnt": 3, "exp_cnt": 25, "timeout": 20},
}


def test_each_step_takes_the_attributes_of_the_apis_table_and_query_finds_them() -> None:
    qp, peer = in_state(QPState.RESET)
    for state, wanted in ON_THE_WAY.items():
        qp.modify(state, 0, peer=peer.info() if state is QPState.RTR else None, **wanted)
        assert {name: qp.values[name] for name in wanted} == wanted
    assert qp.state is QPState.RTS


@pytest.mark.parametrize(
    ("state", "step", "name", "words"),
    [
        (QPState.RESET, None, "timeout", "timeout cannot be set in RESET; valid: on the way to RTS, in RTS"),
        (QPState.RESET, QPState.INIT, "timeout", "cannot be set on the way to INIT"),
        (QPState.RTR, None, "cc_profile_id", "cannot be set in RTR; valid: on the way to INIT, in INIT"),
        (QPState.RTS, None, "max_wimm_dest", "cannot be set in RTS; valid: on the way to INIT, on the way to RTR"),
        (QPState.RTS, QPState.ERROR, "timeout", "cannot be set on the way to ERROR"),
        (QPState.RTS, None, "mpr_dest", "with the dynamic MPR only"),
        (QPState.INIT, None, "rnr_retry", "no attribute 'rnr_retry' to modify; valid: ev_profile_id, "),
    ],
)
def test_an_attribute_at_the_wrong_time_is_refused_with_the_right_times(state, step, name, words) -> None:
    qp, _ = in_state(state)
    before = dict(qp.values)
    with pytest.raises(VerbError, match=words):
        qp.modify(step, 0, **{name: 1})
    assert (qp.state, qp.values) == (state, before)


@pytest.mark.parametrize(
    ("name", "value"), [("timeout", 25), ("linear_cnt", 8), ("exp_cnt", 26), ("mpr", 0), ("mpr", 65), ("max_wimm", 0)]
)
def test_an_attribute_out_of_the_apis_range_is_refused_by_name(name: str, value: int) -> None:
    qp, _ = in_state(QPState.RTS)
    with pytest.raises(VerbError, match=f"{name} is {value}; it must be from "):
        qp.modify(None, 0, **{name: value})
    with pytest.raises(VerbError, match=f"{name} is True; it must be an integer"):
        qp.modify(None, 0, **{name: True})


def test_a_step_that_fails_sets_nothing() -> None:
    qp, peer = in_state(QPState.INIT)
    before = dict(qp.values)
    with pytest.raises(VerbError, match="needs the peer's attributes"):
        qp.modify(QPState.RTR, 0, mpr_dest=20)
    assert qp.values == before
    with pytest.raises(VerbError, match="is in INIT, not in RTR; nothing was modified"):
        qp.modify(QPState.RTR, 0, peer=peer.info(), cur_state=QPState.RTR)
    assert qp.state is QPState.INIT


def test_a_requester_keeps_to_the_smaller_of_its_own_mpr_and_the_peers() -> None:
    bench = Bench(congestion="fixed_window", nscc=None, mpr=8, changes={"base_rtt_ns": 2_000_000})
    bench.qp_a.modify(None, bench.now_ns, mpr=1)
    for _ in range(3):
        bench.post(40)
    assert len(bench.write(40)) == 128
    bench.qp_a.modify(None, bench.now_ns, mpr=64)  # the peer grants eight
    assert len(bench.writes()) == 160 - 128


def test_writes_with_immediate_wait_by_the_smaller_of_both_limits() -> None:
    bench = Bench()
    bench.qp_a.modify(None, bench.now_ns, max_wimm=2)
    for number in range(5):
        bench.qp_b.post_recv(number)
        bench.post(1, immediate=number)
    assert len(bench.writes()) == 2
    bench.qp_a.modify(None, bench.now_ns, max_wimm=4)
    assert len(bench.writes()) == 2


def given_up_after_ns(wire: Wire, **given: int) -> int:
    """How long a QP waits for a peer that is gone."""
    flow = Flow(wire)
    began_ns = wire.now_ns
    flow.qp.modify(None, began_ns, **given)
    wire.cut()
    flow.post(100)
    wire.run(began_ns + 10**10)
    assert flow.finished
    assert list(flow.statuses.values()) == [CompletionStatus.RETRY_EXCEEDED]
    wire.cut(up=True)
    return (
        int(next(line for line in wire.journal if f"'qp': {flow.qp.qpn}, " in line and "'error'" in line).split()[0])
        - began_ns
    )


@pytest.mark.parametrize("make", [None, RoceEndpoint])
def test_each_qp_has_a_timeout_and_retries_of_its_own(make: Any) -> None:
    """Local ACK timeout 1.024 µs * 2^timeout (OCP MRC API; IBA 9.7.6). RoCE gives up after one more than its retries;
    MRC waits twice as long after the last linear one."""
    wire = Wire(**({} if make is None else {"make": make}))
    named = ("retry_cnt",) if make else ("linear_cnt", "exp_cnt")
    for timeout in (12, 14):
        for count in (0, 3):
            wire.journal.clear()
            given = dict.fromkeys(named, 0) | {named[0]: count, "timeout": timeout}
            expected_ns = (count + (1 if make else 2)) * (1024 << timeout)
            assert given_up_after_ns(wire, **given) == pytest.approx(expected_ns, rel=0.05)


@pytest.mark.parametrize("make", [None, RoceEndpoint])
def test_a_write_after_idle_time_on_a_dead_nic_waits_its_whole_timeout(make: Any) -> None:
    """The time before the write was posted, in which nothing was under way, counts for nothing."""
    wire = Wire(**({} if make is None else {"make": make}))
    flow = Flow(wire)
    flow.qp.modify(None, 0, **dict.fromkeys(("retry_cnt",) if make else ("linear_cnt", "exp_cnt"), 0), timeout=12)
    for port in wire.profiles["h0"].ports:
        wire.set_port("h0", port.port, False)
    posted_ns = 100 * (1024 << 12)
    wire.run(posted_ns)
    flow.post(100)
    wire.run(posted_ns + (1024 << 12) - 1)
    assert not flow.finished
    wire.run(posted_ns + (1024 << 14))
    assert flow.finished
    assert list(flow.statuses.values()) == [CompletionStatus.RETRY_EXCEEDED]


def black_hole(wire: Wire) -> None:
    """Full packets vanish, small ones pass, as where a link's MTU is too small."""
    cross = wire._cross

    def drop_large(link: Link, frame: bytes, then: Callable[[bytes], None]) -> None:
        if len(frame) < 1500:
            cross(link, frame, then)

    wire._cross = drop_large  # type: ignore[method-assign]


def test_finite_retries_run_out_although_probes_are_answered() -> None:
    """As many timeouts as without any answer; the first may come one timeout later, as long as answers put it off."""
    wire = Wire(planes=2, evs_per_plane=4)
    black_hole(wire)
    flow = Flow(wire)
    flow.qp.modify(None, 0, timeout=7, linear_cnt=2, exp_cnt=3)
    flow.post(10_000)
    wire.run((2 + 2 + 4 + 8 + 16) * (1024 << 7) - 1)
    assert not flow.finished
    assert flow.qp.requester.timeouts == 5
    wire.run(wire.now_ns + 2 * (1024 << 7))
    assert flow.finished
    assert list(flow.statuses.values()) == [CompletionStatus.RETRY_EXCEEDED]


def test_retries_without_end_are_not_counted_while_probes_are_answered() -> None:
    wire = Wire(planes=2, evs_per_plane=4)
    black_hole(wire)
    flow = Flow(wire)
    flow.qp.modify(None, 0, timeout=7)
    flow.post(10_000)
    wire.run(200 * wire.base_rtt_ns)
    assert flow.qp.state is QPState.RTS
    assert (flow.qp.requester.timeouts, flow.qp.requester.retry.retries) == (0, 0)


def test_a_longer_timeout_in_a_qp_that_runs_holds_at_once() -> None:
    wire = Wire()
    flow = Flow(wire)
    flow.qp.modify(None, 0, timeout=12, linear_cnt=0, exp_cnt=0)
    wire.cut()
    flow.post(100)
    wire.run(1024 << 11)
    flow.qp.modify(None, wire.now_ns, timeout=16)
    wire.run(1024 << 16)
    assert not flow.finished
    wire.run(1024 << 18)
    assert flow.finished


def test_the_baseline_has_its_own_attributes() -> None:
    wire = Wire(make=RoceEndpoint)
    qp = Flow(wire).qp
    qp.modify(None, 0, timeout=20, retry_cnt=2)
    assert (qp.values["timeout"], qp.values["retry_cnt"]) == (20, 2)
    with pytest.raises(VerbError, match="no attribute 'mpr' to modify; valid: sq_psn, timeout, retry_cnt"):
        qp.modify(None, 0, mpr=8)


def pair(one: dict[str, Any], other: dict[str, Any]) -> tuple[Bench, Any, Any]:
    bench = Bench(congestion="fixed_window", changes={"base_rtt_ns": 2_000_000})
    return bench, *bench.pair(one, other)


def post(bench: Bench, qp: Any, packets: int) -> None:
    for _ in range(packets // 32):
        qp.post_write(1, bench.region, 0, 32 * 4096, bench.target.va, bench.target.rkey)


@pytest.mark.parametrize(("ours", "theirs"), [(True, True), (True, False), (False, True), (False, False)])
def test_the_mpr_is_dynamic_only_if_both_ends_want_it(ours: bool, theirs: bool) -> None:
    bench, qp, peer = pair({"dynamic_mpr": ours}, {"dynamic_mpr": theirs, "mpr": 9})
    assert (qp.dynamic_mpr, peer.dynamic_mpr) == (ours and theirs,) * 2
    post(bench, qp, 32)
    bench.to_b(*bench.writes())
    mprs = {packet.seth.mpr for packet in bench.answers(Opcode.SACK)}
    assert mprs == {9 if ours and theirs else 0}  # SETH byte 17: 0 if the dynamic MPR is off


@pytest.mark.parametrize(("first", "then", "before"), [(1, 10, 1), (8, 2, 512)])
def test_a_larger_window_is_used_at_once_and_a_smaller_one_from_where_the_larger_one_ended(first, then, before) -> None:
    """A SACK tells of it; so many packets have arrived before, and nothing is lost."""
    bench, qp, peer = pair({"dynamic_mpr": True}, {"dynamic_mpr": True, "mpr": first})
    post(bench, qp, 64 * 32)
    sent = bench.writes()
    assert len(sent) == first * 128
    peer.modify(None, bench.now_ns, mpr_dest=then)
    bench.to_b(*sent[:before])
    if then < first:
        bench.to_a(*bench.answers(Opcode.SACK))
        assert bench.writes() == []  # 512 are under way, and 1024 were granted
    bench.wait(1)
    bench.to_b(*sent[before:])
    sacks = bench.answers(Opcode.SACK)
    bench.to_a(*sacks)
    arrived = (max(packet.seth.cack_psn for packet in sacks) - sent[0].psn + 1) & 0xFFFFFF
    assert arrived > 100
    assert len(bench.writes()) == arrived + (then - first) * 128
    assert peer.responder.out_of_window == 0


def test_a_requester_never_exceeds_its_own_mpr_whatever_the_peer_grants() -> None:
    bench, qp, peer = pair({"dynamic_mpr": True}, {"dynamic_mpr": True, "mpr": 1})
    qp.modify(None, bench.now_ns, mpr=3)
    post(bench, qp, 64 * 32)
    first = bench.writes()
    peer.modify(None, bench.now_ns, mpr_dest=64)
    bench.to_b(*first)
    bench.to_a(*bench.answers(Opcode.SACK))
    bench.writes()
    assert qp.requester.flight.nxt - qp.requester.flight.una == 3 * 128


def test_a_peer_that_stops_granting_costs_no_memory() -> None:
    """Its SACKs say 0, as without the dynamic MPR: one unit at a time may go, and the rings stay as they are."""
    bench, qp, peer = pair({"dynamic_mpr": True}, {"dynamic_mpr": True, "mpr": 1})
    qp.modify(None, bench.now_ns, mpr=2)
    peer.responder._answers.mpr = 0
    flight = qp.requester.flight
    for _ in range(16):
        post(bench, qp, 64)
        bench.to_b(*bench.writes())
        bench.to_a(*bench.answers())
    assert flight.una == flight.nxt
    assert flight.una - flight.granted > 512
    assert len(flight.sent_ns) == 128
    flight.grant(flight.granted + 128)  # still of the past
    assert len(flight.sent_ns) == 128
    flight.grant(flight.nxt + 1000)
    assert len(flight.sent_ns) == 256


@settings(max_examples=25)
@given(
    st.integers(0, 1 << 20),
    st.lists(st.tuples(st.integers(1, 64), st.integers(0, 30)), min_size=1, max_size=12),
    st.sampled_from([0.0, 0.02]),
)
def test_whatever_the_mpr_becomes_every_byte_arrives_and_no_packet_is_outside_the_window(seed, changes, loss) -> None:
    wire = Wire(seed=seed % 1000, delay_ns=50_000)
    wire.disturb(loss=loss, reorder=0.2, reorder_ns=100_000, duplicate=0.02)
    rng = Random(seed)
    flow = Flow(
        wire, size=1 << 21, seed=seed, dynamic_mpr=True, mpr=rng.randint(1, 64), psn=(1 << 24) - rng.randrange(3000)
    )
    for _ in range(24):
        flow.post(rng.randrange(1, 80_000), immediate=5 if rng.random() < 0.3 else None)
    at_ns = 0
    for mpr, round_trips in changes:
        at_ns += round_trips * wire.base_rtt_ns // 8
        wire.at(at_ns, lambda mpr=mpr: flow.remote.modify(None, wire.now_ns, mpr_dest=mpr))
    flow.finish(5_000)
    assert flow.remote.responder.out_of_window == 0


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
