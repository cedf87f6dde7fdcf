"""JSON lines over a Unix socket: the agent's server, driven by the driver's loop, and a client for it."""

from __future__ import annotations

import contextlib
import json
import os
import socket
from collections.abc import Callable, Mapping
from typing import Any

from endpoint.driver import Driver
from endpoint.host import Reply

LINE_BYTES_MAX = 16 << 20
CLIENTS_MAX = 64
"""Clients at a time: `select`, which the driver waits with, takes no descriptor above 1023."""
_SEND_TIMEOUT_S = 2.0

Handler = Callable[[Mapping[str, Any], Reply], None]


class ControlServer:
    """Listens on `path` and hands each request to `handler` with a way to answer it, now or later.

    A socket file that nobody listens on is replaced; one that somebody does is an error. Closing removes the file.
    """

    def __init__(self, path: str, driver: Driver, handler: Handler) -> None:
        self._path = path
        self._driver = driver
        self._handler = handler
        self._clients: dict[int, _Client] = {}
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
        try:
            _remove_stale(path)
            self._listener.bind(path)
        except OSError as error:
            self._listener.close()
            raise OSError(f"cannot listen on control socket {path}: {error.strerror or error}") from error
        self._listener.listen()
        self._listener.setblocking(False)
        driver.add_reader(self._listener.fileno(), self._accept)

    def close(self) -> None:
        for client in list(self._clients.values()):
            self._drop(client)
        self._driver.remove_reader(self._listener.fileno())
        self._listener.close()
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self._path)

    def _accept(self) -> None:
        try:
            accepted, _ = self._listener.accept()
        except OSError:
            return
        if len(self._clients) >= CLIENTS_MAX:
            _refuse(accepted, f"{CLIENTS_MAX} clients are connected; close one first")
            return
        accepted.settimeout(_SEND_TIMEOUT_S)
        client = _Client(accepted)
        self._clients[accepted.fileno()] = client
        self._driver.add_reader(accepted.fileno(), lambda: self._read(client))

    def _read(self, client: _Client) -> None:
        try:
            data = client.socket.recv(1 << 16)
        except OSError:
            data = b""
        client.buffer += data
        if not data or len(client.buffer) > LINE_BYTES_MAX:
            self._drop(client)
            return
        *lines, rest = client.buffer.split(b"\n")
        client.buffer = rest
        for line in lines:
            self._request(client, line)

    def _request(self, client: _Client, line: bytes) -> None:
        def reply(answer: dict[str, Any]) -> None:
            if client.open:
                try:
                    client.socket.sendall(json.dumps(answer).encode() + b"\n")
                except OSError:  # gone, or not reading: its requests were carried out all the same
                    self._drop(client)

        try:
            request = json.loads(line)
        except (ValueError, RecursionError) as error:
            reply({"id": None, "ok": False, "error": f"not a JSON line: {error}"})
            return
        if not isinstance(request, dict) or isinstance(request.get("id"), (dict, list)):
            reply({"id": None, "ok": False, "error": 'a request is an object such as {"id": 1, "op": "ping"}'})
            return
        try:
            self._handler(request, reply)
        except RecursionError:  # what could just be parsed is too deep to be shown in a complaint
            reply({"id": request.get("id"), "ok": False, "error": "the request is nested too deeply"})

    def _drop(self, client: _Client) -> None:
        if client.open:
            client.open = False
            self._driver.remove_reader(client.socket.fileno())
            self._clients.pop(client.socket.fileno(), None)
            client.socket.close()


class _Client:
    def __init__(self, accepted: socket.socket) -> None:
        self.socket = accepted
        self.buffer = b""
        self.open = True


def _refuse(accepted: socket.socket, why: str) -> None:
    accepted.setblocking(False)
    with accepted, contextlib.suppress(OSError):
        accepted.send(json.dumps({"id": None, "ok": False, "error": why}).encode() + b"\n")


def _remove_stale(path: str) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            probe.connect(path)
        except ConnectionRefusedError:
            os.unlink(path)
        except FileNotFoundError:
            return
        else:
            raise OSError("another agent answers there")


class AgentError(RuntimeError):
    """The agent refused an operation, or does not answer."""


class AgentTimeoutError(AgentError):
    """The agent has not answered yet; the answer may still come."""


class AgentClient:
    """One connection to an agent. Requests may be sent ahead; answers are matched by their id."""

    def __init__(self, path: str, timeout_s: float = 30.0) -> None:
        self.path = path
        self._timeout_s = timeout_s
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
        try:
            self._socket.connect(path)
        except OSError as error:
            self._socket.close()
            raise AgentError(f"no agent answers on {path}: {error.strerror}") from error
        self._lines = b""
        self._next_id = 1
        self._answers: dict[int, dict[str, Any]] = {}

    def call(self, op: str, timeout_s: float | None = None, **arguments: Any) -> Any:
        """Carry out one operation and return its result. Raises AgentError with the agent's complaint."""
        return self.result(self.send(op, **arguments), timeout_s)

    def send(self, op: str, **arguments: Any) -> int:
        """Send a request without waiting; `result` takes the answer."""
        ident = self._next_id
        self._next_id += 1
        try:
            self._socket.sendall(json.dumps({"id": ident, "op": op, **arguments}).encode() + b"\n")
        except OSError as error:
            why = self._last_words() or f"the agent on {self.path} is gone: {error.strerror}"
            raise AgentError(why) from error
        return ident

    def result(self, ident: int, timeout_s: float | None = None) -> Any:
        """Wait for the answer to that request. Raises AgentError, or AgentTimeoutError after `timeout_s`."""
        limit_s = self._timeout_s if timeout_s is None else timeout_s
        self._socket.settimeout(limit_s)
        while ident not in self._answers:
            line = self._read_line(limit_s)
            answer = json.loads(line)
            if answer.get("id") is None:  # not about a request: the agent refuses to talk
                raise AgentError(answer.get("error", f"the agent on {self.path} said {answer}"))
            self._answers[answer["id"]] = answer
        answer = self._answers.pop(ident)
        if not answer["ok"]:
            raise AgentError(answer["error"])
        return answer["result"]

    def close(self) -> None:
        self._socket.close()

    def _last_words(self) -> str | None:
        """What the agent said before it closed the connection."""
        self._socket.settimeout(0.1)
        try:
            answer = json.loads(self._read_line(0.1))
        except (AgentError, ValueError):
            return None
        error = answer.get("error") if isinstance(answer, dict) else None
        return error if isinstance(error, str) else None

    def _read_line(self, limit_s: float) -> bytes:
        while b"\n" not in self._lines:
            try:
                data = self._socket.recv(1 << 16)
            except TimeoutError as error:
                raise AgentTimeoutError(f"the agent on {self.path} did not answer within {limit_s:g} s") from error
            except OSError as error:
                raise AgentError(f"the agent on {self.path} is gone: {error.strerror}") from error
            if not data:
                raise AgentError(f"the agent on {self.path} closed the connection")
            self._lines += data
        line, self._lines = self._lines.split(b"\n", 1)
        return line
