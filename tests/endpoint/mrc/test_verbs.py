"""The verbs: states, what is refused and how, completions, memory protection, limits."""

import re
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, strategies as st

from endpoint.mrc.endpoint import Endpoint
from endpoint.nic import wire
from endpoint.nic.attributes import VerbError
from endpoint.nic.config import ConfigError
from endpoint.nic.cq import CompletionQueue
from endpoint.nic.message import Message
from endpoint.nic.wire import Opcode
from endpoint.nic.work import WorkQueue
from endpoint.roce.endpoint import RoceEndpoint
from endpoint.transport import CompletionStatus, MemoryRegion, QPState, QueueFull
from tests.helpers.transport import Bench, Wire

SUCCESS, FLUSHED = CompletionStatus.SUCCESS, CompletionStatus.FLUSHED


# --- states ----------------------------------------------------------------------------------------------------


def test_an_unknown_peer_is_refused_with_the_known_ones() -> None:
    bench = Bench()
    qp = bench.b.create_qp(bench.cq_b)
    info = bench.b.create_qp(bench.cq_b).info()
    with pytest.raises(VerbError, match="no paths to 'h1'; destinations: h0"):
        qp.connect(info, 0)


def test_an_unknown_attribute_or_setting_is_refused_with_the_valid_ones() -> None:
    bench = Bench()
    with pytest.raises(VerbError, match=r"no attribute 'colour'; valid: mpr, "):
        bench.a.create_qp(bench.cq_a, colour=3)
    with pytest.raises(VerbError, match="selection is 5; it must be a string"):
        bench.a.create_qp(bench.cq_a, selection=5)
    with pytest.raises(ConfigError, match=r"no setting 'colour'; valid: jitter_ns, "):
        Bench(colour=3)


def test_going_to_error_flushes_everything_that_is_posted() -> None:
    bench = Bench()
    for number in range(3):
        bench.post(2)
        bench.qp_a.post_recv(100 + number)
    bench.qp_a.modify(QPState.ERROR, bench.now_ns)
    done = bench.completions()
    assert [(one.wr_id, one.status) for one in done] == [(n, FLUSHED) for n in (0, 1, 2, 100, 101, 102)]
    assert bench.writes() == []
    with pytest.raises(VerbError, match="is in ERROR"):
        bench.post()
    with pytest.raises(VerbError, match="is in ERROR"):
        bench.qp_a.post_recv(1)


def test_a_destroyed_qp_gives_its_room_back_and_no_completions() -> None:
    bench = Bench()
    cq = bench.a.create_cq(4)
    qp, peer = bench.a.create_qp(cq), bench.b.create_qp(bench.cq_b)
    qp.connect(peer.info(), 0)
    for number in range(4):
        qp.post_write(number, bench.region, 0, 10, bench.target.va, bench.target.rkey)
    bench.a.destroy_qp(qp, 0)
    assert cq.poll(10) == []
    for _ in range(4):
        cq.reserve()
    with pytest.raises(ValueError, match="destroyed before"):
        bench.a.destroy_qp(qp, 0)
    assert bench.writes() == []


def test_state_changes_are_events() -> None:
    bench = Bench()
    events = [(event.kind, event.fields["old"], event.fields["new"]) for event in iter(bench.a.next_event, None)]
    assert events == [("qp", "reset", "init"), ("qp", "init", "rtr"), ("qp", "rtr", "rts")]


# --- what post_write refuses -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"length": -1}, "length must be from 0 to 4294967295"),
        ({"length": 1 << 32}, "length must be from 0 to 4294967295"),
        ({"region": None}, "a write of 10 bytes needs a region"),
        ({"offset": -1}, "outside of a region"),
        ({"offset": 1 << 18}, "outside of a region"),
        ({"remote_va": -1}, "do not fit 64 bits"),
        ({"remote_va": (1 << 64) - 1}, "do not fit 64 bits"),
        ({"immediate": 1 << 32}, "does not fit 32 bits"),
    ],
)
def test_a_bad_write_is_refused_by_name_and_changes_nothing(change: dict[str, Any], message: str) -> None:
    bench = Bench()
    good: dict[str, Any] = {"region": bench.region, "offset": 0, "length": 10}
    good |= {"remote_va": bench.target.va, "rkey": bench.target.rkey}
    with pytest.raises(VerbError, match=message):
        bench.qp_a.post_write(1, **{**good, **change})
    assert bench.writes() == []


