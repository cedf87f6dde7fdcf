"""The socket between a program and its host's agent. Nothing here blocks on the agent without reading what it says."""

import array
import json
import os
import select
import socket
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from common import unix_socket, uverbs
from mrclab.errors import DeviceGoneError, RefusedError

NO_DESCRIPTOR = "this process must have a free descriptor (RLIMIT_NOFILE)"
"""Why an answer came without the descriptor that the agent had sent with it: the kernel has dropped it."""
_NET_UNIX = Path("/proc/thread-self/net/unix")
_ANSWER_S = 30.0
_STEPPED_ANSWER_S = 3600.0  # in virtual time programs have turns, and who waits too long for one ends the run
_ONE_DESCRIPTOR = socket.CMSG_LEN(array.array("i").itemsize)


def get_device_list() -> list[str]:
    """The NICs that a program in this network namespace can open, by the names of their hosts: one, or none."""
    try:
        return uverbs.hosts(_NET_UNIX.read_text())
    except OSError:
        return []


def in_virtual_time() -> bool:
    """Whether this process was started in a simulated host and has not opened its NIC yet."""
    return uverbs.STEPPED in os.environ


class Connection:
    """`on_completion` gets every completion, in order, whenever a message with some is read."""

    def __init__(self, host: str | None, on_completion: Callable[[uverbs.CompletionRow], None]) -> None:
        """Raises `DeviceGoneError` when there is no such NIC here."""
        self._on_completion = on_completion
        self._answers: dict[int, tuple[dict[str, Any], int | None]] = {}
        self._last_id = 0
        self._poll = select.poll()
        self._now_ns = self._taken = 0
        inherited = os.environ.pop(uverbs.STEPPED, None)
        self.stepped = inherited is not None
        """Whether this program lives in virtual time: its socket was there before it began, and time waits for it."""
        self._socket = self._connect(host) if inherited is None else self._inherit(host, inherited)
        self._socket.setblocking(False)

    def _inherit(self, host: str | None, inherited: str) -> socket.socket:
        """The socket that the world has made for this process, which is for one context."""
        descriptor, _, self.host = inherited.partition(":")
        if host not in (None, self.host):
            raise DeviceGoneError(f"no NIC of {host} here: this program runs in {self.host}")
        os.set_inheritable(int(descriptor), False)
        return socket.socket(fileno=int(descriptor))

    def _connect(self, host: str | None) -> socket.socket:
        devices = get_device_list()
        if host is None and len(devices) != 1:
            state = f"it has those of {', '.join(devices)}: name one" if devices else "it has none"
            raise DeviceGoneError(f"this network namespace must have one NIC, and {state} (run inside a host)")
        self.host = devices[0] if host is None else host
        try:
            return unix_socket.connected(uverbs.address(self.host), socket.SOCK_SEQPACKET)
        except unix_socket.ForeignSocketError as error:  # an abstract socket has no folder that would keep others out
            raise DeviceGoneError(
                f"the socket of {self.host} belongs to user {error.user}, not to the lab or to you"
            ) from None
        except OSError as error:
            there = f"; there is {', '.join(devices)}" if devices else ""
            raise DeviceGoneError(f"no NIC of {self.host} in this network namespace{there}") from error

    def now_ns(self) -> int:
        """The lab's time, as its journal has it: CLOCK_MONOTONIC, or virtual time."""
        return self._now_ns if self.stepped else time.monotonic_ns()

    def fileno(self) -> int:
        """Readable when `receive` has something to take."""
        return self._socket.fileno()

    def call(self, op: str, **arguments: Any) -> Any:
        """One verb and its result. Raises `RefusedError` with the agent's words."""
        return self.call_for_descriptor(op, **arguments)[0]

    def call_and_wait(self, op: str, **arguments: Any) -> Any:
        """A verb that the agent answers when something has happened; the lab's time goes on meanwhile."""
        ident = self._ask(op, arguments)
        while ident not in self._answers:
            self.wait(None)
        return self._answer(ident, op)[0]

    def call_for_descriptor(self, op: str, **arguments: Any) -> tuple[Any, int | None]:
        """One verb, its result and the descriptor that came with it, if one did."""
        return self._answer(self._ask(op, arguments), op)

    def _ask(self, op: str, arguments: dict[str, Any]) -> int:
        ident = self._last_id = self._last_id % 0xFFFFFFFF + 1
        message = json.dumps({"id": ident, "op": op, **arguments}).encode()
        if len(message) > uverbs.MESSAGE_BYTES_MAX:
            raise RefusedError(f"{op}: the request has {len(message)} bytes; {uverbs.MESSAGE_BYTES_MAX} are the most")
        self._send(message)
        return ident

    def post(self, requests: Iterable[uverbs.Request], *, wait: bool = False) -> None:
        """Work requests, as many to a message as fit; `wait` until they are in force."""
        rows = list(requests)
        for first in range(0, len(rows), uverbs.ROWS_MAX):
            last = first + uverbs.ROWS_MAX >= len(rows)
            self._last_id = self._last_id % 0xFFFFFFFF + 1
            self._send(
                uverbs.pack_requests(rows[first : first + uverbs.ROWS_MAX], self._last_id if wait and last else 0)
            )
        if wait and rows:
            self._answer(self._last_id, "post_recv")

    def arm(self, arm: uverbs.Arm) -> None:
        """Ask for an event of a queue on its channel."""
        self._send(uverbs.pack_arm(arm))

    def _answer(self, ident: int, op: str) -> tuple[Any, int | None]:
        deadline_s = time.monotonic() + (_STEPPED_ANSWER_S if self.stepped else _ANSWER_S)
        while ident not in self._answers:
            if not self.receive(deadline_s - time.monotonic()) and time.monotonic() >= deadline_s:
                raise DeviceGoneError(f"the agent of {self.host} did not answer {op} within {_ANSWER_S:g} s")
        answer, descriptor = self._answers.pop(ident)
        if not answer.get("ok"):
            raise RefusedError(str(answer.get("error", "refused without a reason")))
        return answer.get("result"), descriptor

    def receive(self, timeout_s: float | None = 0.0) -> bool:
        """Take in everything that has come; wait up to `timeout_s` (None: for ever) for the first of it."""
        taken = self._take()
        if not taken and (timeout_s is None or timeout_s > 0):
            self._wait(select.POLLIN, timeout_s)
            taken = self._take()
        return taken

    def wait(self, timeout_s: float | None) -> None:
        """Sleep until something comes, or `timeout_s` have passed (None: for ever), and take it in. In virtual time the
        lab goes on from here, and nowhere else."""
        if not self.stepped:
            self.receive(timeout_s)
        elif not self._take():
            until_ns = None if timeout_s is None else self._now_ns + max(1, round(timeout_s * 1e9))
            self._send(uverbs.pack_wait(self._taken, until_ns))
            self._wait(select.POLLIN, None)
            self._take()

    def close(self) -> None:
        for _, descriptor in self._answers.values():
            if descriptor is not None:
                os.close(descriptor)
        self._answers.clear()
        self._socket.close()

    def _send(self, message: bytes) -> None:
        while True:
            try:
                self._socket.send(message)
                return
            except BlockingIOError:
                # The agent does not read those who do not: take what it says while there is no room.
                self._wait(select.POLLIN | select.POLLOUT, None)
                self._take()
            except OSError as error:
                self._take()  # its last words
                raise DeviceGoneError(f"the agent of {self.host} is gone: {error.strerror}") from error

    def _wait(self, events: int, timeout_s: float | None) -> None:
        self._poll.register(self._socket, events)
        self._poll.poll(None if timeout_s is None else max(0.0, timeout_s) * 1e3)

    def _take(self) -> bool:
        taken = False
        while True:
            try:
                message, descriptor = self._message()
            except BlockingIOError:
                return taken
            except ConnectionResetError:
                continue  # told once, and before the messages that still wait: the reason may be among them
            except OSError as error:
                raise DeviceGoneError(f"the agent of {self.host} is gone: {error.strerror}") from error
            if not message:
                raise DeviceGoneError(f"the agent of {self.host} has ended")
            taken = True
            self._taken += 1
            if message[0] == uverbs.TIME:
                self._now_ns = uverbs.unpack_time(message)
                continue
            if message[0] == uverbs.COMPLETIONS:
                for row in uverbs.unpack_completions(message):
                    self._on_completion(row)
                continue
            answer = json.loads(message)
            if answer["id"] is None:
                raise DeviceGoneError(f"the agent of {self.host} has cut this program off: {answer['error']}")
            self._answers[answer["id"]] = answer, descriptor

    def _message(self) -> tuple[bytes, int | None]:
        message, ancillary, _, _ = self._socket.recvmsg(uverbs.MESSAGE_BYTES_MAX, _ONE_DESCRIPTOR)
        for level, kind, data in ancillary:
            if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                return message, array.array("i", data)[0]
        return message, None
