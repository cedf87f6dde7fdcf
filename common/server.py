"""The answering side of a control socket: JSON lines over loopback TCP or a Unix socket (docs/contracts.md).

Requests are hostile: a client that sends bad bytes gets an error or is cut off, and no other client notices. Over TCP,
which a page in a browser reaches too, the first line that is no request ends the connection, so that the body of an
HTTP request is never read.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import select
import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Protocol

from common import unix_socket

__all__ = ["ControlServer", "Readers", "Reply", "ThreadReaders"]

CLIENTS_MAX = 64
"""Clients at a time. One more takes the place of the client that has been silent longest and waits for no answer."""
UNSENT_BYTES_MAX = 16 << 20
"""Bytes of answers that wait for a client to read. A client with more of them is disconnected at its next answer."""
_LOOK_S = 1.0
"""After so long a thread looks whether its descriptor is still to be watched."""
_LAST_ANSWERS_S = 2.0
"""How long a server that closes waits for clients to read."""
_PAUSE_S = 0.01

Reply = Callable[[dict[str, Any]], None]
"""Takes the answer `{"id", "ok", "result" | "error"}`."""
Handler = Callable[[Mapping[str, Any], Reply], None]
"""Carries out one request and answers, now or later."""


class Readers(Protocol):
    """Calls back when a descriptor can be read: the process's own loop (such as asyncio's), or `ThreadReaders`."""

    def add_reader(self, descriptor: int, callback: Callable[[], None], /) -> object: ...
    def remove_reader(self, descriptor: int, /) -> object: ...


class Loop(Readers, Protocol):
    """Calls back as well when a descriptor can be written to."""

    def add_writer(self, descriptor: int, callback: Callable[[], None], /) -> object: ...
    def remove_writer(self, descriptor: int, /) -> object: ...


class ThreadReaders:
    """Waits for each descriptor in a separate thread: a slow request holds up its own connection only."""

    def __init__(self) -> None:
        self._active: dict[tuple[int, int], object] = {}

    def add_reader(self, descriptor: int, callback: Callable[[], None]) -> None:
        self._start(descriptor, select.POLLIN, callback)

    def remove_reader(self, descriptor: int) -> None:
        """The descriptor's thread ends when it becomes readable, as by a shutdown, or within _LOOK_S."""
        self._active.pop((descriptor, select.POLLIN), None)

    def add_writer(self, descriptor: int, callback: Callable[[], None]) -> None:
        self._start(descriptor, select.POLLOUT, callback)

    def remove_writer(self, descriptor: int) -> None:
        """The descriptor's thread ends when it becomes writable, as by a shutdown, or within _LOOK_S."""
        self._active.pop((descriptor, select.POLLOUT), None)

    def _start(self, descriptor: int, event: int, callback: Callable[[], None]) -> None:
        token = self._active[descriptor, event] = object()
        watched = descriptor, event, token, callback
        threading.Thread(target=self._watch, args=watched, name="control", daemon=True).start()

    def _watch(self, descriptor: int, event: int, token: object, callback: Callable[[], None]) -> None:
        poll = select.poll()
        poll.register(descriptor, event)
        while self._active.get((descriptor, event)) is token:
            # A shutdown wakes the kernel's poll, which looks at the number again: where another connection has it by
            # then, it goes on waiting, and wakes for neither.
            ready = poll.poll(_LOOK_S * 1000)
            if ready and self._active.get((descriptor, event)) is token:  # not another connection's by now
                callback()