def test_a_region_that_is_not_registered_is_refused() -> None:
    bench = Bench()
    bench.a.deregister_memory(bench.region)
    with pytest.raises(VerbError, match="not registered here"):
        bench.post()
    with pytest.raises(ValueError, match="no region with lkey"):
        bench.a.deregister_memory(bench.region)


def test_a_region_deregistered_before_its_turn_is_a_local_protection_error_and_no_timer_is_wanted_any_more() -> None:
    bench = Bench()
    bench.post()
    bench.a.deregister_memory(bench.region)
    assert bench.writes() == []
    assert [done.status for done in bench.completions()] == [CompletionStatus.LOCAL_PROTECTION_ERROR]
    assert bench.qp_a.state is QPState.ERROR
    bench.later(1000)
    assert bench.a.next_timer_ns() is None


@pytest.mark.parametrize(
    ("change", "least"),
    [
        *(({name: value}, 0) for name, value in (("qpn", -1), ("qpn", 1 << 24), ("psn", 1 << 24))),
        *(({name: value}, 1) for name, value in (("mpr", 0), ("mpr", 65), ("max_write_imm", 0))),
    ],
)
def test_attributes_of_a_peer_that_no_peer_can_have_are_refused_by_name(change: dict[str, Any], least: int) -> None:
    bench = Bench()
    qp = bench.a.create_qp(bench.cq_a)
    ((name, value),) = change.items()
    with pytest.raises(VerbError, match=f"{name} is {value}; it must be from {least} to "):
        qp.connect(replace(bench.qp_b.info(), **change), bench.now_ns)
    assert qp.state is QPState.INIT
    assert not qp.joined


@pytest.mark.parametrize(
    "attribute", [{"mpr": 0}, {"max_write_imm": 0}, {"max_send_wr": 0}, {"max_recv_wr": -1}, {"psn": 1 << 24}]
)
def test_attributes_out_of_range_are_refused_by_name(attribute: dict[str, int]) -> None:
    bench = Bench()
    ((name, value),) = attribute.items()
    with pytest.raises(VerbError, match=f"{name} is {value}; it must be from "):
        bench.a.create_qp(bench.cq_a, **attribute)
    with pytest.raises(VerbError, match="mpr is '8'; it must be an integer"):
        bench.a.create_qp(bench.cq_a, mpr="8")


@pytest.mark.parametrize(
    ("setting", "rule"),
    [
        ({"timeout": 25}, "timeout is 25; it must be from 0 to 24"),
        ({"max_write_imm": 0}, "max_write_imm is 0; it must be from 1 to "),
        ({"max_send_wr": 0}, "max_send_wr is 0; it must be from 1 to "),
        ({"max_recv_wr": 0}, "max_recv_wr is 0; it must be from 1 to "),
        ({"events_max": -1}, "events_max is -1; it must be from 1 to "),
        ({"control_frames_max": 0}, "control_frames_max is 0; it must be from 1 to "),
        ({"evs_min_active_share": 1.5}, "evs_min_active_share is 1.5; it must be from 0"),
        ({"evs_min_active_share": float("nan")}, "evs_min_active_share is nan; it must be from 0"),
        ({"mpr": "8"}, "mpr is '8'; it must be an integer"),
        ({"timeout": 8.5}, "timeout is 8.5; it must be an integer"),
        ({"oor_nack": 1}, "oor_nack is 1; it must be true or false"),
        ({"congestion": "bbr"}, "no congestion control 'bbr'; valid: nscc, fixed_window"),
        ({"selection": "ecmp"}, "no path selection 'ecmp'; valid: mrc, oblivious, single_path"),
        ({"selection": 3}, "selection is 3; it must be a string"),
    ],
)
def test_a_setting_that_cannot_work_is_refused_when_the_nic_is_made(setting: dict[str, Any], rule: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(rule)):
        Bench(**setting)


