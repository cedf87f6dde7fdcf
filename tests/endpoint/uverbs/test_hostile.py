"""Programs that mean harm: whatever they send, and however they end, the agent and the other programs go on."""

import array
import contextlib
import ctypes
import gc
import json
import os
import random
import socket
import struct
import sys
import time
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings, strategies as st

import mrclab
from benchmarks.rig.profiles import profile as profile_data
from benchmarks.rig.uverbs_rig import End
from common import uverbs
from endpoint import factory, profile as profiles
from endpoint.uverbs.channel import make_channel
from endpoint.uverbs.refusal import Violation
from endpoint.uverbs.regions import SECRET_BYTES, ProgramMemory
from endpoint.uverbs.server import Closer
from endpoint.uverbs.session import Session
from endpoint.uverbs.shared_memory import make_shared
from mrclab.connection import Connection
from tests.helpers.joined_ends import joined
from tests.helpers.stranger import NEEDS_ROOT, uverbs_of_a_stranger
from tests.helpers.waiting import eventually

OPERATIONS = [
    "open", "query_device", "reg_mr", "dereg_mr", "create_cq", "destroy_cq", "create_qp", "modify_qp", "query_qp",
    "destroy_qp", "nothing", "create_comp_channel", "destroy_comp_channel", "create_ev_event_cq", "poll_ev_event",
    "create_qp_hint", "modify_qp_hint", "query_qp_hint", "destroy_qp_hint", "query_port", "modify_port",
    "query_ev_profile", "modify_ev_profile", "query_cc_profile", "modify_cc_profile", "ep_batch_send_wait",
]  # fmt: skip
KEYS = [
    "version", "program", "length", "lkey", "cqe", "cq", "qpn", "state", "peer", "attributes", "remote_write",
    "channel", "num_entries", "hint", "port_num", "port_admin_state", "profile", "first", "algorithm", "config",
    "op_type", "requests", "rsp_timeout", "cur_state",
]  # fmt: skip

_DESCRIPTOR_OF_NOTHING = 1 << 30


def knock(host: str) -> socket.socket:
    made = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    made.connect(uverbs.address(host))
    made.settimeout(20)
    return made


def say_open(to: socket.socket) -> None:
    to.send(json.dumps({"id": 1, "op": "open", "version": uverbs.VERSION, "program": "hostile"}).encode())
    assert json.loads(to.recv(1 << 16))["ok"]


def last_words(of: socket.socket) -> str:
    """What the agent says before it cuts a program off."""
    words = ""
    while data := of.recv(1 << 16):
        words = json.loads(data)["error"]
    return words


def works(one: End, other: End) -> None:
    one.write(other, 1, 0, 20_000)
    assert [completion.status for completion in one.cq.wait(20)] == [mrclab.WCStatus.SUCCESS]


def take_all(end: End) -> None:
    """Read until the agent ends it, or says nothing more."""
    while end.context._connection.receive(20):
        pass


def request(**changes: int) -> bytes:
    values = dict.fromkeys(uverbs.Request._fields, 0) | {"length": 1} | changes
    return uverbs.pack_requests([uverbs.Request(**values)])


def inline(data: bytes, length: int | None = None) -> bytes:
    values = dict.fromkeys(uverbs.Request._fields, 0) | {"length": len(data) if length is None else length}
    row = uverbs.pack_requests([uverbs.Request(**values)])
    return bytes([uverbs.INLINE]) + row[1:] + data


FIRST = [
    (b"\x00", "the first message"),
    (b"{", "none"),
    (b'{"id": 1, "op": "query_device"}', "the first message"),
    (b'{"op": "open"}', "an integer as its id"),
    (b"{" + b'"a":[' * 3000, "none"),
    (b"x" * (uverbs.MESSAGE_BYTES_MAX + 1), "above"),
]


