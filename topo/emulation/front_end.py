"""A front-end network beside the fabric: IPv4 between two hosts, for what programs tell each other over TCP.

In a cluster, programs exchange addresses and keys over an ordinary network, and only writes cross the fabric. perftest
and OCP's example know only IPv4 there, which the fabric does not carry. So two hosts of a lab get a pair of interfaces
when a command names one of them in the other; both go with their namespaces.
"""

import ipaddress
import time
from pathlib import Path

from topo.emulation import namespace
from topo.node import Host

__all__ = ["address", "connect"]

NETWORK = ipaddress.IPv4Network("100.64.0.0/10")  # RFC 6598: shared addresses, which the internet does not route


_RUNNING_S, _LOOK_S = 3.0, 0.01  # NCCL takes running interfaces only


def address(host: Host) -> str:
    """The host's IPv4 address, the same towards every other host."""
    return str(NETWORK[host.index + 1])


def interface(other: Host) -> str:
    """The name of the interface that leads to another host."""
    return f"to-{other.name}"


def connect(here: Host, there: Host, here_netns: str, there_netns: str) -> None:
    """Let two hosts reach each other. Does nothing where they do already, or are the same. Raises IpError."""
    if here == there or _present(here_netns, there):
        return
    made = f"link add {interface(there)} type veth peer name {interface(here)} netns {there_netns}"
    try:
        namespace.run_ip([made], here_netns)
    except namespace.IpError:
        if not _present(here_netns, there):  # another command may have been first
            raise
    for host, other, netns in ((here, there, here_netns), (there, here, there_netns)):
        name = interface(other)
        commands = [f"addr replace {address(host)} peer {address(other)} dev {name}", f"link set {name} up"]
        namespace.run_ip(commands, netns, family="-4")
    deadline_s = time.monotonic() + _RUNNING_S
    for other, netns in ((there, here_netns), (here, there_netns)):
        with namespace.entered(netns):
            while not namespace.is_running(interface(other)) and time.monotonic() < deadline_s:
                time.sleep(_LOOK_S)


def _present(netns: str, other: Host) -> bool:
    with namespace.entered(netns):
        return f"{interface(other)}:" in Path("/proc/thread-self/net/dev").read_text()