def test_a_full_send_queue_and_a_full_completion_queue_ask_to_wait() -> None:
    bench = Bench(max_send_wr=2)
    bench.post()
    bench.post()
    with pytest.raises(QueueFull, match="2 writes posted"):
        bench.post()
    cq = bench.a.create_cq(1)
    qp = bench.a.create_qp(cq)
    qp.connect(bench.b.create_qp(bench.cq_b).info(), 0)
    qp.post_recv(1)
    with pytest.raises(QueueFull, match="poll it first"):
        qp.post_recv(2)


@pytest.mark.parametrize("buffer", [b"read-only", bytearray()])
def test_memory_that_cannot_be_written_is_not_registered(buffer: bytes) -> None:
    with pytest.raises(ValueError, match="writable, contiguous buffer"):
        Bench().a.register_memory(buffer)  # type: ignore[arg-type]


# --- memory protection -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("shift", [-1, (1 << 18) - 9, 1 << 18, 1 << 40])
def test_an_address_outside_of_the_region_is_refused(shift: int) -> None:
    refused(shift=shift)


@pytest.mark.parametrize("why", ["another key", "no remote write", "deregistered"])
def test_a_region_that_may_not_be_written_is_refused(why: str) -> None:
    refused(why)


def refused(why: str = "", shift: int = 0) -> None:
    """The write was refused: both ends in ERROR, the culprit named, nothing placed."""
    bench = Bench()
    target = bench.b.register_memory(bytearray(100), remote_write=False) if why == "no remote write" else bench.target
    key = target.rkey ^ (why == "another key")
    if why == "deregistered":
        bench.b.deregister_memory(target)
    bench.qp_a.post_write(0, bench.region, 0, 10, target.va + shift, key)
    bench.to_b(*bench.writes())
    assert bench.qp_b.state is QPState.ERROR
    bench.to_a(*bench.answers())
    assert bench.qp_a.state is QPState.ERROR
    assert [done.status for done in bench.completions()] == [CompletionStatus.REMOTE_ACCESS_ERROR]
    assert bench.sink == bytes(len(bench.sink))


def test_the_last_byte_of_a_region_can_be_written_and_no_more() -> None:
    bench = Bench()
    size = 1 << 18
    bench.qp_a.post_write(0, bench.region, 0, 1, bench.target.va + size - 1, bench.target.rkey)
    bench.to_b(*bench.writes())
    assert bench.sink[-1] == bench.source[0]
    assert bench.sink[:-1] == bytes(size - 1)


# --- writes with immediate -------------------------------------------------------------------------------------


def test_immediates_are_delivered_in_order_although_their_writes_arrive_in_any() -> None:
    bench = Bench()
    for number in range(4):
        bench.qp_b.post_recv(number)
        bench.post(2, immediate=number)
    sent = bench.writes()
    bench.to_b(*sent[2:])
    assert bench.received() == []
    bench.to_b(sent[1])
    assert bench.received() == []
    bench.to_b(sent[0])
    done = bench.received()
    assert [(one.wr_id, one.immediate, one.byte_len, one.opcode) for one in done] == [
        (n, n, 8192, "recv_imm") for n in range(4)
    ]


def test_plain_writes_complete_out_of_order_and_one_with_immediate_waits_for_all_before_it() -> None:
    bench = Bench(sack_threshold_bytes=0)
    bench.qp_b.post_recv(0)
    bench.post(1)
    bench.post(1)
    sent = bench.write(1, immediate=5)
    bench.to_b(sent[1], sent[2])
    bench.to_a(*bench.answers())
    assert [done.wr_id for done in bench.completions()] == [1]
    bench.to_b(sent[0])
    bench.to_a(*bench.answers())
    assert [(done.wr_id, done.opcode) for done in bench.completions()] == [(0, "write"), (2, "write_imm")]