@pytest.mark.parametrize(
    ("message", "words"),
    [
        *FIRST,
        (struct.pack("=BxHI", uverbs.POST, 5, 0), "says 5 rows"),
        (struct.pack("=BxHI", uverbs.POST, 0, 0), "says 0 rows"),
        (b"\x01", "least"),
        (request()[:-1], "rows"),
        (request(qpn=99999), "which is not this program's"),
        (b"\x02" + bytes(100), "unknown"),
        (bytes([uverbs.INLINE]), "its data must be 1 to 1024 bytes"),
        (inline(b""), "its data must be 1 to 1024 bytes"),
        (inline(bytes(1025)), "its data must be 1 to 1024 bytes"),
        (inline(b"four", 5), "an inline write of 5 bytes that brings 4"),
        (inline(b"four"), "which is not this program's"),
    ],
)
def test_a_message_that_no_library_sends_ends_its_sender_only(mrc, message, words):
    made, one, other = mrc
    with knock(made.names[0]) as hostile:
        if (message, words) not in FIRST:  # instead of opening
            say_open(hostile)
        hostile.send(message)
        assert words in last_words(hostile)
    works(one, other)


def test_a_program_cannot_use_the_memory_or_the_queue_pairs_of_another(mrc):
    made, one, other = mrc
    own = End(made.names[0])
    for fields in ({"qpn": one.qp.qp_num, "lkey": one.mr.lkey}, {"qpn": own.qp.qp_num, "lkey": one.mr.lkey}):
        thief = End(made.names[0])
        thief.qp.connect(other.qp.info())
        values = dict.fromkeys(uverbs.Request._fields, 0) | {"length": 8} | fields
        if fields["qpn"] == own.qp.qp_num:
            values["qpn"] = thief.qp.qp_num
        thief.context._connection.post([uverbs.Request(**values)])
        with pytest.raises(mrclab.DeviceGoneError, match="not this program's"):
            thief.cq.wait(20)
        thief.context.close()
    own.context.close()
    works(one, other)


def test_a_queue_that_is_overrun_on_purpose_ends_its_owner(mrc):
    made, one, other = mrc
    greedy, target = joined(made, {"cqe": 16}, {})
    row = uverbs.Request(1, 0, target.mr.addr, greedy.qp.qp_num, 8, greedy.mr.lkey, target.mr.rkey, 0, uverbs.WRITE)
    greedy.context._connection.post([row] * 200)
    with pytest.raises(mrclab.DeviceGoneError, match="no room"):
        take_all(greedy)
    works(one, other)


def test_descriptors_are_taken_from_nobody_and_none_stays_open(mrc):
    made, one, other = mrc
    held = len(os.listdir("/proc/self/fd"))
    for count in (1, 253):
        with knock(made.names[0]) as hostile:
            say_open(hostile)
            rights = array.array("i", [0] * count)
            hostile.sendmsg([b'{"id": 2, "op": "query_device"}'], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, rights)])
            assert "with descriptors" in last_words(hostile)
    works(one, other)
    eventually(lambda: len(os.listdir("/proc/self/fd")) == held, "everything is closed")


@pytest.mark.slow
def test_a_socket_that_takes_ages_to_close_does_not_hold_up_the_agent(mrc):
    made, one, other = mrc
    with socket.create_server(("127.0.0.1", 0)) as server, knock(made.names[0]) as hostile:
        slow = socket.create_connection(server.getsockname())
        taken, _ = server.accept()
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 5))
        slow.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            while slow.send(bytes(1 << 16)):
                pass
        say_open(hostile)
        rights = array.array("i", [slow.fileno()])
        hostile.sendmsg([b'{"id": 2, "op": "query_device"}'], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, rights)])
        os.close(slow.detach())  # the agent's is the last one
        started_s = time.monotonic()
        works(one, other)
        assert time.monotonic() - started_s < 4  # the close lasts 5 s
        taken.close()


def test_a_descriptor_whose_close_fails_does_not_keep_later_ones_open() -> None:
    """The close of a file on FUSE or NFS returns the errors of earlier writes."""
    closer = Closer()
    reader, writer = os.pipe()
    closer.close(_DESCRIPTOR_OF_NOTHING)
    closer.close(writer)
    closer.end()
    eventually(lambda: not closer.backlog, "both have been closed")
    assert os.read(reader, 1) == b""  # the end of the file: no writer is left
    os.close(reader)


def test_holes_in_shared_memory_are_zeros_and_no_signal(mrc):
    _, one, other = mrc
    _, descriptor = one.context._connection.call_for_descriptor("reg_mr", length=1 << 20)
    libc = ctypes.CDLL(None, use_errno=True)
    punch_hole_keep_size = 0x2 | 0x1
    done = libc.fallocate(descriptor, punch_hole_keep_size, ctypes.c_long(0), ctypes.c_long(1 << 20))
    os.close(descriptor)
    assert done == 0
    works(one, other)


