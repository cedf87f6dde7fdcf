"""Unsignaled writes: told of only if they fail, or by the next signaled one; and how all of it is flushed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from endpoint.mrc.endpoint import Endpoint
from endpoint.nic.cq import CompletionQueue
from endpoint.nic.message import Message
from endpoint.nic.work import WorkQueue
from endpoint.roce.endpoint import RoceEndpoint
from endpoint.transport import CompletionStatus, MemoryRegion, QPState, QueueFull
from tests.helpers.transport.bench import Bench
from tests.helpers.transport.virtual_wire import Wire

REGION = MemoryRegion(0, 100, 1, 1, memoryview(bytearray(100)))


@pytest.mark.parametrize("make", [Endpoint, RoceEndpoint])
def test_only_signaled_writes_complete_and_all_arrive(make) -> None:
    wire = Wire(make=make)
    one, other = wire.transports["h0"], wire.transports["h1"]
    data, sink = bytearray(range(256)) * 256, bytearray(1 << 16)
    region, target = one.register_memory(data), other.register_memory(sink)
    cq = one.create_cq(64)
    qp, peer = one.create_qp(cq), other.create_qp(other.create_cq(64))
    qp.connect(peer.info(), 0)
    peer.connect(qp.info(), 0)
    for number in range(16):
        place = number * 4096
        qp.post_write(number, region, place, 4096, target.va + place, target.rkey, signaled=number % 4 == 3)
    wire.run(400 * wire.base_rtt_ns)
    assert [done.wr_id for done in cq.poll(64)] == [3, 7, 11, 15]
    assert sink == data
    assert qp.work.silenced == 12
    for _ in range(64):
        cq.reserve()  # the others' room is back


def test_a_signaled_completion_waits_for_the_unsignaled_writes_before_it() -> None:
    bench = Bench()
    for number, signaled in enumerate([False, True, True, False]):
        bench.qp_a.post_write(number, bench.region, 0, 4096, bench.target.va, bench.target.rkey, signaled=signaled)
    packets = bench.writes()
    bench.to_b(*packets[1:])
    bench.to_a(*bench.answers())
    assert bench.completions() == []
    bench.to_b(packets[0])
    bench.later(2)
    bench.to_b(*bench.out(bench.a))
    bench.to_a(*bench.answers())
    assert [done.wr_id for done in bench.completions()] == [1, 2]


def test_a_failure_is_told_of_an_unsignaled_write_and_flushes_the_rest_in_order() -> None:
    bench = Bench()
    rkeys = [bench.target.rkey, bench.target.rkey ^ 1, bench.target.rkey, bench.target.rkey]
    for number, rkey in enumerate(rkeys):
        bench.qp_a.post_write(number, bench.region, 0, 10, bench.target.va, rkey, signaled=number == 2)
    packets = bench.writes()
    bench.to_b(packets[0], packets[1])
    bench.to_a(*bench.answers())
    found = [(done.wr_id, done.status) for done in bench.completions()]
    assert found[-3:] == [
        (1, CompletionStatus.REMOTE_ACCESS_ERROR),
        (2, CompletionStatus.FLUSHED),
        (3, CompletionStatus.FLUSHED),
    ]


def test_a_qp_that_signals_all_heeds_no_flag() -> None:
    bench = Bench()
    qp, _ = bench.pair({"sq_sig_all": True})
    qp.post_write(5, bench.region, 0, 10, bench.target.va, bench.target.rkey, signaled=False)
    bench.to_b(*bench.writes())
    bench.to_a(*bench.answers())
    assert [done.wr_id for done in bench.completions()] == [5]


steps = st.lists(st.one_of(st.booleans(), st.integers(0, 30)), max_size=60)


@given(steps, st.booleans())
def test_in_whatever_order_writes_end_each_signaled_one_is_told_once_and_after_what_it_vouches_for(
    steps: list[bool | int], fails: bool
) -> None:
    """The model: a signaled write may be told of once it, and all unsignaled writes before it, are done."""
    cq = CompletionQueue(32)
    work = WorkQueue(1, cq, 16, 1)
    signaled: list[bool] = []
    open_: dict[int, Message] = {}
    done: set[int] = set()
    told: list[int] = []
    for step in steps:
        if isinstance(step, bool):
            try:
                work.reserve_write()
            except QueueFull:
                continue
            message = Message(len(signaled), REGION, 0, 1, 0, 0, None, 4096)
            message.signaled = step
            work.add_write(message)
            open_[message.index] = message
            signaled.append(step)
        elif open_:
            index = list(open_)[step % len(open_)]
            work.complete(open_.pop(index))
            done.add(index)
        told += [one.wr_id for one in cq.poll(64)]
        assert set(told) == {
            index
            for index in done
            if signaled[index] and all(signaled[before] or before in done for before in range(index))
        }
    assert len(told) == len(set(told))
    assert work.silenced == sum(not signaled[index] for index in done)
    if fails:
        work.flush(CompletionStatus.RETRY_EXCEEDED, None)
        last = [one.wr_id for one in cq.poll(64)]
        assert last == sorted(set(range(len(signaled))) - set(told) - {i for i in done if not signaled[i]})
    else:
        work.discard()
        assert cq.poll(64) == []
    for _ in range(32):
        cq.reserve()


def test_unsignaled_writes_take_room_until_they_are_done() -> None:
    bench = Bench(max_send_wr=2)
    for number in range(2):
        bench.qp_a.post_write(number, bench.region, 0, 10, bench.target.va, bench.target.rkey, signaled=False)
    with pytest.raises(QueueFull, match="2 writes posted"):
        bench.post()
    bench.to_b(*bench.writes())
    bench.to_a(*bench.answers())
    bench.post()
    assert bench.qp_a.state is QPState.RTS
