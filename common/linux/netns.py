"""Network namespaces by name: enter them and come back. `ip netns` finds them in the same place."""

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from common.quoting import one_name

__all__ = ["NETNS_DIR", "enter", "entered", "path_of"]

NETNS_DIR = Path("/run/netns")
_CLONE_NEWNET = 0x40000000

_libc = ctypes.CDLL(None, use_errno=True)


def _check(result: int, what: str) -> None:
    """Raises OSError with `what` and the reason when a function of libc has failed."""
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def path_of(name: str) -> Path:
    """Where `ip netns` keeps the namespace of this name. ValueError for a name that would lead to another folder."""
    return NETNS_DIR / one_name(name, "the name of a network namespace")


def enter(path: Path) -> None:
    """Move this thread for good into the namespace of this file, such as `/proc/7/ns/net`."""
    there = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        _check(_libc.setns(there, _CLONE_NEWNET), f"cannot enter network namespace {path}")
    finally:
        os.close(there)


@contextmanager
def entered(where: str | Path) -> Iterator[None]:
    """Move this thread into the namespace of this name, or of this file, and back at the end of the `with`.

    Sockets and /proc/sys/net are that namespace's meanwhile. A name from another process must come as text.
    """
    home = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    try:
        enter(where if isinstance(where, Path) else path_of(where))
        try:
            yield
        finally:
            _check(_libc.setns(home, _CLONE_NEWNET), "cannot return from a network namespace")
    finally:
        os.close(home)
