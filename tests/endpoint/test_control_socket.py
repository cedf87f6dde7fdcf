"""The control socket: how many may talk to an agent, and what the rest is told."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from common import server as servers
from common.client import ControlClient, ControlError
from common.server import ControlServer, Reply


class FakeDriver:
    """Descriptors and what to call when they are readable; a test says when."""

    def __init__(self) -> None:
        self.readers: dict[int, Callable[[], None]] = {}

    def add_reader(self, descriptor: int, callback: Callable[[], None]) -> None:
        self.readers[descriptor] = callback

    def remove_reader(self, descriptor: int) -> None:
        self.readers.pop(descriptor, None)


def pong(request: Mapping[str, Any], reply: Reply) -> None:
    reply({"id": request["id"], "ok": True, "result": "pong"})


def test_a_client_beyond_the_limit_takes_the_place_of_the_one_that_was_silent_longest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
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
    ident = clients[3].send("ping")
    list(driver.readers.values())[-1]()
    assert clients[3].result(ident) == "pong"
    for client in clients:
        client.close()
    server.close()
    assert driver.readers == {}
    assert not path.exists()


def test_clients_beyond_the_limit_are_told_so_while_all_others_wait_for_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
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
