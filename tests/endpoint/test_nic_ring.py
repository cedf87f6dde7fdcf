"""The parts of the NIC driver: the filter of frames, the carrier, the ring of packets, and the loop."""

import fcntl
import os
import resource
import socket
import struct
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pytest
from hypothesis import given, strategies as st

from common.linux import bpf
from endpoint import prober
from endpoint.frame_filter import udp_over_ipv6
from endpoint.packet_sockets import ring
from endpoint.packet_sockets.driver import NetworkInterface, parse
from endpoint.packet_sockets.loop import BUSY, IDLE, NEVER, Loop
from endpoint.virtual_host import is_probe
from tests.helpers.transport import native_codec

PROGRAM = udp_over_ipv6((4791, 4971), 7, 3)
IPV6 = b"\x60" + bytes(5)


def packet(*, inner: bool, port: int, ethertype: int = 0x86DD, protocol: int = 17) -> bytes:
    ethernet = bytes(12) + ethertype.to_bytes(2, "big")
    last = IPV6 + bytes([protocol, 64]) + bytes(32)
    headers = IPV6 + bytes([41, 64]) + bytes(32) + last if inner else last
    return ethernet + headers + bytes(2) + port.to_bytes(2, "big") + bytes(4)


def test_both_ports_match_with_and_without_encapsulation():
    for inner in (False, True):
        for port in (4791, 4971):
            assert bpf.run(PROGRAM, packet(inner=inner, port=port)) == 7
        assert bpf.run(PROGRAM, packet(inner=inner, port=4792)) == 3


def test_other_ethertypes_and_protocols_do_not_match():
    assert bpf.run(PROGRAM, packet(inner=False, port=4791, ethertype=0x0800)) == 3
    assert bpf.run(PROGRAM, packet(inner=True, port=4791, protocol=6)) == 3
    assert bpf.run(PROGRAM, packet(inner=False, port=4791, protocol=6)) == 3


@given(st.binary(max_size=200))
def test_any_bytes_end_in_one_of_the_two_verdicts_or_in_a_short_load(frame):
    assert bpf.run(PROGRAM, frame) in (7, 3, 0)


@given(
    st.booleans(), st.sampled_from([prober.UDP_PORT, 4791]), st.sampled_from([17, 6]), st.sampled_from([0x86DD, 0x800]),
    st.integers(0, 60),
)  # fmt: skip
def test_virtual_time_takes_the_same_frames_for_the_probers(inner, port, protocol, ethertype, cut):
    whole = packet(inner=inner, port=port, protocol=protocol, ethertype=ethertype)
    frame = whole[: len(whole) - cut]
    assert is_probe(frame) is (bpf.run(prober.FRAMES, frame) == 0x40000)


@given(st.binary(max_size=40))
def test_virtual_time_takes_no_other_bytes_for_the_probers(data):
    frame = bytes(12) + b"\x86\xdd" + data + prober.UDP_PORT.to_bytes(2, "big") * 40
    assert is_probe(frame) is (bpf.run(prober.FRAMES, frame) == 0x40000)


def test_tc_is_given_the_number_of_instructions_first():
    count, *instructions = bpf.tc_bytecode(PROGRAM).split(",")
    assert int(count) == len(instructions) == len(PROGRAM)


def test_frames_of_flow_control_match_only_where_they_are_asked_for():
    pause = bytes.fromhex("0180c200000102100000000188080101") + bytes(44)
    assert bpf.run(PROGRAM, pause) == 3
    assert bpf.run(udp_over_ipv6((4791,), 7, 3, mac_control=True), pause) == 7
    assert bpf.run(udp_over_ipv6((4791,), 7, 3, mac_control=True), packet(inner=False, port=4792)) == 3


NEWLINK, DELLINK, UP, LOWER_UP = 16, 17, 1, 1 << 16


def message(kind: int, name: bytes, flags: int, index: int = 7) -> bytes:
    attribute = struct.pack("HH", 4 + len(name) + 1, 3) + name + b"\0"
    attribute += bytes(-len(attribute) % 4)
    other = struct.pack("HHI", 8, 4, 1500)  # IFLA_MTU comes first, so that skipping is tested
    body = struct.pack("BxHiII", 0, 1, index, flags, 0) + other + attribute
    return struct.pack("IHHII", 16 + len(body), kind, 0, 0, 0) + body


def test_a_link_is_up_only_with_both_flags_and_gone_when_deleted():
    data = b"".join(
        (
            message(NEWLINK, b"h0-p0", UP | LOWER_UP),
            message(NEWLINK, b"h0-p1", UP),
            message(NEWLINK, b"h0-p2", LOWER_UP),
            message(DELLINK, b"h0-p3", UP | LOWER_UP),
            message(3, b"done", UP | LOWER_UP),
        )
    )
    assert list(parse(data)) == [
        NetworkInterface("h0-p0", 7, True),
        NetworkInterface("h0-p1", 7, False),
        NetworkInterface("h0-p2", 7, False),
        NetworkInterface("h0-p3", 7, False),
    ]


