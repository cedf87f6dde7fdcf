"""Messages between two ranks over uverbs in memory: whatever is lost or early, all bytes arrive, once, in order."""

import random
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mrclab
from benchmarks.rig.uverbs_rig import Rig, rig
from mrclab.errors import JobFailedError
from mrclab.mesh import mesh
from mrclab.mesh.engine import MeshEngine, ThreadedEngine
from mrclab.mesh.link import PAYLOAD_BYTES, SLOTS, Tag
from mrclab.mesh.mesh import Step

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
        threads = [threading.Thread(target=one.close) for one in pair]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(LIMIT_S)
        assert not any(thread.is_alive() for thread in threads)


def send(one: MeshEngine, peer: int, tag: Tag, data: bytes):
    def fill(offset: int, place: memoryview) -> None:
        place[:] = data[offset : offset + len(place)]

    return one.start(f"send {tag}", one.mesh.send(peer, tag, len(data), fill), None, lambda failure: None)


def receive(one: MeshEngine, peer: int, tag: Tag, place: bytearray):
    def sink(offset: int, chunk: memoryview) -> None:
        place[offset : offset + len(chunk)] = chunk

    def step() -> Step:
        yield from one.mesh.wait(one.mesh.expect(peer, tag, len(place), sink))

    return one.start(f"receive {tag}", step(), None, lambda failure: None)


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


def test_a_message_of_another_length_than_expected_ends_both(impatient: None) -> None:
    with rig() as made, engines(made) as pair:
        waiting = receive(pair[1], 0, Tag(1, 0), bytearray(10))
        send(pair[0], 1, Tag(1, 0), b"elevenbytes")
        with pytest.raises(JobFailedError, match="a message of 11 bytes arrived where one of 10 bytes was expected"):
            pair[1].finish(waiting, LIMIT_S)
        other = receive(pair[0], 1, Tag(1, 1), bytearray(1))
        with pytest.raises(JobFailedError, match=r"rank 1 (cannot be reached|has not answered)"):
            pair[0].finish(other, LIMIT_S)


def test_a_rank_that_leaves_ends_who_waits_for_it(impatient: None) -> None:
    with rig() as made, engines(made) as pair:
        waiting = receive(pair[1], 0, Tag(1, 0), bytearray(10))
        leaving = threading.Thread(target=pair[0].close)
        leaving.start()
        with pytest.raises(JobFailedError, match="rank 0 has left the job"):
            pair[1].finish(waiting, LIMIT_S)
        pair[1].close()
        leaving.join(LIMIT_S)


def test_a_task_that_has_no_time_left_fails_by_its_name(impatient: None) -> None:
    with rig() as made, engines(made) as pair:
        place = bytearray(1)
        step = (None for _ in iter(int, 1))  # never ends
        task = pair[0].start("all-reduce", step, 0.2, lambda failure: None)
        with pytest.raises(JobFailedError, match="all-reduce has not ended within its timeout"):
            pair[0].finish(task, LIMIT_S)
        assert place == b"\0"
