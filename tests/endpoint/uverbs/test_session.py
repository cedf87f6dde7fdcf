"""A program's session without a socket: in which order it tells what, and that whoever has armed a queue is woken."""

import ctypes
import errno
import json
import os
from collections import deque
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from benchmarks.rig.profiles import profile as profile_data
from common import uverbs
from endpoint import factory, profile as profiles
from endpoint.transport import Completion, CompletionStatus
from endpoint.uverbs.channel import Channel, make_channel
from endpoint.uverbs.queues import Completions, GuestQp
from endpoint.uverbs.refusal import RefusedError
from endpoint.uverbs.regions import SECRET_BYTES, ProgramMemory
from endpoint.uverbs.session import Session
from endpoint.uverbs.shared_memory import make_shared


def test_a_request_after_an_error_is_flushed_behind_those_before_it() -> None:
    """All in one go of the agent: nothing is told in between, and yet completions keep the order of requests."""
    profile = profiles.parse(json.loads(json.dumps(profile_data(0))))
    nic: Any = factory.make("mrc", profile, 1, {}, 0)
    session = Session(
        nic,
        hosts={name: str(one.address) for name, one in profile.destinations.items()},
        about=dict,
        make_memory=make_shared,
        make_channel=make_channel,
    )

    def ask(op: str, **arguments: Any) -> dict[str, Any]:
        session.receive(json.dumps({"id": 1, "op": op, **arguments}).encode(), 0)
        answer = session.outgoing()
        assert answer is not None
        if answer.descriptor is not None:
            os.close(answer.descriptor)
        found: dict[str, Any] = json.loads(answer.data)
        assert found["ok"], found
        result: dict[str, Any] = found["result"]
        return result

    def write(wr_id: int) -> None:
        session.receive(uverbs.pack_requests([uverbs.Request(wr_id, 0, 0, qpn, 64, lkey, 1, 0, uverbs.WRITE)]), 0)

    ask("open", version=uverbs.VERSION, program="test")
    lkey = ask("reg_mr", length=4096, remote_write=False)["lkey"]
    cq, other = ask("create_cq", cqe=64)["cq"], ask("create_cq", cqe=64)["cq"]
    peer = next(iter(profile.destinations.values()))
    qpn = ask("create_qp", cq=cq, recv_cq=other, attributes={"max_send_wr": 8, "max_recv_wr": 8})["qpn"]
    known = {"peer": {"address": str(peer.address), "qpn": 9, "psn": 1}}
    for state in ("init", "rtr", "rts"):
        ask("modify_qp", qpn=qpn, state=state, attributes={}, **(known if state == "rtr" else {}))
    write(1)
    write(2)
    failed = {"id": 1, "op": "modify_qp", "qpn": qpn, "state": "error", "attributes": {}}
    session.receive(json.dumps(failed).encode(), 0)
    write(3)
    session.outgoing()  # the answer
    told = session.outgoing()
    assert told is not None
    assert [row.wr_id for row in uverbs.unpack_completions(told.data)] == [1, 2, 3]
    session.close(0)


@pytest.mark.parametrize(
    ("number", "said"),
    [
        (errno.EMFILE, "Too many open files (EMFILE)"),
        (errno.ENOSPC, "No space left on device (ENOSPC)"),
        (errno.EXDEV, "Invalid cross-device link (EIO)"),  # an errno that programs do not expect of a NIC
        (None, "no memory here (EIO)"),
    ],
)
def test_an_error_of_the_kernel_is_answered_with_its_errno(number: int | None, said: str) -> None:
    profile = profiles.parse(json.loads(json.dumps(profile_data(0))))
    nic: Any = factory.make("mrc", profile, 1, {}, 0)

    def make_memory(length: int) -> tuple[int, memoryview]:
        raise OSError("no memory here") if number is None else OSError(number, os.strerror(number))

    session = Session(nic, hosts={}, about=dict, make_memory=make_memory, make_channel=make_channel)
    for request in ({"op": "open", "version": uverbs.VERSION, "program": "test"}, {"op": "reg_mr", "length": 4096}):
        session.receive(json.dumps({"id": 1, **request}).encode(), 0)
    session.outgoing()  # the answer to open
    told = session.outgoing()
    assert told is not None
    assert json.loads(told.data) == {"id": 1, "ok": False, "error": said}
    session.close(0)


def test_existing_memory_of_another_users_process_is_refused() -> None:
    """The memory of a set-uid program is root's, for any user who starts it and with any secret in it."""
    secret = ctypes.create_string_buffer(os.urandom(SECRET_BYTES), SECRET_BYTES)
    at = ctypes.addressof(secret)
    own = ProgramMemory(os.getpid, secret.raw, os.geteuid())
    assert own.sink(at, at)(0, memoryview(b"mine"))
    assert secret.raw.startswith(b"mine")
    other = ProgramMemory(os.getpid, secret.raw, os.geteuid() + 1)
    with pytest.raises(RefusedError, match="has the rights of another user"):
        other.sink(at, at)
    own.close()


