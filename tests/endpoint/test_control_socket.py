"""The control socket: how many may talk to an agent, and what the rest is told."""

import os
import resource
import select
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest

from common import server as servers
from common.client import ControlClient, ControlError
from common.server import ControlServer, Reply
from endpoint.host import HostNic
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


def test_a_client_beyond_the_limit_takes_the_place_of_the_one_that_was_silent_longest(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(servers, "CLIENTS_MAX", 3)
    driver, path = FakeDriver(), tmp_path / "s"
    server = ControlServer(path, driver, pong, line_bytes_max=1000)
    (accept,) = driver.readers.values()
    clients = []
    for _ in range(4):
        clients.append(ControlClient(path, timeout_s=5))
        accept()
    assert len(driver.readers) == 1 + 3
    with pytest.raises(ControlError, match=r"closed the connection|is gone"):
        clients[0].call("ping")
    assert answered(clients[3], driver) == "pong"
    for client in clients:
        client.close()
    server.close()
    assert driver.readers == {}
    assert not path.exists()


def test_clients_beyond_the_limit_are_told_so_while_all_others_wait_for_answers(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(servers, "CLIENTS_MAX", 3)
    driver, path = FakeDriver(), tmp_path / "s"
    server = ControlServer(path, driver, lambda request, reply: None, line_bytes_max=1000)
    (accept,) = driver.readers.values()
    clients = []
    for _ in range(3):
        clients.append(ControlClient(path, timeout_s=5))
        accept()
        clients[-1].send("ping")
        list(driver.readers.values())[-1]()
    late = ControlClient(path, timeout_s=5)
    accept()
    assert len(driver.readers) == 1 + 3
    with pytest.raises(ControlError, match="3 clients are connected; close one first"):
        late.call("ping")
    for client in (*clients, late):
        client.close()
    server.close()


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
