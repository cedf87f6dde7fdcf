"""The control socket and what is asked over it: limits, clients that read nothing, and any JSON."""

import json
import os
import resource
import select
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest
from hypothesis import example, given, settings, strategies as st

from benchmarks.rig.profiles import profile as profile_data
from common import server as servers
from common.client import ControlClient, ControlError
from common.server import ControlServer, Reply
from endpoint import factory, profile as profiles
from endpoint.host import HostNic
from endpoint.workloads import KINDS
from tests.helpers.workload_fake import FakeNet


class FakeDriver:
    """Descriptors and what to call when they are readable, or writable; a test says when."""

    def __init__(self) -> None:
        self.readers: dict[int, Callable[[], None]] = {}
        self.writers: dict[int, Callable[[], None]] = {}

    def add_reader(self, descriptor: int, callback: Callable[[], None]) -> None:
        self.readers[descriptor] = callback

    def remove_reader(self, descriptor: int) -> None:
        self.readers.pop(descriptor, None)

    def add_writer(self, descriptor: int, callback: Callable[[], None]) -> None:
        self.writers[descriptor] = callback

    def remove_writer(self, descriptor: int) -> None:
        self.writers.pop(descriptor, None)

    def turn(self) -> None:
        """Call back for all that can be read or written now."""
        for ready, callbacks in ((select.POLLIN, self.readers), (select.POLLOUT, self.writers)):
            for descriptor, callback in list(callbacks.items()):
                poll = select.poll()
                poll.register(descriptor, ready)
                if poll.poll(0):
                    callback()


def long_answer(request: Mapping[str, Any], reply: Reply) -> None:
    reply({"id": request["id"], "ok": True, "result": "x" * 1_000_000})


def pong(request: Mapping[str, Any], reply: Reply) -> None:
    reply({"id": request["id"], "ok": True, "result": "pong"})


def answered(client: ControlClient, driver: FakeDriver) -> object:
    """The answer to the client that came last."""
    ident = client.send("ping")
    list(driver.readers.values())[-1]()
    return client.result(ident)


