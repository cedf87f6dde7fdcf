"""Network namespaces of tests and benchmarks that need real packets, such as two joined by veth pairs, one a plane."""

import itertools
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from topo.emulation.namespace import NETNS_DIR, delete, pids
from topo.emulation.process import abandoned

PREFIX = "mrcbench"
_numbers = itertools.count()


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True, text=True)


@contextmanager
def namespaces(count: int) -> Iterator[list[str]]:
    """New network namespaces, by name; removed afterwards. Namespaces left by killed processes are removed first."""
    remove_leftovers()
    names = [f"{PREFIX}{os.getpid()}-{next(_numbers)}" for _ in range(count)]
    try:
        for name in names:
            ip("netns", "add", name)
        yield names
    finally:
        for name in names:
            delete(name)


def remove_leftovers() -> None:
    """The namespaces whose makers are no more, and the processes in them."""
    for path in abandoned(NETNS_DIR, PREFIX):
        for process in pids([path.name]):
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        delete(path.name)


@contextmanager
def back_to_back(planes: int = 4, mtu: int = 4338) -> Iterator[list[str]]:
    """Namespaces of hosts h0 and h1 with ports `h0-p0`… and `h1-p0`…, MACs as in nic_profiles; gone afterwards."""
    with namespaces(2) as names:
        for plane in range(planes):
            ends = [f"h{host}-p{plane}" for host in range(2)]
            ip("link", "add", ends[0], "netns", names[0], "type", "veth", "peer", "name", ends[1], "netns", names[1])
            for host in range(2):
                mac = f"02:00:00:00:{host:02x}:{plane:02x}"
                ip("-n", names[host], "link", "set", ends[host], "address", mac, "mtu", str(mtu), "up")
                ip("-n", names[host], "addr", "add", f"fd00:{plane + 1:x}::{host + 1:x}/64", "dev", ends[host], "nodad")
        yield names
