"""The asking side of a control socket: JSON lines over loopback TCP or a Unix socket (docs/contracts.md)."""

from __future__ import annotations

import json
import socket
import threading
from pathlib import Path
from typing import Any

from common import unix_socket

__all__ = [
    "ControlClient", "ControlError", "ControlForeignError", "ControlGoneError", "ControlRefusedError",
    "ControlTimeoutError",
]  # fmt: skip

TIMEOUT_S = unix_socket.TIMEOUT_S
_LAST_WORDS_S = 0.1


class ControlError(RuntimeError):
    """The other side refused an operation, or does not answer; the message is its own where it sent one."""


class ControlRefusedError(ControlError):
    """The other side has answered, and refused an operation; the message is its own."""


class ControlForeignError(ControlError):
    """The Unix socket belongs to `user`, who is neither root nor the user of this process; None: it is no socket."""

    def __init__(self, message: str, user: int | None) -> None:
        super().__init__(message)
        self.user = user


class ControlGoneError(ControlError):
    """No process listens on a Unix socket any more: its owner has ended, and left the file behind if it was killed."""


class ControlTimeoutError(ControlError):
    """The other side has not answered after `waited_s`; the answer may still come."""

    def __init__(self, message: str, waited_s: float) -> None:
        super().__init__(message)
        self.waited_s = waited_s


class ControlClient:
    """One connection, opened at once. After it has broken, the next request opens it again.

    Requests may be sent ahead: answers are matched by their id. Threads may share a client if they use `call` only.
    """

    def __init__(self, address: str | Path, timeout_s: float = TIMEOUT_S) -> None:
        """`address` is HOST:PORT, `unix:` and a path, or a path.

        Raises ControlError when no process answers there, or another user's (`common.unix_socket.connected`).
        """
        self.address = (unix_socket.path_of(address) if isinstance(address, str) else None) or address
        self._timeout_s = timeout_s
        self._lock = threading.Lock()
        self._socket: socket.socket | None = None
        self._lines = b""
        self._last_id = 0
        self._answers: dict[int, dict[str, Any]] = {}
        self._connect()

    def __enter__(self) -> ControlClient:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def call(self, op: str, timeout_s: float | None = None, **arguments: Any) -> Any:
        """Carry out one operation and return its result. Raises ControlError with the other side's complaint."""
        with self._lock:
            return self.result(self.send(op, **arguments), timeout_s)

    def send(self, op: str, **arguments: Any) -> int:
        """Send a request without waiting; `result` takes the answer."""
        self._last_id += 1
        request = json.dumps({"id": self._last_id, "op": op, **arguments}).encode() + b"\n"
        connected = self._socket or self._connect()
        connected.settimeout(self._timeout_s)
        try:
            connected.sendall(request)
        except OSError as error:
            raise self._broken(self._last_words() or f"is gone: {error.strerror or error}") from error
        return self._last_id

    def result(self, ident: int, timeout_s: float | None = None) -> Any:
        """Wait for the answer to that request. Raises ControlError, or ControlTimeoutError after `timeout_s`."""
        while ident not in self._answers:
            answer = self._next_answer(self._timeout_s if timeout_s is None else timeout_s)
            if answer.get("id") is None:  # not about a request: the other side refuses to talk
                raise ControlError(answer.get("error", f"{self._name} said {answer}"))
            self._answers[answer["id"]] = answer
        answer = self._answers.pop(ident)
        if not answer.get("ok"):
            raise ControlRefusedError(answer.get("error", f"{self._name} refused without a reason"))
        return answer.get("result")

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
        self._socket, self._lines = None, b""
        self._answers.clear()

    @property
    def _name(self) -> str:
        return f"control socket {self.address}"

    def _broken(self, why: str) -> ControlError:
        self.close()
        return ControlError(f"{self._name} {why}")

    def _connect(self) -> socket.socket:
        try:
            if isinstance(self.address, Path):
                made = unix_socket.connected(self.address, limit_s=self._timeout_s)
                made.settimeout(self._timeout_s)
            else:
                host, _, port = self.address.rpartition(":")
                made = socket.create_connection((host.strip("[]"), int(port)), timeout=self._timeout_s)
                made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        except unix_socket.ForeignSocketError as error:
            raise ControlForeignError(f"{self._name} {error.strerror}", error.user) from error
        except OSError as error:
            gone = isinstance(self.address, Path) and isinstance(error, (ConnectionRefusedError, FileNotFoundError))
            kind = ControlGoneError if gone else ControlError
            raise kind(f"no process answers on {self._name}: {error.strerror or error}") from error
        self._socket = made
        return made

    @classmethod
    def of_living(cls, path: Path) -> ControlClient | None:
        """A client of the process that listens on a Unix socket; None if none does, even where the file is left.

        Raises ControlError where a process may listen and cannot be reached.
        """
        try:
            return cls(path)
        except ControlGoneError:
            return None

    @classmethod
    def listens(cls, path: Path) -> bool:
        """Whether a process listens on a Unix socket, ours or another user's, or one that takes no client."""
        try:
            cls(path).close()
        except ControlError as error:
            return not isinstance(error, ControlGoneError)
        return True

    def _last_words(self) -> str | None:
        """The last words of the other side before it closed the connection."""
        try:
            return f"said: {self._next_answer(_LAST_WORDS_S)['error']}"
        except (ControlError, KeyError):
            return None

    def _next_answer(self, limit_s: float) -> dict[str, Any]:
        line = self._read_line(limit_s)
        try:
            answer = json.loads(line)
        except ValueError:
            answer = None
        if not isinstance(answer, dict):
            raise self._broken(f"sent what is no answer: {line[:80]!r}")
        return answer

    def _read_line(self, limit_s: float) -> bytes:
        while b"\n" not in self._lines:
            if self._socket is None:
                raise ControlError(f"{self._name} closed the connection")
            self._socket.settimeout(limit_s)
            try:
                data = self._socket.recv(1 << 16)
            except TimeoutError as error:
                raise ControlTimeoutError(f"{self._name} did not answer within {limit_s:g} s", limit_s) from error
            except OSError as error:
                raise self._broken(f"is gone: {error.strerror or error}") from error
            if not data:
                raise self._broken("closed the connection")
            self._lines += data
        line, _, self._lines = self._lines.partition(b"\n")
        return line