@contextmanager
def no_descriptor_free() -> Iterator[list[int]]:
    """Those that were taken: close some and take them off the list to have them free."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    taken = []
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(soft, 4096), hard))
    try:
        try:
            while True:
                taken.append(os.dup(0))
        except OSError:
            yield taken
    finally:
        for descriptor in taken:
            os.close(descriptor)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def readable(descriptor: int) -> bool:
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(0))


@pytest.mark.parametrize("waiting", [False, True])
def test_a_client_beyond_the_limit_takes_the_place_of_the_silent_one_unless_all_wait(tmp_path, monkeypatch, waiting):
    """The place of the one that was silent longest; one for which all others wait for answers is told so."""
    monkeypatch.setattr(servers, "CLIENTS_MAX", 3)
    driver, path = FakeDriver(), tmp_path / "s"
    server = ControlServer(path, driver, (lambda request, reply: None) if waiting else pong, line_bytes_max=1000)
    (accept,) = driver.readers.values()
    clients = []
    for number in range(4):
        clients.append(ControlClient(path, timeout_s=5))
        accept()
        if waiting and number < 3:
            clients[-1].send("ping")
            list(driver.readers.values())[-1]()
    assert len(driver.readers) == 1 + 3
    if waiting:
        with pytest.raises(ControlError, match="3 clients are connected; close one first"):
            clients[3].call("ping")
    else:
        with pytest.raises(ControlError, match=r"closed the connection|is gone"):
            clients[0].call("ping")
        assert answered(clients[3], driver) == "pong"
    for client in clients:
        client.close()
    server.close()
    assert driver.readers == {}
    assert not path.exists()


def test_clients_are_turned_away_while_no_descriptor_is_free_and_served_when_one_is(tmp_path) -> None:
    driver, path = FakeDriver(), tmp_path / "s"
    server = ControlServer(path, driver, pong, line_bytes_max=1000)
    ((listener, accept),) = driver.readers.items()
    clients = [ControlClient(path, timeout_s=5) for _ in range(2)]
    with no_descriptor_free():
        for _ in clients:
            assert readable(listener)
            accept()
        assert not readable(listener), "the loop would be woken again and again"
        assert list(driver.readers) == [listener]
    for client in clients:
        with pytest.raises(ControlError, match="no descriptor is free"):
            client.call("ping")
    again = ControlClient(path, timeout_s=5)
    accept()
    assert answered(again, driver) == "pong"
    for client in (*clients, again):
        client.close()
    server.close()


def test_a_server_whose_spare_descriptor_was_taken_pauses_and_has_one_again_later(tmp_path, monkeypatch) -> None:
    """As where another thread is quicker: there is nothing left to turn a client away with."""
    driver, path, pauses = FakeDriver(), tmp_path / "s", list[float]()
    server = ControlServer(path, driver, pong, line_bytes_max=1000)
    (accept,) = driver.readers.values()
    client = ControlClient(path, timeout_s=5)
    close = os.close

    def quick(descriptor: int) -> None:
        close(descriptor)
        taken.append(os.dup(0))

    monkeypatch.setattr("time.sleep", pauses.append)
    with no_descriptor_free() as taken:
        monkeypatch.setattr(os, "close", quick)
        accept()
        monkeypatch.setattr(os, "close", close)
        accept()
        assert len(pauses) == 2
        os.close(taken.pop())
        os.close(taken.pop())
        accept()
        assert answered(client, driver) == "pong"
    server.close()
    client.close()


def test_a_client_with_too_many_unread_answers_is_disconnected(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(servers, "UNSENT_BYTES_MAX", 3_000_000)
    driver, path, waiting = FakeDriver(), tmp_path / "s", list[Callable[[], None]]()

    def later(request: Mapping[str, Any], reply: Reply) -> None:
        waiting.append(lambda: long_answer(request, reply))

    server = ControlServer(path, driver, later, line_bytes_max=1000)
    with ControlClient(path, timeout_s=5) as client:
        driver.turn()
        for _ in range(10):
            client.send("wait")
        driver.turn()
        for answer in waiting[:3]:
            answer()
        assert len(driver.writers) == 1
        for answer in waiting[3:]:
            answer()
        assert not driver.writers
        assert len(driver.readers) == 1
    server.close()


def test_a_client_that_reads_has_its_whole_answer_when_the_server_ends_right_after_it(tmp_path) -> None:
    driver, path = FakeDriver(), tmp_path / "s"
    server = ControlServer(path, driver, long_answer, line_bytes_max=1000)
    with ControlClient(path, timeout_s=5) as client, ThreadPoolExecutor() as pool:
        driver.turn()
        ident = client.send("answer")
        driver.turn()
        assert driver.writers, "the socket took the whole answer: make it longer"
        found = pool.submit(client.result, ident)
        server.close()
        assert len(found.result()) == 1_000_000


def test_an_agent_forgets_the_waits_of_a_client_that_has_left(tmp_path) -> None:
    driver, path, net = FakeDriver(), tmp_path / "s", FakeNet(seed=1, hosts=2)
    host = net.hosts["h0"]
    prepare = {"id": 0, "op": "workload.prepare", "name": "a", "kind": "write_bw", "ranks": ["h0", "h1"]}
    host.control(prepare, 0, lambda answer: None)

    def control(request: Mapping[str, Any], reply: Reply) -> None:
        host.control(request, 0, reply)

    server = ControlServer(path, driver, control, line_bytes_max=1000, forget=host.forget)
    with ControlClient(path, timeout_s=5) as stays:
        driver.turn()
        with ControlClient(path, timeout_s=5) as leaves:
            driver.turn()
            ident = stays.send("workload.wait", name="a")
            for _ in range(10):
                leaves.send("workload.wait", name="a")
            driver.turn()
            assert waits(host) == {"a": 11}
        driver.turn()
        assert waits(host) == {"a": 1}
        host.control({"id": 0, "op": "workload.remove", "name": "a"}, 0, lambda answer: None)
        assert stays.result(ident)["state"] == "failed"
        assert waits(host) == {}
    server.close()


def waits(host: HostNic) -> dict[str, int]:
    return {name: len(callers) for name, callers in host._workloads.waiting.items()}


NOW_NS = 1_000_000_000
HOSTS = 3
OPERATIONS = [*FakeNet(seed=1, hosts=2).hosts["h0"]._operations, "workload.wait"]
OPTIONS = sorted({name for kind in KINDS.values() for name in kind.OPTIONS.__dataclass_fields__})

numbers = st.sampled_from([-(2**70), -1, 0, 1, 2, 3, 4, 16, 100, 4096, 1_000_000, 2**32, 2**64, 10**30])
scalars = st.none() | st.booleans() | numbers | st.floats() | st.text(max_size=5)
anything = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
)
names = st.sampled_from(["a", "b", ""]) | anything
host_names = st.sampled_from([f"h{index}" for index in range(HOSTS)])
# Small: a test of words, not of memory.
option_values = st.integers(1, 64) | st.booleans() | st.floats() | st.lists(anything, max_size=2) | st.just(-1)
options: st.SearchStrategy[Any] = (
    st.dictionaries(st.sampled_from(OPTIONS), option_values, max_size=3) | st.just({}) | anything
)
qp_infos = st.fixed_dictionaries(
    {"host": host_names | anything, "qpn": numbers | anything, "psn": numbers | anything},
    optional={"mpr": numbers | anything, "max_write_imm": numbers | anything, "trim_nack": anything, "x": anything},
)
offers = st.fixed_dictionaries(
    {
        "qps": st.lists(qp_infos, max_size=3) | anything,
        "va": numbers | anything,
        "rkey": numbers | anything,
        "length": numbers | anything,
    }
)
good_info = st.fixed_dictionaries(
    {"host": host_names, "qpn": st.integers(0, 2**24 - 1), "psn": st.integers(0, 2**24 - 1)},
    optional={"trim_nack": st.booleans()},
).flatmap(lambda info: st.builds(lambda mpr: {**info, "mpr": mpr, "max_write_imm": 8}, st.sampled_from([0, 8, 99])))
near_offers = st.fixed_dictionaries(
    {"qps": st.lists(good_info, min_size=1, max_size=2), "va": numbers, "rkey": numbers, "length": numbers}
)
arguments = {
    "id": st.integers() | anything,
    "name": names,
    "kind": st.sampled_from(sorted(KINDS)) | anything,
    "ranks": st.permutations(["h0", "h1"]) | st.lists(host_names | anything, max_size=4) | anything,
    "options": options,
    "offers": st.dictionaries(host_names, near_offers | offers | anything, max_size=3) | anything,
    "at_ns": numbers | anything,
    "interval_ns": numbers | anything,
    "window": numbers | anything,
    "deny": st.booleans() | anything,
    "paths": st.booleans() | anything,
    "denied": st.lists(st.fixed_dictionaries({"host": host_names | anything, "ev": numbers | anything})) | anything,
}
requests = st.fixed_dictionaries({"op": st.sampled_from(OPERATIONS)}, optional=arguments) | st.fixed_dictionaries(
    {"op": anything}, optional=arguments
)


def make_host(transport: str, lines: list[str], **settings: Any) -> HostNic:
    data = profile_data(0, HOSTS, self_probes=[{"target": "p0l0", "port": 1, "da": "fcbb:bbbb:1::"}])
    profile = profiles.parse(data)
    return HostNic(
        profile,
        factory.make(transport, profile, 1, settings, NOW_NS),
        lambda t_ns, kind, fields: lines.append(json.dumps(fields)),
        clock=lambda: NOW_NS,
        now_ns=NOW_NS,
    )


def converse(host: HostNic, conversation: list[dict[str, Any]]) -> None:
    """Each request is answered at once, but for a wait, which is answered at the latest when the host ends."""
    answers: list[list[dict[str, Any]]] = []
    now_ns = NOW_NS
    for request in conversation:
        answers.append([])
        host.control(request, now_ns, answers[-1].append)
        assert len(answers[-1]) == 1 or (request["op"] == "workload.wait" and not answers[-1])
        now_ns += 1_000_000
        host.handle_timer(now_ns)
        host.packets_to_send(now_ns, 64)
    host.close(now_ns)
    for request, found in zip(conversation, answers, strict=True):
        (answer,) = found
        assert repr(answer["id"]) == repr(request.get("id"))
        assert json.dumps(answer)
        assert answer["ok"] is True or (answer["ok"] is False and answer["error"])


def ask(host: HostNic, request: dict[str, Any]) -> dict[str, Any]:
    answers: list[dict[str, Any]] = []
    host.control({"id": 1, **request}, NOW_NS, answers.append)
    (answer,) = answers
    return answer


def holdings(host: HostNic) -> tuple[int, int]:
    """Queue pairs and memory regions of the NIC."""
    nic: Any = host.transport
    return len(nic.qps), len(nic.memory._regions)


PREPARE = {"op": "workload.prepare", "name": "a", "kind": "write_bw", "ranks": ["h0", "h1"], "options": {}}
INFO = {"host": "h1", "qpn": 1, "psn": 1, "mpr": 8, "max_write_imm": 8}


def connect(qp: dict[str, Any] | None = None, **changes: Any) -> dict[str, Any]:
    offer = {"qps": [{**INFO, **(qp or {})}], "va": 0, "rkey": 1, "length": 1 << 30, **changes}
    return {"op": "workload.connect", "name": "a", "offers": {"h1": offer}}


START = {"op": "workload.start", "name": "a"}


@pytest.mark.parametrize("transport", factory.NAMES)
@given(
    conversation=st.builds(
        lambda begin, rest: [*begin, *rest],
        st.sampled_from([[], [PREPARE], [PREPARE, connect()], [PREPARE, connect(), START]]),
        st.lists(requests, min_size=1, max_size=5),
    )
)
@settings(max_examples=100)
@example(conversation=[{**PREPARE, "ranks": [["h0"], "h1"]}])
@example(conversation=[{**PREPARE, "kind": "all_reduce", "options": {"seed": -1}}])
@example(conversation=[{"op": "prober.start", "window": 10**30}])
@example(conversation=[PREPARE, connect({"host": "h9"})])
@example(conversation=[PREPARE, connect({"qpn": "x"})])
@example(conversation=[PREPARE, connect({"mpr": 99}), START])
@example(conversation=[PREPARE, connect(va=-1), START])
@example(conversation=[PREPARE, connect(va=2**64), START])
@example(conversation=[PREPARE, {"op": "workload.wait", "name": "a"}, {"op": "workload.remove", "name": "a"}])
@example(conversation=[{"op": "denylist.set", "denied": [{"host": ["h1"], "ev": 1}]}])
def test_any_json_is_answered_once(transport: str, conversation: list[dict[str, Any]]) -> None:
    converse(make_host(transport, []), conversation)


@pytest.mark.parametrize("transport", factory.NAMES)
def test_more_queue_pairs_than_the_nic_has_are_refused_and_nothing_is_kept(transport, monkeypatch) -> None:
    monkeypatch.setattr("endpoint.nic.nic.QPS_MAX", 100)
    host = make_host(transport, [])
    prepare = {**PREPARE, "kind": "mix", "ranks": ["h0", "h1", "h2"], "options": {"qps": 40, "sizes": [[1, 1]]}}
    assert ask(host, prepare)["ok"]
    held = holdings(host)
    assert "h0 has 100 queue pairs; destroy one first" in ask(host, {**prepare, "name": "b"})["error"]
    assert holdings(host) == held
    assert ask(host, {"op": "workload.remove", "name": "a"})["ok"]
    assert ask(host, {**prepare, "name": "b"})["ok"]


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("write_bw", {"size": 1 << 28, "depth": 128, "qps": 64}),
        ("mix", {"sizes": [[1 << 28, 1]], "depth": 128}),
        ("all_reduce", {"size": 1 << 32, "segment": 1 << 28}),
        ("all_to_all", {"size": 1 << 32, "segment": 1 << 28}),
    ],
)
def test_more_memory_than_a_workload_may_have_is_refused_with_the_figures(kind: str, options: dict[str, Any]) -> None:
    host = make_host("mrc", [])
    answer = ask(host, {**PREPARE, "kind": kind, "ranks": ["h1", "h0"], "options": options})
    assert f"{kind}: rank 1 would need " in answer["error"]
    assert " bytes of memory; 4294967296 of h0's 4294967296 are free: choose a smaller size, " in answer["error"]
    assert holdings(host) == (0, 0)


def test_workloads_of_a_host_share_its_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("endpoint.workloads.table", "endpoint.workloads.workload"):
        monkeypatch.setattr(f"{module}.MEMORY_BYTES_MAX", 4_000_000)
    host = make_host("mrc", [])
    prepare = {**PREPARE, "kind": "incast", "ranks": ["h0", "h1"], "options": {"size": 1 << 16, "depth": 40}}
    assert ask(host, prepare)["ok"]
    answer = ask(host, {**prepare, "name": "b"})
    assert "rank 0 would need 2752497 bytes of memory; 1247503 of h0's 4000000 are free" in answer["error"]
    assert ask(host, {"op": "workload.remove", "name": "a"})["ok"]
    assert ask(host, {**prepare, "name": "b"})["ok"]


ONE_SEND = "num_ranks 2\nrank 0 {\nl1: send 8b to 1\n}\nrank 1 {\nl1: recv 8b from 0\n}\n"


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("write_bw", {"size": 3_950_000}),
        ("write_lat", {"size": 3_950_000}),
        ("mix", {"sizes": [[3_950_000, 1]]}),
        ("schedule", {"segment": 3_950_000}),
    ],
)
def test_the_contents_of_messages_count_as_memory_and_are_not_made_when_they_are_too_many(
    kind: str, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch, tmp_path
) -> None:
    """A rank that only sends has no other memory."""
    for module in ("endpoint.workloads.table", "endpoint.workloads.workload"):
        monkeypatch.setattr(f"{module}.MEMORY_BYTES_MAX", 4_000_000)
    monkeypatch.setattr("endpoint.workloads.contents._pool", lambda seed, size: pytest.fail(f"{size} bytes were made"))
    if kind == "schedule":
        (tmp_path / "one.goal").write_text(ONE_SEND)
        options = {**options, "file": str(tmp_path / "one.goal")}
    host = make_host("mrc", [])
    answer = ask(host, {**PREPARE, "kind": kind, "ranks": ["h0", "h1"], "options": options})
    assert f"{kind}: rank 0 would need " in answer["error"]
    assert " bytes of memory; 4000000 of h0's 4000000 are free: choose a smaller size, " in answer["error"]
    assert holdings(host) == (0, 0)


@pytest.mark.parametrize("kind", ["write_bw", "write_lat", "mix", "all_reduce", "all_to_all"])
def test_memory_that_cannot_be_had_is_refused_and_nothing_is_kept(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    host = make_host("mrc", [])
    made = [0]

    def scarce(size: int) -> bytearray:
        made[0] += 1
        if made[0] == 2:
            raise MemoryError
        return bytearray(size)

    monkeypatch.setattr("endpoint.workloads.link.bytearray", scarce, raising=False)
    ranks = ["h0", "h1"] if kind.startswith("write") else ["h0", "h1", "h2"]
    made[0] = 1 if kind.startswith("write") else 0
    answer = ask(host, {**PREPARE, "kind": kind, "ranks": ranks})
    assert "there is not enough memory for workload 'a'" in answer["error"]
    assert holdings(host) == (0, 0)


@pytest.mark.parametrize("transport", factory.NAMES)
@pytest.mark.parametrize("setting", ["max_send_wr", "max_recv_wr"])
def test_queues_set_shorter_than_a_workload_wants_are_waited_for_or_refused(transport: str, setting: str) -> None:
    host = make_host(transport, [], **{setting: 4})
    assert ask(host, {**PREPARE, "options": {"depth": 100}})["ok"]
    answer = ask(host, connect())
    if setting == "max_recv_wr":
        assert "has 4 receives posted" in answer["error"]
        return
    assert answer["ok"]
    assert ask(host, START)["ok"]
    assert ask(host, {"op": "workload.status", "name": "a"})["result"]["state"] == "running"