def test_the_memory_of_a_process_that_cannot_be_opened_is_refused_with_an_errno() -> None:
    memory = ProgramMemory(lambda: 1 << 30, bytes(SECRET_BYTES), os.geteuid())  # beyond any process number
    with pytest.raises(RefusedError, match=r"cannot be opened: No such file or directory \(EIO\); registering"):
        memory.sink(0, 0)


NUMBER = 3


class Queue:
    """The transport's queue."""

    def __init__(self) -> None:
        self.done: deque[Completion] = deque()

    def poll(self, limit: int = 16) -> list[Completion]:
        return [self.done.popleft() for _ in range(min(limit, len(self.done)))]


class World:
    """The agent's side, the two sockets between, and a program that reads either of them when it likes."""

    def __init__(self) -> None:
        self.room = 0
        self.events: deque[int] = deque()
        self.rows: deque[uverbs.CompletionRow] = deque()
        self.queue: Any = Queue()
        self.channel = Channel(self.notify, lambda: None)
        self.completions = Completions(NUMBER, self.queue, 1000, self.channel)
        self.on_the_way: deque[uverbs.Arm] = deque()
        self.seen = 0
        self.unseen_solicited = 0
        """Solicited or failed completions that the program has not seen."""
        self.asked: uverbs.Arm | None = None
        """The last arming, while no event has come since."""

    def notify(self, event: bytes) -> bool:
        if len(self.events) >= self.room:
            return False
        self.events.append(uverbs.unpack_event(event))
        return True

    def complete(self, solicited: bool, failed: bool) -> None:
        status = CompletionStatus.FLUSHED if failed else CompletionStatus.SUCCESS
        self.queue.done.append(Completion(1, 9, status, "recv_imm", 0, 7, solicited))
        self.unseen_solicited += solicited or failed

    def agent(self) -> None:
        """One turn: note what completed, make events, send what the sockets take, read one arming."""
        guests: dict[int, GuestQp] = {}
        self.completions.drain(guests)
        self.channel.flush()
        if self.on_the_way:
            arm = self.on_the_way.popleft()
            self.completions.armed.arm(arm.seen, arm.solicited)

    def send_rows(self, count: int) -> None:
        self.rows += self.completions.take(count)

    def poll(self) -> None:
        while self.rows:
            self.rows.popleft()
            self.seen += 1

    def arm(self, solicited: bool) -> None:
        self.asked = uverbs.Arm(NUMBER, self.seen, solicited)
        self.on_the_way.append(self.asked)


steps = st.lists(
    st.one_of(
        st.tuples(st.just("complete"), st.booleans(), st.booleans()),
        st.tuples(st.sampled_from(["agent", "poll", "take"])),
        st.tuples(st.just("rows"), st.integers(1, 4)),
        st.tuples(st.just("arm"), st.booleans()),
        st.tuples(st.just("room"), st.integers(0, 3)),
    ),
    max_size=60,
)


@settings(max_examples=500)
@given(steps)
def test_whoever_has_armed_and_not_seen_all_is_woken(steps: list[tuple[Any, ...]]) -> None:
    world = World()
    for name, *given_ in steps:
        if name == "complete":
            world.complete(*given_)
        elif name == "rows":
            world.send_rows(*given_)
        elif name == "arm":
            world.arm(*given_)
        elif name == "room":
            world.room = given_[0]
        elif name == "take":
            if world.events:
                world.events.popleft()
                world.asked = None
        else:
            getattr(world, name)()
    # From here on the program sleeps on its channel, which has room, and the agent goes on turning.
    world.room = 1 << 20
    for _ in range(len(world.on_the_way) + 2):
        world.agent()
    if world.asked is not None:
        due = world.completions.armed.solicited if world.asked.solicited else world.completions.armed.produced
        if due > world.seen:
            assert NUMBER in world.events
    assert world.completions.armed.produced >= world.seen


@given(st.lists(st.tuples(st.booleans(), st.booleans()), max_size=20), st.booleans())
def test_an_arming_brings_one_event_and_only_for_what_it_asked(done: list[tuple[bool, bool]], only: bool) -> None:
    world = World()
    world.room = 100
    world.arm(only)
    world.agent()
    for solicited, failed in done:
        world.complete(solicited, failed)
        world.agent()
    wanted = [solicited or failed or not only for solicited, failed in done]
    assert len(world.events) == min(1, sum(wanted))


def test_a_full_channel_owes_one_event_a_queue() -> None:
    world = World()
    for _ in range(50):
        world.complete(True, False)
        world.arm(False)
        world.agent()
        world.agent()
    assert not world.events
    world.room = 100
    world.agent()
    assert list(world.events) == [NUMBER]
