"""Requests to a NIC under test, out of band: a line each way, as docs/conformance.md defines it.

    reset                           ok
    open psn=7 mpr=8 wimm=32        ok qpn=256 va=4294967296 rkey=48879 bytes=65536
    port number=2 up=0              unsupported

An answer is `ok` with values, `no` with a reason, or `unsupported`.
"""

from __future__ import annotations

import contextlib
import os
import select
import socket
import subprocess
import time
from pathlib import Path
from typing import Protocol

from common.outcome import error_line
from common.unix_socket import connected
from conform.nic.device_file import Control
from conform.nic.link import Link

LINE_BYTES_MAX = 32768


class ControlError(RuntimeError):
    """The device's control channel cannot be used; the message says why."""


class Channel(Protocol):
    """Asks the device."""

    def ask(self, line: str, link: Link | None = None) -> str:
        """The answer; frames of `link` are taken meanwhile. Raises `ControlError` if there is none in time."""

    def close(self) -> None:
        """End it, with the program behind it if the tester started one."""


class Lines:
    """Lines over two descriptors, each answer within a bound of time and bytes."""

    def __init__(self, reading: int, writing: int, answer_s: float) -> None:
        self._reading, self._writing, self._answer_s = reading, writing, answer_s
        self._held = b""

    def ask(self, line: str, link: Link | None = None) -> str:
        until = time.monotonic() + self._answer_s
        word = line.partition(" ")[0]
        try:
            os.write(self._writing, line.encode() + b"\n")
        except OSError as error:
            raise ControlError(f"the device takes no request: {error_line(error)}") from None
        while b"\n" not in self._held:
            wait_s = until - time.monotonic()
            ready = select.select([self._reading, *(link.files() if link else ())], [], [], max(wait_s, 0))[0]
            if link is not None:
                link.pump()
            if wait_s > 0 and ready and self._reading not in ready:
                continue
            if self._reading not in ready:
                raise ControlError(f"the device has not answered {word!r} within {self._answer_s:g} s")
            try:
                found = os.read(self._reading, LINE_BYTES_MAX)
            except OSError as error:
                raise ControlError(f"the device's answers cannot be read: {error_line(error)}") from None
            if not found or len(self._held) > LINE_BYTES_MAX:
                raise ControlError(f"the device ended, or answered more than a line, at {word!r}")
            self._held += found
        answer, _, self._held = self._held.partition(b"\n")
        return answer.decode("utf-8", "replace").strip()


class CommandChannel(Lines):
    """A program that the tester starts; requests on its stdin, answers on its stdout."""

    def __init__(self, control: Control) -> None:
        try:
            self._process = subprocess.Popen(control.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        except OSError as error:
            raise ControlError(f"the control command cannot be started: {error_line(error)}") from None
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        super().__init__(self._process.stdout.fileno(), self._process.stdin.fileno(), control.answer_s)

    def close(self) -> None:
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):
            self._process.stdin.close()
        try:
            self._process.wait(1)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()


class SocketChannel(Lines):
    """A Unix socket, or TCP to HOST:PORT."""

    def __init__(self, control: Control) -> None:
        try:
            if control.unix:
                self._socket = connected(Path(control.unix), limit_s=control.answer_s)
            else:
                host, _, port = control.tcp.rpartition(":")
                self._socket = socket.create_connection((host.strip("[]"), int(port)), control.answer_s)
        except (OSError, ValueError) as error:
            raise ControlError(f"no device listens at {control.unix or control.tcp}: {error_line(error)}") from None
        self._socket.settimeout(None)
        super().__init__(self._socket.fileno(), self._socket.fileno(), control.answer_s)

    def close(self) -> None:
        self._socket.close()


def channel(control: Control) -> Channel:
    """The channel that the device file names. Raises `ControlError`."""
    return CommandChannel(control) if control.command else SocketChannel(control)


def values(answer: str) -> dict[str, str]:
    """The values of an answer that begins with `ok`."""
    return dict(word.partition("=")[::2] for word in answer.split()[1:])
