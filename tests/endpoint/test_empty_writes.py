"""Writes of no bytes, with and without immediate, as InfiniBand has them: one packet each, one PSN, and no memory.

C9-88: "For an HCA responder using Reliable Connection service, for each zero-length RDMA READ or WRITE request, the
R_Key shall not be validated, even if the request includes Immediate data." NCCL sends them for each message that has
fewer parts than there are queue pairs.
"""

from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from endpoint.nic import wire
from endpoint.nic.wire import NackReason, Opcode
from endpoint.transport import CompletionStatus, QPState
from tests.helpers.transport import Bench, Faults, Flow, Packet, Wire, roce_wire, run

SUCCESS = CompletionStatus.SUCCESS
BOTH = pytest.mark.parametrize("make", [Wire, roce_wire])
LENGTH_AT = 14 + 40 + 40 + 8 + 12 + 4 + 12
"""Of the RETH's length: behind Ethernet, two IPv6 headers and UDP, BTH, METH, address and key."""


def test_an_empty_write_is_one_packet_with_a_reth_of_no_length() -> None:
    bench = Bench()
    bench.qp_b.post_recv(5)
    bench.qp_a.post_write(1, None, 0, 0, 0x1122334455667788, 0xAABBCCDD, 0xC0FFEE)
    (packet,) = bench.writes()
    assert packet.opcode is Opcode.WRITE_ONLY_IMM
    reth_and_immediate = "1122334455667788" + "aabbccdd" + "00000000" + "00c0ffee"
    assert packet.frame[packet.at + wire.METH_BYTES : -4].hex() == reth_and_immediate
    bench.to_b(packet)
    assert [(done.wr_id, done.byte_len, done.immediate) for done in bench.received()] == [(5, 0, 0xC0FFEE)]
    bench.to_a(*bench.answers())
    assert [(done.wr_id, done.status, done.byte_len) for done in bench.completions()] == [(1, SUCCESS, 0)]


@BOTH
@pytest.mark.parametrize("immediate", [None, 5])
def test_neither_key_nor_address_of_an_empty_write_is_checked(make: Callable[..., Wire], immediate: int | None) -> None:
    flow = Flow(make())
    flow.remote.post_recv(9)
    for number, (place, rkey) in enumerate([(0, 0), ((1 << 64) - 1, 0xFFFFFFFF), (flow.target.va + (1 << 40), 7)]):
        flow.qp.post_write(number, None, -5, 0, place, rkey, immediate if number == 0 else None)
        flow.posted[number] = (0, 0, immediate if number == 0 else None)
    flow.finish()
    assert flow.qp.state is flow.remote.state is QPState.RTS


@BOTH
def test_the_region_of_an_empty_write_may_be_gone_before_its_turn(make: Callable[..., Wire]) -> None:
    flow = Flow(make())
    other = flow.wire.transports["h0"].register_memory(bytearray(10))
    flow.qp.post_write(0, other, 0, 0, 0, 0)
    flow.posted[0] = (0, 0, None)
    flow.wire.transports["h0"].deregister_memory(other)
    flow.finish()


@BOTH
def test_the_first_error_of_a_queue_pair_is_the_first_completion_that_is_one(make: Callable[..., Wire]) -> None:
    """Writes before one from memory that is gone end as they would without it, and those behind it are flushed."""
    flow = Flow(make())
    other = flow.wire.transports["h0"].register_memory(bytearray(10))
    for number in range(4):
        flow.qp.post_write(number, other if number == 2 else flow.region, 0, 10, flow.target.va, flow.target.rkey)
    flow.wire.transports["h0"].deregister_memory(other)
    flow.wire.run(flow.wire.now_ns + 200 * flow.wire.base_rtt_ns)
    done = [(each.wr_id, each.status.value) for each in flow.cq.poll(9)]
    assert done == [(0, "success"), (1, "success"), (2, "local_protection_error"), (3, "flushed")]


@BOTH
@pytest.mark.parametrize("loss", [0.0, 0.1])
def test_empty_and_other_writes_complete_once_and_in_order_whatever_is_lost(make, loss) -> None:
    made, rng = make(seed=3), Random(5)
    flow = Flow(made, psn=2**24 - 50)
    for link in made.links.values():
        link.faults = Faults(loss=loss, reorder=loss, reorder_ns=2 * made.base_rtt_ns)
    for number in range(200):
        flow.post(rng.choice([0, 0, 1, 5000]), immediate=number if rng.random() < 0.5 else None)
        if number % 20 == 19:
            run(made, flow)
    flow.check()
    assert (flow.qp.requester.retransmits > 0) is (loss > 0)