@given(st.binary(max_size=300), st.integers(0, 51))
def test_a_torn_message_is_no_link_and_whole_ones_before_it_are_read(data, cut):
    whole = message(NEWLINK, b"h0-p0", UP)
    assert next(parse(whole + data)) == NetworkInterface("h0-p0", 7, False)
    assert list(parse(whole + whole[:cut])) == [NetworkInterface("h0-p0", 7, False)]
    assert len(list(parse(whole[:cut] + data))) <= (cut + len(data)) // 32  # of 32 bytes or more each


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


class Host:
    """A host without ports: moves frames for a number of turns, and then waits for its deadline."""

    def __init__(self, busy_turns: int = 0, error: Exception | None = None) -> None:
        self.deadline_ns = NEVER
        self.turns = 0
        self.failures: list[Exception] = []
        self.late: list[int] = []
        self._busy_turns = busy_turns
        self._error = error

    def data_descriptors(self) -> Iterable[int]:
        return ()

    def turn(self) -> int:
        self.turns += 1
        if self._error is not None:
            raise self._error
        return BUSY if self.turns <= self._busy_turns else IDLE

    def note_lateness(self, before_ns: int, now_ns: int, idle_ns: int, slept: bool, moderation_ns: int) -> None:
        self.late.append(idle_ns)

    def woken(self, descriptor: int) -> None:
        raise AssertionError("there are no descriptors")

    def fail(self, error: Exception) -> None:
        self.failures.append(error)


@pytest.fixture
def loop() -> Iterator[Loop]:
    made = Loop()
    yield made
    made.close()


def stop_after(loop: Loop, host: Host, turns: int) -> None:
    """End the loop from this turn of a host."""
    usual = host.turn

    def turn() -> int:
        if host.turns + 1 == turns:
            loop.stop()
        return usual()

    host.turn = turn  # type: ignore[method-assign]


def test_a_host_whose_turn_raises_is_told_and_the_other_goes_on(loop: Loop) -> None:
    broken, sound = Host(error=ValueError("broken")), Host()
    sound.deadline_ns = 0  # always due: the loop does not wait

    def fail(error: Exception) -> None:
        broken.failures.append(error)
        loop.remove(broken)

    broken.fail = fail  # type: ignore[method-assign]
    loop.add(broken)
    loop.add(sound)
    stop_after(loop, sound, 5)
    loop.run()
    assert [str(error) for error in broken.failures] == ["broken"]
    assert broken.turns == 1
    assert sound.turns == 5
    assert not sound.failures


def test_the_loop_wakes_for_the_first_deadline_of_any_host(loop: Loop) -> None:
    early, late = Host(), Host()
    now_ns = time.monotonic_ns()
    late.deadline_ns, early.deadline_ns = now_ns + 60_000_000_000, now_ns + 20_000_000
    loop.add(late)
    loop.add(early)
    stop_after(loop, early, 2)
    loop.run()
    assert time.monotonic_ns() >= early.deadline_ns
    assert late.turns == 2


def test_after_a_turn_that_moved_frames_the_loop_sleeps_for_the_moderation() -> None:
    loop = Loop(moderation_ns=20_000_000)
    try:
        host = Host(busy_turns=2)
        loop.add(host)
        stop_after(loop, host, 3)
        began_ns = time.monotonic_ns()
        loop.run()
    finally:
        loop.close()
    assert time.monotonic_ns() - began_ns >= 40_000_000


def test_what_is_called_soon_runs_when_the_callback_that_asked_is_over(loop: Loop) -> None:
    read, write = os.pipe()
    order: list[str] = []

    def soon() -> None:
        order.append("soon")
        loop.stop()

    def heard() -> None:
        os.read(read, 1)
        loop.call_soon(soon)
        order.append("callback")

    loop.add_reader(read, heard)
    os.write(write, b"x")
    loop.run()
    loop.remove_reader(read)
    os.close(read)
    os.close(write)
    assert order == ["callback", "soon"]


BEYOND = 1_100
"""A descriptor that `select` does not take."""


@pytest.fixture(autouse=True)
def room() -> Iterator[None]:
    """Let this process open descriptors beyond the 1,024 of `select`."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard <= 2 * BEYOND:
        pytest.skip(f"at most {hard} descriptors are allowed here")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 2 * BEYOND), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def moved(descriptor: int) -> int:
    """The same file under a number above 1,023; the old number is closed."""
    beyond = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, BEYOND)
    os.close(descriptor)
    return beyond


def test_the_loop_serves_a_descriptor_above_1023_until_it_is_removed() -> None:
    loop = Loop()
    here, there = socket.socketpair()
    beyond = moved(here.detach())
    os.set_blocking(beyond, False)
    written, heard = 0, 0

    def write() -> None:
        nonlocal written
        if written < 10_000_000:
            written += os.write(beyond, bytes(1_000_000))
        else:
            loop.remove_writer(beyond)

    def hear() -> None:
        nonlocal heard
        heard += len(there.recv(1_000_000))
        if heard == written >= 10_000_000:
            there.send(b"all")

    def end() -> None:
        assert os.read(beyond, 100) == b"all"
        loop.remove_reader(beyond)
        loop.stop()

    try:
        loop.add_reader(beyond, end)
        loop.add_writer(beyond, write)
        loop.add_reader(there.fileno(), hear)
        loop.run()
        os.close(beyond)
        loop.remove_reader(beyond)  # a second time, when it is closed
    finally:
        loop.remove_reader(there.fileno())
        there.close()
        loop.close()
    assert heard == written >= 10_000_000