def test_a_flood_of_requests_by_one_program_leaves_time_for_the_others(mrc):
    made, one, other = mrc
    floods = [knock(made.names[0]) for _ in range(3)]
    for flood in floods:
        say_open(flood)
        flood.setblocking(False)
    for _ in range(100):
        for flood in floods:
            try:
                while flood.send(b'{"id": 2, "op": "query_device"}'):
                    pass
            except BlockingIOError:
                pass
        works(one, other)
    for flood in floods:
        flood.close()
    eventually(lambda: len(made.servers[0]._programs) == 1, "the floods are gone")


def test_more_programs_than_there_is_room_for_are_told_so(mrc):
    made, one, other = mrc
    crowd = [knock(made.names[0]) for _ in range(40)]
    assert any("programs use the NIC" in last_words(late) for late in crowd[-8:])
    for program in crowd:
        program.close()
    eventually(lambda: len(made.servers[0]._programs) == 1, "the crowd is gone")
    works(one, other)


# --- fuzz ---------------------------------------------------------------------------------------------------------


def session(transport: str = "mrc", memory: ProgramMemory | None = None) -> tuple[Session, Any]:
    """A session, and the NIC that the test looks into."""
    profile = profiles.parse(json.loads(json.dumps(profile_data(0))))
    nic: Any = factory.make(transport, profile, 1, {}, 0)
    limits = uverbs.ProgramLimits(memory_bytes=1 << 16, regions=4, cqs=4, cqe=64, qps=4)
    return Session(
        nic,
        hosts={"h1": "fd00:1::1"},
        about=dict,
        make_memory=make_shared,
        make_channel=make_channel,
        limits=limits,
        memory=memory,
    ), nic


numbers = st.sampled_from([-(2**70), -1, 0, 1, 2, 3, 16, 64, 100, 4096, 65536, 2**24, 2**32, 2**64, 10**30])
scalars = st.none() | st.booleans() | numbers | st.floats() | st.text(max_size=5) | st.sampled_from(uverbs.STATES)
infos = st.fixed_dictionaries(
    {"host": st.just("h1") | scalars},
    optional=dict.fromkeys(["qpn", "psn", "mpr", "max_write_imm", "trim_nack", "pmtu", "x"], numbers | scalars),
)
named = st.sampled_from([
    "timeout", "mpr", "mpr_dest", "cap", "linear_cnt", "sq_psn", "qp_hint", "self", "cq", "now_ns", "number", "ev_mode",
    "profile_state", "ev_count", "replace_ev", "modify_ev_state", "fields", "num_qps_per_peer", "dynamic_mpr", "eta",
])  # fmt: skip
attributes = st.dictionaries(named, scalars | st.lists(st.lists(numbers, max_size=5), max_size=3), max_size=3)
batches = st.lists(st.tuples(numbers, st.sampled_from(["h1", "h2"]), numbers, numbers).map(list), max_size=3)
lists = st.lists(scalars, max_size=2) | st.dictionaries(st.text(max_size=4), scalars, max_size=2)
values = attributes | batches | st.sampled_from(["ev_probe", "offline", "explicit"]) | scalars | infos | lists
controls = st.builds(
    lambda op, ident, fields: json.dumps({"id": ident, "op": op, **fields}).encode(),
    st.sampled_from(OPERATIONS) | scalars,
    st.integers(0, 9),
    st.dictionaries(st.sampled_from(KEYS), values, max_size=4),
)
fields64 = st.integers(0, (1 << 64) - 1) | st.sampled_from([0, 1])
fields32 = st.integers(0, (1 << 32) - 1) | st.sampled_from([0, 1, 17, 18])
posts = st.lists(
    st.builds(uverbs.Request, *[fields64] * 3, *[fields32] * 5, st.integers(0, 255), st.integers(0, 255)),
    min_size=1,
    max_size=3,
).map(uverbs.pack_requests)

arms = st.builds(uverbs.Arm, fields32, fields64, st.booleans()).map(uverbs.pack_arm)