@BOTH
def test_an_empty_immediate_waits_for_what_was_posted_before(make: Callable[..., Wire]) -> None:
    """It says that the writes before it have arrived, which is what programs send it for."""
    made = make()
    flow = Flow(made)
    links = [link for key, link in made.links.items() if isinstance(key[0], int)]
    for link in links:
        link.faults = Faults(loss=1.0)
    flow.post(4096)
    made.run(made.now_ns + made.base_rtt_ns // 2)
    for link in links:
        link.faults = Faults()
    flow.post(0, immediate=1)
    made.kick("h0")
    while not flow.immediates:
        made.run(made.now_ns + made.base_rtt_ns // 10)
        flow.poll()
        assert made.now_ns < 10_000 * made.base_rtt_ns
    assert flow.sink[:4096] == flow.source[:4096]
    flow.finish()


@BOTH
def test_an_empty_immediate_that_finds_no_receive_is_refused(make: Callable[..., Wire]) -> None:
    flow = Flow(make())
    flow.post(100)
    flow.qp.post_write(7, None, 0, 0, 0, 0, 5)
    flow.wire.run(50 * flow.wire.base_rtt_ns)
    assert [(done.wr_id, done.status) for done in flow.cq.poll(9)] == [
        (0, SUCCESS),
        (7, CompletionStatus.REMOTE_OPERATION_ERROR),
    ]


@BOTH
def test_a_thousand_empty_writes_need_no_window(make: Callable[..., Wire]) -> None:
    """They hold no bytes in flight: the PSNs that the peer grants bound them, and sends and receives."""
    flow = Flow(make())
    for number in range(1000):
        flow.post(0, immediate=number if number % 3 == 0 else None)
    flow.finish()
    assert flow.wire.now_ns < 100 * flow.wire.base_rtt_ns


@BOTH
def test_an_unsignaled_empty_write_is_told_of_by_the_next(make: Callable[..., Wire]) -> None:
    flow = Flow(make())
    flow.qp.post_write(1, None, 0, 0, 0, 0, signaled=False)
    flow.qp.post_write(2, None, 0, 0, 0, 0)
    flow.wire.run(50 * flow.wire.base_rtt_ns)
    assert [(done.wr_id, done.status) for done in flow.cq.poll(9)] == [(2, SUCCESS)]
    assert flow.qp.silenced == 1


def test_an_empty_write_that_was_trimmed_is_sent_again() -> None:
    """Its 142 bytes are more than the 128 that a switch leaves, so that its immediate is cut off."""
    bench = Bench()
    bench.qp_b.post_recv(1)
    bench.qp_a.post_write(0, None, 0, 0, 0, 0, 5)
    (packet,) = bench.writes()
    assert len(packet.frame) == 142
    bench.to_b(packet.trimmed())
    (nack,) = bench.answers(Opcode.NACK)
    assert nack.neth.reason == NackReason.TRIMMED
    bench.to_a(nack)
    (copy,) = bench.writes()
    assert copy.retransmission
    bench.to_b(copy, packet)  # and the second copy does nothing
    assert [done.immediate for done in bench.received()] == [5]
    bench.to_a(*bench.answers())
    assert [done.status for done in bench.completions()] == [SUCCESS]


@pytest.mark.parametrize(
    ("opcode", "length", "keep"),
    [
        (Opcode.WRITE_ONLY, 5, 0),  # no bytes of a message of five
        (Opcode.WRITE_LAST, 0, 0),  # a last packet has at least one byte, as has a first or middle one
        (Opcode.WRITE_FIRST, 0, 0),
        (Opcode.WRITE_MIDDLE, 4096, 0),
        (Opcode.WRITE_ONLY, 0, 4096),  # bytes in a message of none
        (Opcode.WRITE_MIDDLE, 0, 100),
    ],
)
def test_a_packet_without_bytes_in_any_other_message_is_refused(opcode: Opcode, length: int, keep: int) -> None:
    bench = Bench()
    if keep:
        bench.qp_a.post_write(0, bench.region, 0, keep, bench.target.va, bench.target.rkey)
    else:
        bench.qp_a.post_write(0, None, 0, 0, bench.target.va, bench.target.rkey)
    (packet,) = bench.writes()
    bench.to_b(changed(packet, opcode, length))
    assert bench.qp_b.state is QPState.ERROR
    assert [nack.neth.reason for nack in bench.answers(Opcode.NACK)] == [NackReason.UNEXP_EVENT]
    assert bench.sink == bytes(len(bench.sink))


def test_bytes_of_a_message_of_none_are_placed_nowhere() -> None:
    """A length of 0 in the RETH must not pass bytes by the check of the key."""
    bench = Bench()
    bench.qp_a.post_write(0, bench.region, 0, 4096, bench.target.va, bench.target.rkey ^ 1)
    (packet,) = bench.writes()
    bench.to_b(changed(packet, Opcode.WRITE_MIDDLE, 0))
    assert bench.qp_b.state is QPState.ERROR
    assert bench.sink == bytes(len(bench.sink))


def changed(packet: Packet, opcode: Opcode, length: int) -> Packet:
    return packet.with_bytes({packet.outside.bth: bytes([opcode]), LENGTH_AT: length.to_bytes(4, "big")})


def test_empty_writes_of_counted_payload_are_no_bytes_in_memory() -> None:
    bench = Bench()
    bench.a.counted = bench.b.counted = True
    region: Any = bench.b.register_counted(100)
    bench.qp_b.post_recv(3)
    bench.qp_a.post_write(0, None, 0, 0, region.va, region.rkey, 8)
    bench.to_b(*bench.writes())
    bench.to_a(*bench.answers())
    assert [(done.byte_len, done.immediate) for done in bench.received()] == [(0, 8)]
    assert [done.status for done in bench.completions()] == [SUCCESS]
    assert len(region.landed) == 0
