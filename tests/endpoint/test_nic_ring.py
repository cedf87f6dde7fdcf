"""A port's receive ring in Python and in C: one does what the other does, and both what the kernel's layout says."""

import os
import socket
import struct
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given, strategies as st

from endpoint.packet_sockets import ring
from tests.helpers.transport import native_codec

BLOCK, BLOCKS, SLOT = 4096, 2, 1024
SLOTS = BLOCK // SLOT * BLOCKS
USER = 1  # TP_STATUS_USER of linux/if_packet.h


@pytest.fixture(scope="module")
def in_c(tmp_path_factory: pytest.TempPathFactory) -> Any:
    module = native_codec.load(tmp_path_factory.mktemp("ring"), native_codec.RING)
    if module is None:
        pytest.skip("needs a C compiler and Python's headers")
    return module.FrameRing


class Kernel:
    """Writes frames as TPACKET_V2 does: struct tpacket2_hdr, and the frame's Ethernet header 66 bytes after it."""

    def __init__(self, kind: Callable[..., Any], descriptor: int) -> None:
        self.memory = bytearray(BLOCK * BLOCKS)
        self.view = memoryview(self.memory)
        self.ring = kind(descriptor, self.view, BLOCK, BLOCKS, SLOT)
        self._next = 0

    def put(self, frame: bytes, at_ns: int = 0) -> bool:
        """False: the ring is full."""
        start = self._next % SLOTS * SLOT
        if self.memory[start] & USER:
            return False
        seconds, nanoseconds = divmod(at_ns, 1_000_000_000)
        struct.pack_into("=IIIHHII", self.memory, start, USER, len(frame), len(frame), 66, 80, seconds, nanoseconds)
        self.memory[start + 66 : start + 66 + len(frame)] = frame
        self._next += 1
        return True

    def close(self) -> None:
        self.ring.close()
        self.view.release()


@pytest.fixture(params=["python", "c"])
def kernel(request: pytest.FixtureRequest) -> Iterator[Kernel]:
    kind = ring.FrameRing if request.param == "python" else request.getfixturevalue("in_c")
    here, there = socket.socketpair(type=socket.SOCK_DGRAM)
    with here, there:
        here.setblocking(False)
        made = Kernel(kind, here.fileno())
        made.there = there  # type: ignore[attr-defined]
        yield made
        made.close()


def taken(kernel: Kernel, limit: int = 64) -> list[bytes]:
    return [bytes(frame) for frame in kernel.ring.receive(limit)]


def test_frames_come_in_order_around_the_end_of_the_ring_and_slots_are_given_back(kernel: Kernel) -> None:
    sent = [os.urandom(14 + 37 * number) for number in range(3 * SLOTS)]
    for first in range(0, len(sent), 3):
        some = sent[first : first + 3]
        assert all(kernel.put(frame) for frame in some)
        assert taken(kernel) == some
        kernel.ring.release()
    assert taken(kernel) == []
    assert kernel.ring.counts()[3:] == (len(sent), sum(map(len, sent)))


def test_no_more_than_the_limit_and_no_frame_twice_while_slots_are_held(kernel: Kernel) -> None:
    sent = [bytes([number]) * 60 for number in range(SLOTS)]
    assert all(kernel.put(frame) for frame in sent)
    assert not kernel.put(b"one too many")
    assert taken(kernel, 3) == sent[:3]
    assert taken(kernel) == sent[3:]
    assert taken(kernel) == []
    assert kernel.ring.oldest_ns() is None
    assert not kernel.put(b"still held")
    kernel.ring.release()
    assert kernel.put(b"room again")
    assert taken(kernel) == [b"room again"]


def test_the_oldest_frame_tells_when_it_arrived(kernel: Kernel) -> None:
    assert kernel.ring.oldest_ns() is None
    kernel.put(b"first", 1_795_945_284_472_477_945)
    kernel.put(b"second", 1_795_945_284_472_477_999)
    assert kernel.ring.oldest_ns() == 1_795_945_284_472_477_945


def test_frames_are_views_of_the_ring(kernel: Kernel) -> None:
    kernel.put(b"before")
    (frame,) = kernel.ring.receive(1)
    assert isinstance(frame, memoryview)
    kernel.memory[66:72] = b"after!"
    assert bytes(frame) == b"after!"
    frame.release()


def test_frames_leave_by_the_socket_and_those_it_refuses_are_counted(kernel: Kernel) -> None:
    there: socket.socket = kernel.there  # type: ignore[attr-defined]
    kernel.ring.send(b"a frame")
    assert there.recv(100) == b"a frame"
    sent = 1
    while not kernel.ring.counts()[2]:  # until the peer's queue is full: it never waits
        kernel.ring.send(bytes(1000))
        sent += 1
    assert kernel.ring.counts()[:3] == (sent - 1, 7 + 1000 * (sent - 2), 1)


def test_a_ring_that_the_memory_does_not_hold_is_refused(in_c: Any) -> None:
    with pytest.raises(ValueError, match="the memory must hold all blocks"):
        in_c(0, memoryview(bytearray(BLOCK)), BLOCK, BLOCKS, SLOT)
    with pytest.raises(ValueError, match="a block at least a slot"):
        in_c(0, memoryview(bytearray(BLOCK)), BLOCK, 1, 2 * BLOCK)
    closed = in_c(0, memoryview(bytearray(BLOCK)), BLOCK, 1, SLOT)
    closed.close()
    with pytest.raises(ValueError, match="the ring is closed"):
        closed.receive(1)


WORDS = st.integers(0, 2**32 - 1)
STEPS = st.one_of(
    st.tuples(st.just("put"), st.binary(max_size=SLOT - 66), WORDS),
    st.tuples(st.just("write over"), st.integers(0, SLOTS - 1), st.lists(WORDS, min_size=7, max_size=7)),
    st.tuples(st.just("receive"), st.integers(-1, 3 * SLOTS)),
    st.tuples(st.sampled_from(["release", "oldest_ns"])),
)


@given(st.lists(STEPS, max_size=40))
def test_whatever_stands_in_a_slot_both_rings_say_the_same_and_stay_within_it(in_c: Any, steps: list[Any]) -> None:
    """Words written over a slot's header: any status, lengths and time."""
    both = [Kernel(kind, -1) for kind in (ring.FrameRing, in_c)]
    for name, *words in steps:
        said: list[Any] = []
        for one in both:
            if name == "put":
                said.append(one.put(*words))
            elif name == "write over":
                struct.pack_into("=7I", one.memory, words[0] * SLOT, *words[1])
            elif name == "receive":
                said.append(taken(one, *words))
                assert all(len(frame) <= SLOT - 66 for frame in said[-1])
            else:
                said.append(getattr(one.ring, name)())
        assert said[1:] == said[:-1]
    assert both[0].ring.counts() == both[1].ring.counts()
    for one in both:
        one.close()
