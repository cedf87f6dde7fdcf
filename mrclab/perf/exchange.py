"""The TCP connection of a test, as perftest has one: it carries numbers that verbs need, and keeps both in step."""

from __future__ import annotations

import json
import select
import socket
import time
from typing import Any

from common.plain_file import text_fault
from mrclab.context import Context
from mrclab.cq import CQ, WC

_CONNECT_S = 10.0
_LINE_BYTES_MAX = 1 << 20


class PeerGoneError(RuntimeError):
    """The other end of the test has ended, or says what no such test would."""


class Exchange:
    """Connects to `servername`, or, without one, waits for a client."""

    def __init__(self, servername: str | None, port: int) -> None:
        """Raises OSError when the peer does not listen there within some seconds, or the port is taken."""
        self._rest = b""
        if servername is not None:
            self._socket = _connect(servername, port)
        else:
            with socket.create_server(("::", port), family=socket.AF_INET6, dualstack_ipv6=True) as listener:
                self._socket, _ = listener.accept()
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def __enter__(self) -> Exchange:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def swap(self, mine: Any) -> Any:
        """Tell the other end something; returns its message of the same step. Raises `PeerGoneError`."""
        try:
            self._socket.sendall(json.dumps(mine).encode() + b"\n")
            while b"\n" not in self._rest:
                self._read()
            line, _, self._rest = self._rest.partition(b"\n")
            return json.loads(line)
        except (OSError, ValueError) as error:
            raise PeerGoneError(f"the other end is gone: {text_fault(error)}") from error

    def wait(self, context: Context, cq: CQ) -> list[WC]:
        """Completions, as soon as there are any. Raises `PeerGoneError` when the other end goes meanwhile."""
        waits = select.poll()
        waits.register(context.fileno(), select.POLLIN)
        waits.register(self._socket, select.POLLIN)
        while not (completions := cq.poll(256)):
            if self._socket.fileno() in dict(waits.poll()):  # a peer that is a step ahead may still end
                self._read()
        return completions

    def _read(self) -> None:
        """Read what the other end has said, for `swap`."""
        try:
            data = self._socket.recv(1 << 16)
        except OSError as error:
            raise PeerGoneError(f"the other end is gone: {text_fault(error)}") from error
        if not data or len(self._rest) > _LINE_BYTES_MAX:
            raise PeerGoneError("the other end has ended the test")
        self._rest += data


def _connect(servername: str, port: int) -> socket.socket:
    """To a server that may be about to start."""
    deadline_s = time.monotonic() + _CONNECT_S
    while True:
        try:
            made = socket.create_connection((servername, port), timeout=_CONNECT_S)
        except ConnectionRefusedError as error:
            if time.monotonic() > deadline_s:
                raise OSError(f"no server on {servername}, port {port}: start it there first") from error
            time.sleep(0.1)  # nothing tells when a foreign port is listened on
        else:
            made.settimeout(None)
            return made