@settings(max_examples=300, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.lists(controls | posts | arms | st.binary(min_size=1, max_size=80), max_size=20),
    st.sampled_from(["mrc", "roce"]),
)
@example([b'{"id":1,"op":"create_qp","cq":1,"attributes":{"selection":[]}}'], "mrc")
@example([b'{"id":1,"op":"create_qp","cq":1,"attributes":{"cq":1}}'], "mrc")
@example([b'{"id":1,"op":"create_qp","cq":1,"attributes":{"self":1}}'], "roce")
@example([b'{"id":1,"op":"modify_cc_profile","profile":1,"config":{"number":1,"algorithm":2}}'], "mrc")
@example([b'{"id":1,"op":"create_qp_hint","attributes":{"self":1}}'], "mrc")
@example([b'{"id":1,"op":"modify_ev_profile","profile":1,"attributes":{"number":1,"now_ns":2}}'], "mrc")
@example([b'{"id":1,"op":"modify_qp","qpn":256,"state":"init","attributes":{"self":1}}'], "mrc")
@example([b'{"id":1,"op":"create_ev_event_cq","cqe":3}', b'{"id":1,"op":"destroy_cq","cq":2}'], "mrc")
def test_whatever_is_said_is_answered_or_ends_the_session_and_closing_gives_everything_back(messages, transport):
    found, nic = session(transport)
    found.receive(b'{"id":1,"op":"open","version":1,"program":"fuzz"}', 0)
    found.receive(b'{"id":2,"op":"create_cq","cqe":8}', 0)
    found.receive(b'{"id":3,"op":"create_qp","cq":1}', 0)
    for now_ns, message in enumerate(messages):
        try:
            found.receive(message, now_ns)
        except Violation:
            break
        while (outgoing := found.outgoing()) is not None:
            if outgoing.descriptor is not None:
                os.close(outgoing.descriptor)
            if outgoing.data[0] == uverbs.JSON:
                assert json.loads(outgoing.data)["id"] is not None
    found.close(100)
    assert not nic.qps
    assert not nic.memory.writable
    if transport == "mrc":
        assert nic._context.ev_watchers == []
        assert list(nic._context.hints._hints) == [0]
        assert nic._operations._asked == {}


def mangled(rng: random.Random, valid: list[bytes]) -> bytes:
    data = bytearray(rng.choice(valid))
    for _ in range(rng.randrange(4)):
        data[rng.randrange(len(data))] = rng.randrange(256)
    return bytes(data[: rng.randrange(1, len(data) + 1)]) if rng.random() < 0.2 else bytes(data)


def fuzz(made, one: End, other: End, count: int, seed: int) -> int:
    """So many mangled messages over real sockets, several programs at a time; how many programs were cut off."""
    rng = random.Random(seed)
    valid = [
        json.dumps({"id": 1, "op": "create_cq", "cqe": 8}).encode(),
        json.dumps({"id": 1, "op": "reg_mr", "length": 4096}).encode(),
        json.dumps({"id": 1, "op": "create_qp", "cq": 1, "attributes": {"max_send_wr": 4}}).encode(),
        json.dumps({"id": 1, "op": "modify_qp", "qpn": 18, "state": "rtr", "peer": other.qp.info()}).encode(),
        json.dumps({"id": 1, "op": "query_qp", "qpn": 18}).encode(),
        json.dumps({"id": 1, "op": "modify_qp", "qpn": 18, "attributes": {"timeout": 12}}).encode(),
        json.dumps({"id": 1, "op": "create_comp_channel"}).encode(),
        json.dumps({"id": 1, "op": "create_cq", "cqe": 8, "channel": 1}).encode(),
        json.dumps({"id": 1, "op": "create_ev_event_cq", "cqe": 8, "channel": 1}).encode(),
        json.dumps({"id": 1, "op": "create_qp_hint", "attributes": {"num_qps_per_peer": 4}}).encode(),
        json.dumps({"id": 1, "op": "query_ev_profile", "profile": 0}).encode(),
        uverbs.pack_arm(uverbs.Arm(1, 0, False)),
        request(qpn=18, opcode=uverbs.RECV),
        request(qpn=18, lkey=one.mr.lkey, rkey=other.mr.rkey, remote_addr=other.mr.addr, length=100),
    ]
    ended = 0
    programs: list[socket.socket] = []
    for number in range(count):
        if not programs or rng.random() < 0.05:
            while len(programs) >= 4:
                programs.pop(0).close()
            programs.append(knock(made.names[0]))
            say_open(programs[-1])
            programs[-1].setblocking(False)
        hostile = rng.choice(programs)
        try:
            hostile.send(mangled(rng, valid))
        except BlockingIOError:
            pass  # it never reads: the agent has stopped reading it
        except OSError:
            ended += 1
            programs.remove(hostile)
            hostile.close()
        if number % 1000 == 0:
            works(one, other)
    for hostile in programs:
        hostile.close()
    works(one, other)
    return ended