class ControlServer:
    """Listens on `address`, HOST:PORT or the path of a Unix socket, and hands each request to `handler`.

    A socket file without a listener is replaced. Closing ends every connection and removes the file.

    Answers that a client doesn't read wait here, and the client's next requests wait until it has read them: the loop
    never waits for a client.
    """

    def __init__(
        self,
        address: str | Path,
        loop: Loop,
        handler: Handler,
        *,
        line_bytes_max: int,
        forget: Callable[[Iterable[Reply]], None] = lambda replies: None,
    ) -> None:
        """`forget` is called with replies that a handler still owes to a client that has left.

        Raises OSError when the address is taken or malformed, ValueError for a path that is too long.
        """
        self._loop = loop
        self._handler = handler
        self._forget = forget
        self._line_bytes_max = line_bytes_max
        self._clients: set[_Client] = set()
        self._accepting = threading.Lock()
        """Held while a client is accepted: one that came later than `close` looked would keep its connection."""
        self._closed = False
        self._path = address if isinstance(address, Path) else None
        if self._path is not None:
            unix_socket.check(self._path)
        try:
            self._listener = _listen_on_path(address) if isinstance(address, Path) else _listen_on_port(address)
        except OSError as error:
            why = error.strerror or error  # of a stranger's socket: whose it is
            raise OSError(f"cannot listen on {address}: {why}") from error
        self._listener.setblocking(False)
        self._spare: int | None = None
        """A descriptor that is given up to turn a client away when no other is free."""
        self._keep_spare()
        loop.add_reader(self._listener.fileno(), self._accept)

    @property
    def address(self) -> str:
        """The address that the server listens on, with the port that the system chose for port 0."""
        if self._path is not None:
            return str(self._path)
        host, port = self._listener.getsockname()[:2]
        return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"

    def close(self) -> None:
        self._loop.remove_reader(self._listener.fileno())
        with self._accepting:
            self._closed = True
            _end(self._listener)
            if self._spare is not None:
                os.close(self._spare)
                self._spare = None
        until_s = time.monotonic() + _LAST_ANSWERS_S
        for client in list(self._clients):
            with client.sending, contextlib.suppress(OSError):
                client.socket.settimeout(max(0.0, until_s - time.monotonic()))
                client.socket.sendall(client.unsent)
            self._drop(client)
        if self._path is not None:
            self._path.unlink(missing_ok=True)

    def _accept(self) -> None:
        with self._accepting:
            if not self._closed:
                self._accept_one()

    def _accept_one(self) -> None:
        self._keep_spare()
        try:
            accepted, _ = self._listener.accept()
        except OSError as error:
            if error.errno in (errno.EMFILE, errno.ENFILE):
                self._turn_away()
            return
        if len(self._clients) >= CLIENTS_MAX:
            idle = [client for client in list(self._clients) if not (client.owed or client.unsent or client.lines)]
            if idle:
                self._drop(min(idle, key=lambda client: client.heard_s))
        if len(self._clients) >= CLIENTS_MAX:
            _refuse(accepted, f"{CLIENTS_MAX} clients are connected; close one first")
            return
        accepted.setblocking(False)
        if accepted.family != socket.AF_UNIX:
            accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        client = _Client(accepted)
        self._clients.add(client)
        self._loop.add_reader(client.descriptor, lambda: self._read(client))

    def _turn_away(self) -> None:
        """Refuse the next client. One that waited for a free descriptor would wake the loop again and again."""
        if self._spare is not None:
            os.close(self._spare)
            self._spare = None
        try:
            accepted, _ = self._listener.accept()
        except OSError:  # another thread has taken the descriptor
            time.sleep(_PAUSE_S)
        else:
            _refuse(accepted, "no descriptor is free; close files or clients of this process first")
        self._keep_spare()

    def _keep_spare(self) -> None:
        if self._spare is None:
            with contextlib.suppress(OSError):
                self._spare = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)

    def _read(self, client: _Client) -> None:
        with client.receiving:
            try:
                data = client.socket.recv(1 << 16)
            except BlockingIOError:
                return
            except OSError:
                data = b""
            client.heard_s = time.monotonic()
            *lines, client.rest = (client.rest + data).split(b"\n")
            too_long = len(client.rest) > self._line_bytes_max
            client.lines.extend(lines)
        self._carry_out(client)
        if too_long:
            self._send(client, _refusal(None, f"a line above {self._line_bytes_max} bytes"))
            data = b""
        if not data:
            self._drop(client)

    def _carry_out(self, client: _Client) -> None:
        """Carry out the requests that were read, until the client has an answer to read first."""
        try:
            with client.serving:
                while client.lines and not client.unsent and client in self._clients:
                    self._request(client, client.lines.popleft())
        except BaseException:
            self._drop(client)
            raise

    def _request(self, client: _Client, line: bytes) -> None:
        def reply(answer: dict[str, Any]) -> None:
            client.owed.pop(number, None)
            self._send(client, answer)

        if not line.strip():
            return
        number = client.asked = client.asked + 1
        client.owed[number] = reply
        try:
            request = json.loads(line)
        except (ValueError, RecursionError) as error:
            reply(_refusal(None, f"not a JSON line: {error}"))
            self._drop_stranger(client)
            return
        if not isinstance(request, dict) or isinstance(request.get("id"), (dict, list)):
            reply(_refusal(None, 'a request is an object such as {"id": 1, "op": "ping"}'))
            self._drop_stranger(client)
            return
        try:
            self._handler(request, reply)
        except RecursionError:  # JSON that could just be parsed is too deep to be shown in a complaint
            reply(_refusal(request.get("id"), "the request is nested too deeply"))

    def _send(self, client: _Client, answer: dict[str, Any]) -> None:
        with client.sending:
            if len(client.unsent) > UNSENT_BYTES_MAX:
                self._drop(client)
            if client not in self._clients:  # its requests were carried out all the same
                return
            blocked = bool(client.unsent)
            client.unsent += _line(answer)
            if not blocked and not self._flush(client):
                self._loop.remove_reader(client.descriptor)
                self._loop.add_writer(client.descriptor, lambda: self._write(client))

    def _flush(self, client: _Client) -> bool:
        """Send what the socket takes; False if that is not all, and the client is still there."""
        try:
            del client.unsent[: client.socket.send(client.unsent)]
        except BlockingIOError:
            pass
        except OSError:
            self._drop(client)
        return not client.unsent or client not in self._clients

    def _write(self, client: _Client) -> None:
        """The client has read something."""
        with client.sending:
            if not self._flush(client):
                return
            self._loop.remove_writer(client.descriptor)
        self._carry_out(client)
        with client.sending:
            if client in self._clients and not client.unsent:
                self._loop.add_reader(client.descriptor, lambda: self._read(client))

    def _drop_stranger(self, client: _Client) -> None:
        if self._path is None:
            self._drop(client)

    def _drop(self, client: _Client) -> None:
        with client.sending:
            if client not in self._clients:
                return
            self._clients.remove(client)
            self._loop.remove_reader(client.descriptor)
            self._loop.remove_writer(client.descriptor)
            _end(client.socket)
        self._forget(client.owed.values())


