"""Another user of the machine, who listens where the lab does."""

import json
import os
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from common import uverbs
from common.linux.rights import NOBODY

NEEDS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="needs root: acts as another user")


def let_all_enter(folder: Path) -> None:
    """Let every user reach a folder of pytest's, and read what is in it."""
    for each in (folder, *folder.parents):
        if each.stat().st_mode & 0o055 != 0o055:
            each.chmod(each.stat().st_mode | 0o055)


@contextmanager
def as_a_stranger() -> Iterator[None]:
    """What this process does meanwhile, the user `nobody` does."""
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


@contextmanager
def socket_of_a_stranger(place: str, kind: socket.SocketKind = socket.SOCK_STREAM) -> Iterator[socket.socket]:
    """While it is entered, a socket of another user listens at a path, or under an abstract name."""
    with socket.socket(socket.AF_UNIX, kind) as listening:
        with as_a_stranger():
            listening.bind(place)
            listening.listen()
        yield listening


@contextmanager
def uverbs_of_a_stranger(host: str) -> Iterator[None]:
    """While it is entered, a socket of another user listens under the name of this host's uverbs socket."""
    with socket_of_a_stranger(uverbs.address(host), socket.SOCK_SEQPACKET):
        yield


@contextmanager
def control_of_a_stranger(path: Path, result: dict[str, Any]) -> Iterator[list[dict[str, Any]]]:
    """A control socket of another user that gives every request this result; the requests that came."""
    asked: list[dict[str, Any]] = []

    def answer() -> None:
        with suppress(OSError):  # the listener was closed
            while True:
                accepted, _ = listening.accept()
                with accepted, accepted.makefile("rwb") as lines:
                    for line in lines:
                        asked.append(json.loads(line))
                        lines.write(json.dumps({"id": asked[-1]["id"], "ok": True, "result": result}).encode() + b"\n")
                        lines.flush()

    with socket_of_a_stranger(str(path)) as listening:
        thread = threading.Thread(target=answer)
        thread.start()
        try:
            yield asked
        finally:
            with suppress(OSError):
                listening.shutdown(socket.SHUT_RDWR)
            thread.join()