def test_mangled_messages_over_the_socket_harm_nobody_else(mrc):
    made, one, other = mrc
    gc.collect()  # what earlier tests left to it may hold descriptors
    held = len(os.listdir("/proc/self/fd"))
    assert fuzz(made, one, other, 5_000, 7) > 100
    eventually(lambda: len(made.servers[0]._programs) == 1, "all hostile programs are gone")
    assert len(made.servers[0].qps()) == 1
    eventually(lambda: len(os.listdir("/proc/self/fd")) == held, "all their descriptors are closed")


def test_a_program_hears_why_it_was_cut_off_although_its_last_message_was_never_read(monkeypatch) -> None:
    """The kernel tells of the reset before it hands out what the agent had said."""
    agent, program = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    monkeypatch.setenv(uverbs.STEPPED, f"{program.detach()}:h0")
    connection = Connection(None, lambda row: None)
    with contextlib.closing(connection), agent:
        connection.arm(uverbs.Arm(1, 0, False))
        agent.send(uverbs.refusal("nonsense"))
        agent.close()
        with pytest.raises(mrclab.DeviceGoneError, match="has cut this program off: nonsense"):
            connection.receive()


@pytest.mark.parametrize("field", ["addr", "proof"])
def test_memory_above_what_a_file_offset_can_name_is_refused(field: str) -> None:
    """The agent reads and writes a program's memory by file, and offsets of files have 63 bits."""
    secret = ctypes.create_string_buffer(os.urandom(SECRET_BYTES), SECRET_BYTES)
    at = ctypes.addressof(secret)
    memory = ProgramMemory(os.getpid, secret.raw, os.geteuid())
    found, nic = session(memory=memory)
    found.receive(b'{"id":1,"op":"open","version":1,"program":"far"}', 0)
    asked = {"id": 2, "op": "reg_mr", "length": 4096, "addr": at, "proof": at, field: 1 << 63}
    found.receive(json.dumps(asked).encode(), 0)
    answers = [json.loads(message.data) for message in iter(found.outgoing, None)]
    assert not answers[1]["ok"]
    assert f"reg_mr.{field} is {1 << 63}; it must be an integer from 0 to" in answers[1]["error"]
    assert not nic.memory.writable
    assert not memory.sink(1 << 63, at)(0, memoryview(b"far"))
    found.close(0)


def test_a_programs_name_is_text_that_every_reader_can_encode() -> None:
    """A script's name with a byte that is no UTF-8 has a lone surrogate in Python."""
    found, _ = session()
    found.receive(json.dumps({"id": 1, "op": "open", "version": 1, "program": "caf\udce9.py"}).encode(), 0)
    assert found.program == "caf?.py"


def test_a_request_that_is_nested_deeply_is_refused_or_ends_its_session() -> None:
    """There is a depth that can just be parsed, and is too deep to be shown in a complaint."""
    limit = sys.getrecursionlimit()
    for depth in range(limit, limit - 200, -1):
        found, _ = session()
        nested = "[" * depth + "]" * depth
        with contextlib.suppress(Violation):
            found.receive(f'{{"id":1,"op":"open","program":"deep","version":{nested}}}'.encode(), 0)
            answer = found.outgoing()
            assert answer is not None
            assert not json.loads(answer.data)["ok"]


@NEEDS_ROOT
def test_a_program_does_not_talk_to_a_socket_that_another_user_has_opened():
    """Whoever binds a host's name before the agent does would hear every program of the host."""
    refused = "the socket of h4097 belongs to user 65534, not to the lab"
    with uverbs_of_a_stranger("h4097"), pytest.raises(mrclab.DeviceGoneError, match=refused):
        Connection("h4097", lambda row: None)
