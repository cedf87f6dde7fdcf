"""A client for JSON-line control sockets: a switch process over loopback TCP, an agent over a Unix socket."""

from __future__ import annotations

import json
import socket
import threading
from pathlib import Path
from typing import Any

TIMEOUT_S = 10.0


class ControlError(RuntimeError):
    """The other side refused or is not there; the message is its own where it sent one."""


class ControlClient:
    """One connection, made when first used and again after it broke. Threads may share it."""

    def __init__(self, address: str | Path) -> None:
        """`address` is HOST:PORT, or the path of a Unix socket."""
        self.address = address
        self._lock = threading.Lock()
        self._socket: socket.socket | None = None
        self._buffer = b""
        self._id = 0

    def call(self, op: str, **arguments: Any) -> Any:
        """The result of one operation. ControlError when it is refused or nobody answers."""
        with self._lock:
            self._id += 1
            request = json.dumps({"id": self._id, "op": op, **arguments}).encode() + b"\n"
            try:
                answer = self._exchange(request)
            except OSError as error:
                self.close()
                raise ControlError(f"{op}: control socket {self.address}: {error}") from None
        if not answer.get("ok"):
            raise ControlError(f"{op}: {answer.get('error', 'refused without a reason')}")
        return answer.get("result")

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
        self._socket, self._buffer = None, b""

    def _exchange(self, request: bytes) -> dict[str, Any]:
        if self._socket is None:
            self._socket = self._connect()
        self._socket.sendall(request)
        while True:
            while b"\n" not in self._buffer:
                data = self._socket.recv(1 << 16)
                if not data:
                    raise ConnectionResetError("closed by the other side")
                self._buffer += data
            line, _, self._buffer = self._buffer.partition(b"\n")
            try:
                answer = json.loads(line)
            except ValueError:
                raise OSError(f"not JSON: {line[:80]!r}") from None
            if isinstance(answer, dict) and answer.get("id") == self._id:
                return answer

    def _connect(self) -> socket.socket:
        if isinstance(self.address, Path):
            sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            sock.settimeout(TIMEOUT_S)
            try:
                sock.connect(str(self.address))
            except OSError:
                sock.close()
                raise
            return sock
        host, _, port = self.address.rpartition(":")
        sock = socket.create_connection((host, int(port)), timeout=TIMEOUT_S)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return sock
