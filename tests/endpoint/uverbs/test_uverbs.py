"""Programs over uverbs: what works, who is told, what goes with a program that ends."""

import ctypes
import errno
import fcntl
import json
import mmap
import os
import select
import subprocess
import sys
from collections import deque
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

import mrclab
from benchmarks.rig.profiles import profile as profile_data
from benchmarks.rig.uverbs_rig import End, rig
from common import uverbs
from endpoint import factory, profile as profiles
from endpoint.transport import Completion, CompletionStatus
from endpoint.uverbs.channel import Channel, make_channel
from endpoint.uverbs.queues import Completions, GuestQp
from endpoint.uverbs.refusal import RefusedError
from endpoint.uverbs.regions import SECRET_BYTES, ProgramMemory
from endpoint.uverbs.session import Session
from endpoint.uverbs.shared_memory import make_shared
from mrclab import SendWR, WCOpcode, WCStatus
from mrclab.qp import QPState
from tests.helpers.joined_ends import drain, joined
from tests.helpers.waiting import at_once, eventually

F_ADD_SEALS = 1033


def test_a_write_lands_in_the_peers_memory_and_its_immediate_in_the_peers_queue(pair):
    _, one, other = pair
    one.mr.buf[:300_000] = data = os.urandom(300_000)
    other.qp.post_recv(77)
    one.write(other, 5, 0, 300_000, imm_data=0xFEEDBEEF)
    (sent,) = one.cq.wait(20)
    (received,) = other.cq.wait(20)
    assert (sent.wr_id, sent.status, sent.opcode) == (5, WCStatus.SUCCESS, WCOpcode.RDMA_WRITE_WITH_IMM)
    assert (received.wr_id, received.opcode) == (77, WCOpcode.RECV_RDMA_WITH_IMM)
    assert (received.imm_data, received.byte_len) == (0xFEEDBEEF, 300_000)
    assert other.mr.read(300_000) == data


def test_many_writes_in_one_post_all_complete_and_arrive(pair):
    _, one, other = pair
    one.mr.buf[:] = data = os.urandom(one.mr.length)
    size = one.mr.length // 128
    place = other.mr.addr, other.mr.rkey
    one.qp.post_send(*(SendWR(i, one.mr, i * size, size, place[0] + i * size, place[1]) for i in range(128)))
    done: set[int] = set()
    while len(done) < 128:
        completions = one.cq.wait(20)
        assert completions
        assert {completion.status for completion in completions} == {WCStatus.SUCCESS}
        done |= {completion.wr_id for completion in completions}
    assert other.mr.read(other.mr.length) == data


def test_the_descriptor_of_a_context_is_readable_when_there_is_a_completion(pair):
    _, one, other = pair
    assert not select.select([one.context], [], [], 0)[0]
    one.write(other, 1, 0, 100)
    assert select.select([one.context], [], [], 20)[0]
    assert [completion.wr_id for completion in one.cq.poll()] == [1]


def test_a_full_queue_is_refused_before_anything_is_posted_and_is_free_again_after_polling(pair):
    _, one, other = pair
    request = SendWR(1, one.mr, 0, 64, other.mr.addr, other.mr.rkey)
    with pytest.raises(mrclab.QueueFullError, match="0 of at most 128 writes"):
        one.qp.post_send(*[request] * 129)
    for _ in range(3):
        one.qp.post_send(*[request] * 128)
        with pytest.raises(mrclab.QueueFullError):
            one.qp.post_send(request)
        drain(one.cq, 128)


@pytest.mark.parametrize(
    ("offset", "length", "imm_data"), [(-1, 10, None), (0, -1, None), (1 << 20, 1, None), (0, 1, 1 << 32)]
)
def test_a_write_from_outside_of_the_memory_is_refused_before_it_is_posted(pair, offset, length, imm_data):
    _, one, other = pair
    with pytest.raises(mrclab.RefusedError):
        one.write(other, 1, offset, length, imm_data)