def test_the_requester_keeps_to_the_peers_limit_of_writes_with_immediate() -> None:
    bench = Bench(remote={"max_write_imm": 2})
    for number in range(5):
        bench.qp_b.post_recv(number)
        bench.post(1, immediate=number)
    sent = bench.writes()
    assert len(sent) == 2
    bench.to_b(*sent)
    bench.to_a(*bench.answers())
    assert len(bench.writes()) == 2


def test_more_writes_with_immediate_than_agreed_end_the_connection() -> None:
    bench = Bench(remote={"max_write_imm": 2})
    bench.qp_a.requester._confirmations.max_write_imm = 100
    for number in range(5):
        bench.post(1, immediate=number)
    bench.to_b(*bench.writes()[1:])
    assert bench.qp_b.state is QPState.ERROR
    assert "more than 2 writes with immediate" in bench.qp_b.cause


# --- only writes -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("opcode", ["send", "send_with_imm", "rdma_read", "atomic_cmp_and_swp", "atomic_fetch_and_add"])
def test_every_other_verb_is_refused_by_name(opcode: str) -> None:
    bench = Bench()
    with pytest.raises(VerbError, match=f"^{opcode} is not offered.*valid: rdma_write, rdma_write_with_imm"):
        bench.qp_a.post_send(opcode, 1, bench.region, 0, 10, bench.target.va, bench.target.rkey)


def test_the_two_writes_can_be_posted_by_opcode() -> None:
    bench = Bench()
    request = (bench.region, 0, 10, bench.target.va, bench.target.rkey)
    bench.qp_b.post_recv(1)
    bench.qp_a.post_send("rdma_write", 1, *request)
    bench.qp_a.post_send("rdma_write_with_imm", 2, *request, immediate=7)
    with pytest.raises(VerbError, match="rdma_write takes no immediate"):
        bench.qp_a.post_send("rdma_write", 3, *request, immediate=7)
    with pytest.raises(VerbError, match="rdma_write_with_imm needs an immediate"):
        bench.qp_a.post_send("rdma_write_with_imm", 3, *request)
    bench.to_b(*bench.writes())
    bench.to_a(*bench.answers())
    assert [done.opcode for done in bench.completions()] == ["write", "write_imm"]


@pytest.mark.parametrize("opcode", [0x04, 0x0A, 0x0C, 0xC0, 0xC4, 0xCC, 0xD3, 0xDF, 0xFF])
def test_any_other_opcode_is_counted_and_dropped(opcode: int) -> None:
    bench = Bench()
    (sent,) = bench.write(1)
    changed = sent.with_bytes({sent.outside.bth: bytes([opcode])})
    bench.b.receive(changed.port, [changed.frame], bench.now_ns)
    assert bench.b.counters()["drops"] == {"opcode": 1}
    assert bench.sink[:4096] == bytes(4096)
    assert bench.qp_b.state is QPState.RTS


@pytest.mark.parametrize(
    ("opcode", "length"),
    [
        (Opcode.WRITE_ONLY_IMM, 4097), (Opcode.WRITE_ONLY_IMM, 4096 + 100), (Opcode.WRITE_ONLY_IMM, 0),
        (Opcode.WRITE_ONLY_IMM, 99), (Opcode.WRITE_LAST_IMM, 99), (Opcode.WRITE_LAST_IMM, 4096 + 101),
    ],
)  # fmt: skip
def test_a_last_packet_that_does_not_fit_the_length_of_its_message_is_an_unexpected_event(opcode, length) -> None:
    bench = Bench()
    bench.qp_b.post_recv(0)
    bench.qp_a.post_write(0, bench.region, 0, 100, bench.target.va, bench.target.rkey, 7)
    (sent,) = bench.writes()
    bench.to_b(sent.with_bytes({sent.outside.bth: bytes([opcode]), sent.at + 4 + 12: length.to_bytes(4, "big")}))
    (nack,) = bench.answers()
    assert nack.neth.reason == wire.NackReason.UNEXP_EVENT
    assert [done.status for done in bench.received()] == [FLUSHED]
    assert bench.sink == bytes(len(bench.sink))


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
def test_in_whatever_order_writes_end_each_signaled_one_is_told_once_after_what_it_vouches_for(steps, fails) -> None:
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
