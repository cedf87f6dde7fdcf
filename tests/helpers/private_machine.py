"""A machine of one's own for tests: private /run, so private labs and named namespaces, and if wanted private links."""

import ctypes
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

CLONE_NEWNS, CLONE_NEWNET = 0x00020000, 0x40000000
MS_PRIVATE_REC = 1 << 18 | 1 << 14

_libc = ctypes.CDLL(None, use_errno=True)


def _call(name: str, *arguments: object) -> None:
    if getattr(_libc, name)(*arguments) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")


def enter_private_run() -> None:
    """This thread, and what it starts from now on, has an empty /run of its own. OSError: not on this machine."""
    _call("unshare", CLONE_NEWNS)
    _call("mount", b"none", b"/", None, MS_PRIVATE_REC, None)
    _call("mount", b"tmpfs", b"/run", b"tmpfs", 0, b"mode=755")  # as the system's: without it anybody may write
    os.makedirs("/run/netns")


def enter_private_network() -> None:
    """This thread, and what it starts from now on, has no links but a loopback of its own. OSError: not on this
    machine."""
    if shutil.which("ip") is None:
        raise FileNotFoundError("ip: a network whose loopback cannot be switched on is worse than none of one's own")
    _call("unshare", CLONE_NEWNET)
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)


@contextmanager
def private_run() -> Iterator[None]:
    """`enter_private_run` for a while. Network namespaces that are made meanwhile are invisible to any other lab."""
    home, cwd = os.open("/proc/thread-self/ns/mnt", os.O_RDONLY), os.getcwd()
    try:
        enter_private_run()
        yield
    finally:
        _call("setns", home, CLONE_NEWNS)
        os.close(home)
        os.chdir(cwd)