def test_a_write_to_where_the_peer_has_no_memory_ends_in_an_error_and_flushes_the_rest(pair):
    _, one, other = pair
    one.qp.post_send(SendWR(1, one.mr, 0, 64, other.mr.addr, other.mr.rkey ^ 1))
    one.qp.post_recv(9)
    found: dict[int, WCStatus] = {}
    while len(found) < 2:
        found.update({completion.wr_id: completion.status for completion in one.cq.wait(20)})
    assert found == {1: WCStatus.REM_ACCESS_ERR, 9: WCStatus.WR_FLUSH_ERR}
    one.write(other, 2, 0, 64)  # this end may not know yet
    (late,) = one.cq.wait(20)
    assert (late.wr_id, late.status) == (2, WCStatus.WR_FLUSH_ERR)
    attributes = one.qp.query()
    assert attributes.qp_state is QPState.ERR
    assert attributes.cause


def test_states_are_taken_one_by_one_and_a_wrong_step_names_the_right_one(pair):
    rig_, one, other = pair
    with mrclab.Context(rig_.names[0]) as context:
        qp = context.create_qp(context.create_cq(4))
        with pytest.raises(mrclab.RefusedError, match="RTS and SQD only"):
            qp.post_send(SendWR(1, one.mr, 0, 1, 0, 0))
        with pytest.raises(mrclab.RefusedError, match="RESET and cannot go to RTS; valid: INIT"):
            qp.to_rts()
        qp.to_init()
        with pytest.raises(mrclab.RefusedError, match="must be one of"):
            qp.to_rtr({**other.qp.info(), "host": "nowhere"})
        with pytest.raises(mrclab.RefusedError, match="is no key here"):
            qp.to_rtr({**other.qp.info(), "colour": 1})
        qp.to_rtr(other.qp.info())
        qp.to_rts()
        assert qp.query().qp_state is QPState.RTS


def test_the_device_says_what_it_is(pair):
    rig_, one, _ = pair
    device = one.context.query_device()
    assert device.host == rig_.names[0]
    assert device.pmtu == 4096
    assert [port.port for port in device.ports] == [1, 2, 3, 4]
    assert all(port.up for port in device.ports)
    assert set(rig_.names) <= set(mrclab.get_device_list())
    with pytest.raises(mrclab.DeviceGoneError, match="no NIC of h99"):
        mrclab.Context("h99")


def test_shared_memory_can_be_neither_cut_nor_grown_nor_sealed(pair):
    _, one, _ = pair
    _, descriptor = one.context._connection.call_for_descriptor("reg_mr", length=8192)
    for length in (0, 4096, 16384):
        with pytest.raises(PermissionError):
            os.ftruncate(descriptor, length)
    with pytest.raises(PermissionError):
        fcntl.fcntl(descriptor, F_ADD_SEALS, 0x8)  # F_SEAL_WRITE
    os.close(descriptor)


WITHOUT_DESCRIPTORS = """
import mrclab, os, resource, sys
context = mrclab.Context(sys.argv[1])
before = resource.getrlimit(resource.RLIMIT_NOFILE)
os.close(free := os.dup(0))
resource.setrlimit(resource.RLIMIT_NOFILE, (free, before[1]))
for make in [context.create_comp_channel] * 20 + [lambda: context.reg_mr(4096)] * 300:
    try:
        make()
    except mrclab.RefusedError as error:
        assert "RLIMIT_NOFILE" in str(error), error
    else:
        raise AssertionError("it was made without a descriptor")
resource.setrlimit(resource.RLIMIT_NOFILE, before)
context.create_comp_channel().close()
context.reg_mr(4096).close()
"""


def test_memory_or_a_channel_whose_descriptor_is_lost_is_given_back():
    with rig() as made:
        words = [sys.executable, "-c", WITHOUT_DESCRIPTORS, made.names[0]]
        done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr


def test_memory_that_cannot_be_mapped_is_given_back(pair, monkeypatch):
    made, one, _ = pair
    before = len(made.nics[0].memory._regions)

    def fail(*given: object) -> mmap.mmap:
        raise OSError(errno.ENOMEM, os.strerror(errno.ENOMEM))

    monkeypatch.setattr("mrclab.memory.mmap", SimpleNamespace(mmap=fail))
    with pytest.raises(mrclab.RefusedError, match="1048576 bytes cannot be mapped: Cannot allocate memory"):
        one.context.reg_mr(1 << 20)
    assert len(made.nics[0].memory._regions) == before


