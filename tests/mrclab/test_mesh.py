"""Messages between two ranks over uverbs in memory: whatever is lost or early, all bytes arrive, once, in order."""

import random
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

import pytest
from hypothesis import given, settings, strategies as st

import mrclab
from benchmarks.rig.uverbs_rig import Rig, rig
from mrclab.errors import JobFailedError
from mrclab.mesh import mesh
from mrclab.mesh.engine import MeshEngine, Scope, ThreadedEngine
from mrclab.mesh.link import PAYLOAD_BYTES, SLOTS, Tag
from mrclab.mesh.mesh import Step
from tests.helpers.waiting import at_once

LIMIT_S = 60.0
SIZES = (0, 1, PAYLOAD_BYTES - 1, PAYLOAD_BYTES, PAYLOAD_BYTES + 1, 3 * PAYLOAD_BYTES, (SLOTS + 3) * PAYLOAD_BYTES)


@contextmanager
def engines(made: Rig) -> Iterator[list[MeshEngine]]:
    pair: list[MeshEngine] = [ThreadedEngine(mrclab.Context(name), rank) for rank, name in enumerate(made.names)]
    infos = [one.call(lambda one=one, rank=rank: one.mesh.add(1 - rank)) for rank, one in enumerate(pair)]
    for rank, one in enumerate(pair):
        one.call(lambda one=one, rank=rank: one.mesh.connect(1 - rank, infos[1 - rank]))
    for rank, one in enumerate(pair):
        one.call(lambda one=one, rank=rank: one.mesh.open([1 - rank]))
    try:
        yield pair
    finally:
        at_once([one.close for one in pair], LIMIT_S)


def send(one: MeshEngine, peer: int, tag: Tag, data: bytes):
    def fill(offset: int, place: memoryview) -> None:
        place[:] = data[offset : offset + len(place)]

    return one.start(f"send {tag}", one.mesh.send(peer, tag, len(data), fill), None, lambda failure: None)