class _Client:
    def __init__(self, accepted: socket.socket) -> None:
        self.socket = accepted
        self.descriptor = accepted.fileno()
        self.receiving = threading.Lock()
        """Held from a receive until its bytes are in `lines` and `rest`: a thread whose reader was removed while it
        woke up reads once more, maybe beside the thread of the next reader."""
        self.rest = b""
        self.lines = deque[bytes]()
        """Requests that were read and are not carried out yet."""
        self.serving = threading.Lock()
        self.unsent = bytearray()
        """Answers that the client has not read; it is not read either while there are any."""
        self.sending = threading.RLock()
        self.asked = 0
        self.owed: dict[int, Reply] = {}
        """Of the requests that wait for their answer, by their number."""
        self.heard_s = time.monotonic()
        """When it last sent something."""


def _refusal(ident: object, why: str) -> dict[str, Any]:
    return {"id": ident, "ok": False, "error": why}


def _refuse(accepted: socket.socket, why: str) -> None:
    """Say why to a client that is not let in, and close its connection."""
    accepted.setblocking(False)
    with accepted, contextlib.suppress(OSError):
        accepted.send(_line(_refusal(None, why)))


def _line(answer: dict[str, Any]) -> bytes:
    return json.dumps(answer, separators=(",", ":")).encode() + b"\n"


def _end(ended: socket.socket) -> None:
    """Close a socket, also for threads that wait for it."""
    with contextlib.suppress(OSError):
        ended.shutdown(socket.SHUT_RDWR)
    ended.close()


def _listen_on_port(address: str) -> socket.socket:
    host, _, port = address.rpartition(":")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    return socket.create_server((host.strip("[]"), int(port)), family=family)


def _listen_on_path(path: Path) -> socket.socket:
    try:
        unix_socket.connected(path).close()
    except ConnectionRefusedError:
        path.unlink()
    except FileNotFoundError:
        pass
    else:
        raise OSError("another process answers there")
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        os.fchmod(listener.fileno(), 0o600)  # before it has a name: the file is made with this mode
        listener.bind(str(path))
        listener.listen()
    except OSError:
        listener.close()
        raise
    return listener