def test_what_a_program_had_goes_with_it_and_its_peers_learn_by_themselves():
    limits = uverbs.ProgramLimits(memory_bytes=1 << 21, qps=2)
    with rig(limits=limits, timeout=10, retry_exponential=0) as made:
        one, other = joined(made)
        with pytest.raises(mrclab.RefusedError, match="1048576 bytes are left"):
            one.context.reg_mr((1 << 20) + 1)
        one.context.create_qp(one.cq)
        with pytest.raises(mrclab.RefusedError, match="2 qps at a time"):
            one.context.create_qp(one.cq)
        other.context.close()
        eventually(lambda: made.servers[1].qps() == [], "the other end is gone")
        one.write(other, 3, 0, 64)
        (failed,) = one.cq.wait(20)
        assert failed.status is WCStatus.RETRY_EXC_ERR
        one.context.close()
        states = [(line["node"], line["state"]) for line in made.lines if line["kind"] == "program"]
        eventually(lambda: sum(line["kind"] == "program" for line in made.lines) == 4, "both are journalled as closed")
        assert states[:2] == [(name, "open") for name in made.names]
        for server, nic in zip(made.servers, made.nics, strict=True):
            assert server.qps() == []
            assert not nic.qps
            assert not nic.memory.writable


def test_a_program_that_is_killed_leaves_nothing_and_harms_nobody(pair):
    made, one, other = pair
    script = (
        "import mrclab, sys, time; c = mrclab.Context(sys.argv[1], program='victim'); cq = c.create_cq(64);"
        "q = [c.create_qp(cq) for _ in range(8)]; m = c.reg_mr(1 << 20);"
        "print(m.addr, flush=True); time.sleep(600)"
    )
    with subprocess.Popen([sys.executable, "-c", script, made.names[0]], stdout=subprocess.PIPE) as victim:
        assert victim.stdout is not None
        assert victim.stdout.readline()
        assert len(made.servers[0].qps()) == 9
        victim.kill()
    eventually(lambda: len(made.servers[0].qps()) == 1, "its queue pairs are gone")
    one.write(other, 1, 0, 5000)
    assert [completion.status for completion in one.cq.wait(20)] == [WCStatus.SUCCESS]


def test_a_program_that_never_polls_holds_up_no_other(pair):
    made, one, other = pair
    lazy, target = joined(made, {"cqe": 4096, "max_send_wr": 4096}, {})
    lazy.qp.post_send(*(SendWR(i, lazy.mr, 0, 8, target.mr.addr, target.mr.rkey) for i in range(4096)))
    for number in range(20):
        one.write(other, number, 0, 5000)
        assert [completion.wr_id for completion in one.cq.wait(20)] == [number]
    drain(lazy.cq, 4096)
    lazy.context.close()
    target.context.close()


def test_two_threads_of_one_process_have_a_context_each(pair):
    made, _, _ = pair
    errors: list[BaseException] = []

    def run() -> None:
        try:
            ends = joined(made)
            for number in range(20):
                ends[0].write(ends[1], number, 0, 20_000)
                assert ends[0].cq.wait(20)
            for end in ends:
                end.context.close()
        except BaseException as error:
            errors.append(error)

    at_once([run] * 3)
    assert errors == []


def test_the_end_of_the_agent_is_an_error_and_no_hang():
    with rig() as made:
        end = End(made.names[0])
    with pytest.raises(mrclab.DeviceGoneError):
        end.cq.wait(20)
    with pytest.raises(mrclab.DeviceGoneError):
        end.context.reg_mr(100)


def test_a_context_keeps_nothing_that_was_closed(pair):
    made, _, _ = pair
    with mrclab.Context(made.names[0]) as here:
        channel = here.create_comp_channel()
        cq = here.create_cq(4, channel)
        qps = [here.create_qp(cq) for _ in range(2)]
        for number in range(2):
            with pytest.raises(mrclab.RefusedError):
                cq.close()
            with pytest.raises(mrclab.RefusedError):
                channel.close()
            assert kept(here) == {*qps[number:], cq, channel}
            qps[number].close()
        cq.close()
        channel.close()
        assert kept(here) == set()


def kept(context):
    named = [context._qps, context._cqs, context._queues]
    return {*context._channels, *(one for made in named for one in made.values())}


def test_a_context_keeps_no_queue_of_ev_events_that_was_closed():
    with rig("mrc") as made, mrclab.Context(made.names[0]) as here:
        events = here.create_ev_event_cq(4)
        assert kept(here) == {events}
        events.close()
        assert kept(here) == set()


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