def receive(one: MeshEngine, peer: int, tag: Tag, place: bytearray, name: str = "", scope: Scope | None = None):
    def sink(offset: int, chunk: memoryview) -> None:
        place[offset : offset + len(chunk)] = chunk

    def step() -> Step:
        yield from one.mesh.wait(one.mesh.expect(peer, tag, len(place), sink))

    return one.start(name or f"receive {tag}", step(), None, lambda failure: None, scope=scope)


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A silent rank is given up after 1.2 s instead of 20 s."""
    monkeypatch.setattr(mesh, "STALL_NS", 3_000_000)


@settings(max_examples=10)
@given(
    sizes=st.lists(st.sampled_from(SIZES), min_size=1, max_size=6),
    receive_first=st.booleans(),
    lose_every=st.sampled_from([0, 0, 37]),
    seed=st.integers(0, 99),
)
def test_messages_both_ways_arrive_as_sent(sizes, receive_first, lose_every, seed) -> None:
    rng = random.Random(seed)
    messages = [(rank, Tag(1, number), rng.randbytes(size)) for number, size in enumerate(sizes) for rank in range(2)]
    places = [bytearray(len(data)) for _, _, data in messages]
    with rig() as made, engines(made) as pair:
        made.lose_every = lose_every
        rng.shuffle(order := list(range(len(messages))))  # receives in another order than the messages come in
        tasks = []
        for what in ("receive", "send") if receive_first else ("send", "receive"):
            for number in order if what == "receive" else range(len(messages)):
                rank, tag, data = messages[number]
                if what == "send":
                    tasks.append((pair[rank], send(pair[rank], 1 - rank, tag, data)))
                else:
                    tasks.append((pair[1 - rank], receive(pair[1 - rank], rank, tag, places[number])))
        for one, task in tasks:
            one.finish(task, LIMIT_S)
        made.lose_every = 0
    assert [bytes(place) for place in places] == [data for _, _, data in messages]


def test_a_link_whose_other_end_is_not_connected_yet_is_not_written_to() -> None:
    """A group is in the making while a collective of an earlier one is quiet, and so asks for signs of life."""
    with rig() as made, engines(made) as pair:
        pair[0].call(lambda: pair[0].mesh.add(2))
        pair[0].call(lambda: pair[0].mesh.ping(pair[0].context.now_ns()))
        place = bytearray(5)
        waiting = receive(pair[1], 0, Tag(1, 0), place)
        send(pair[0], 1, Tag(1, 0), b"bytes")
        pair[1].finish(waiting, LIMIT_S)
    assert place == b"bytes"


def check_that_messages_pass(pair: list[MeshEngine], sequence: int) -> None:
    place = bytearray(5)
    waiting = receive(pair[1], 0, Tag(1, sequence), place)
    pair[0].finish(send(pair[0], 1, Tag(1, sequence), b"bytes"), LIMIT_S)
    pair[1].finish(waiting, LIMIT_S)
    assert place == b"bytes"


@pytest.mark.parametrize("size", [9, 11, 3 * PAYLOAD_BYTES])
@pytest.mark.parametrize("receive_first", [False, True])
def test_a_message_of_another_length_than_expected_fails_that_call_alone(size: int, receive_first: bool) -> None:
    with rig() as made, engines(made) as pair:
        place = bytearray(10)
        waiting = receive(pair[1], 0, Tag(1, 0), place) if receive_first else None
        pair[0].finish(send(pair[0], 1, Tag(1, 0), b"e" * size), LIMIT_S)
        waiting = waiting or receive(pair[1], 0, Tag(1, 0), place)
        with pytest.raises(JobFailedError, match=f"rank 0: a message of {size} bytes arrived where one of 10"):
            pair[1].finish(waiting, LIMIT_S)
        assert place == bytes(10)
        check_that_messages_pass(pair, 1)


SCOPE = Scope((1, 7), (0, 1))


def broken(say: str) -> Step:
    yield
    raise ArithmeticError(say)


@pytest.mark.parametrize("how", ["raises", "is late", "is refused"])
def test_a_call_that_fails_fails_alone_and_the_other_rank_is_told_why(how: str) -> None:
    with rig() as made, engines(made) as pair:
        place = bytearray(3 * PAYLOAD_BYTES)
        tag = Tag(1, 7 << 16)
        waiting = receive(pair[1], 0, tag, place, "all-reduce", SCOPE)
        if how == "is refused":
            pair[0].give_up(SCOPE, "2 and 2 are not 5")
        else:
            endless = (None for _ in iter(int, 1))
            if how == "is late":
                failing = pair[0].start("2 and 2 are not 5", endless, 0.1, scope=SCOPE)
            else:
                failing = pair[0].start("all-reduce", broken("2 and 2 are not 5"), None, scope=SCOPE)
            ended = " has not ended within its timeout" if how == "is late" else ""
            with pytest.raises(JobFailedError, match=f"2 and 2 are not 5{ended}"):
                pair[0].finish(failing, LIMIT_S)
        with pytest.raises(JobFailedError, match="all-reduce: rank 0 says: 2 and 2 are not 5") as told:
            pair[1].finish(waiting, LIMIT_S)
        assert str(told.value).endswith("; this rank waits for rank 0") is (how == "is late")
        late = receive(pair[1], 0, tag, place, "late", SCOPE)  # a rank that comes later learns it as well
        with pytest.raises(JobFailedError, match="late: rank 0 says: 2 and 2 are not 5"):
            pair[1].finish(late, LIMIT_S)
        send(pair[0], 1, tag, bytes([9]) * len(place))  # dropped
        check_that_messages_pass(pair, 8 << 16)
        assert place == bytes(len(place))


def test_a_rank_that_has_failed_says_the_first_cause(impatient: None) -> None:
    with rig() as made, engines(made) as pair:
        pair[1].call(pair[1].context.close)
        with pytest.raises(JobFailedError, match="rank 1 "):
            pair[0].finish(receive(pair[0], 1, Tag(1, 0), bytearray(1)), LIMIT_S)
        with pytest.raises(JobFailedError, match="this rank has failed: rank 1 "):
            pair[0].call(pair[0].context.query_device)


def test_a_rank_that_leaves_ends_who_waits_for_it(impatient: None) -> None:
    with rig() as made, engines(made) as pair:
        waiting = receive(pair[1], 0, Tag(1, 0), bytearray(10))
        leaving = threading.Thread(target=pair[0].close)
        leaving.start()
        with pytest.raises(JobFailedError, match="rank 0 has left the job"):
            pair[1].finish(waiting, LIMIT_S)
        pair[1].close()
        leaving.join(LIMIT_S)


@pytest.mark.parametrize(("error", "waits"), [(ZeroDivisionError(), False), (JobFailedError("rank 2 has left"), True)])
def test_a_rank_that_fails_by_itself_waits_for_no_other(
    error: Exception, waits: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`launch` names the rank that ends first: those which fail by another one have to end later."""
    monkeypatch.setattr(sys, "last_value", error, raising=False)
    with rig() as made, engines(made) as pair:
        goodbye = pair[0].start("goodbye", pair[0].mesh.goodbye(), 2.0)
        with pytest.raises(JobFailedError) if waits else nullcontext():
            pair[0].finish(goodbye, LIMIT_S)


def test_a_rank_that_fails_because_of_another_one_leaves_later(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "last_value", JobFailedError("rank 2 has left"), raising=False)
    with rig() as made, engines(made) as pair:
        began_ns = pair[0].context.now_ns()
        for one in pair:
            one.start("goodbye", one.mesh.goodbye(), None)
        at_once([one.close for one in pair], LIMIT_S)
        assert pair[0].context.now_ns() - began_ns >= 30 * pair[0].mesh.rtt_ns
