"""The dynamic MPR: negotiated, said in every SACK, changed while a QP runs, however SACKs are reordered or lost."""

from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from endpoint.nic.wire import Opcode
from tests.helpers.transport.bench import Bench
from tests.helpers.transport.flows import Flow
from tests.helpers.transport.virtual_wire import Wire


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


def test_a_larger_window_is_used_as_soon_as_a_sack_has_told_of_it() -> None:
    bench, qp, peer = pair({"dynamic_mpr": True}, {"dynamic_mpr": True, "mpr": 1})
    post(bench, qp, 64 * 32)
    first = bench.writes()
    assert len(first) == 128
    peer.modify(None, bench.now_ns, mpr_dest=10)
    bench.to_b(first[0])
    bench.wait(1)
    bench.to_b(*first[1:])
    sacks = bench.answers(Opcode.SACK)
    bench.to_a(*sacks)
    arrived = (max(packet.seth.cack_psn for packet in sacks) - first[0].psn + 1) & 0xFFFFFF
    assert arrived > 100
    assert len(bench.writes()) == arrived + 1280 - 128


def test_a_smaller_window_holds_from_where_the_larger_one_ended_and_loses_nothing() -> None:
    bench, qp, peer = pair({"dynamic_mpr": True}, {"dynamic_mpr": True, "mpr": 8})
    post(bench, qp, 64 * 32)
    first = bench.writes()
    assert len(first) == 1024
    peer.modify(None, bench.now_ns, mpr_dest=2)
    bench.to_b(*first[:512])
    bench.to_a(*bench.answers(Opcode.SACK))
    assert bench.writes() == []  # 512 are under way, and 1024 were granted
    bench.to_b(*first[512:])
    sacks = bench.answers(Opcode.SACK)
    bench.to_a(*sacks)
    arrived = (max(packet.seth.cack_psn for packet in sacks) - first[0].psn + 1) & 0xFFFFFF
    assert len(bench.writes()) == arrived + 256 - 1024
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
def test_whatever_the_mpr_is_changed_to_every_byte_arrives_and_no_packet_is_outside_of_the_window(
    seed: int, changes: list[tuple[int, int]], loss: float
) -> None:
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
