"""Segment routing headers on real links: a Linux router writes one in front of every packet of two agents.

`ip route … encap seg6 mode encap` always writes the header (RFC 8754). Agents take data and answers behind it; their
own kernels, whose stack guard knows the header, say nothing to such packets.
"""

import socket
import subprocess
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from benchmarks.rig.namespaces import ip, namespaces
from benchmarks.rig.profiles import mac, profile as example
from endpoint.group import WorkloadGroup
from tests.helpers.agents import AgentProcess
from topo.emulation.namespace import entered

pytestmark = pytest.mark.root

MTU = 4338
ROUTING, UDP = 43, 17
ETH_P_ALL = 3
SEGMENT = "fcbb:bbbb:300{}::"
"""Where host 0 or 1 is reached as the last segment: the address of its port for uSID lists that end there."""


@contextmanager
def routed(segments: int) -> Iterator[list[str]]:
    """Namespaces of h0, h1 and a router between them, which encapsulates with so many segments."""
    with namespaces(3) as names:
        router = names[2]
        for host in range(2):
            near, far = f"h{host}-p0", f"r{host}"
            ip("link", "add", near, "netns", names[host], "type", "veth", "peer", "name", far, "netns", router)
            ip("-n", names[host], "link", "set", near, "address", mac(host, 0), "mtu", str(MTU), "up")
            ip("-n", names[host], "addr", "add", f"fd00:1::{host + 1:x}/64", "dev", near, "nodad")
            ip("-n", router, "link", "set", far, "address", mac(1 - host, 0), "mtu", str(MTU), "up")
        ip("-n", router, "link", "set", "lo", "up")
        with entered(router):
            Path("/proc/sys/net/ipv6/conf/all/forwarding").write_text("1")
        ip("-n", router, "addr", "add", "fd00:9::1/128", "dev", "lo")
        ip("-n", router, "sr", "tunsrc", "set", "fd00:9::1")
        for host in range(2):
            last, device = SEGMENT.format(host), f"r{host}"
            ip("-n", router, "route", "add", last, "dev", device)
            ip("-n", router, "neigh", "add", last, "lladdr", mac(host, 0), "dev", device, "nud", "permanent")
            listed = ",".join([last] * segments)
            words = ["encap", "seg6", "mode", "encap", "segs", listed, "dev", device]
            ip("-n", router, "route", "add", f"fd00::{host + 1:x}", *words)
        yield names


def listening(namespace: str, interface: str) -> socket.socket:
    """A packet socket that keeps what comes in by an interface, also what the stack guard drops afterwards."""
    with entered(namespace):
        heard = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
        heard.bind((interface, ETH_P_ALL))
        heard.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 24)
        heard.setblocking(False)
    return heard


def frames_of(heard: socket.socket) -> Iterator[bytes]:
    while True:
        try:
            frame, address = heard.recvfrom(1 << 16)
        except BlockingIOError:
            return
        if address[2] != socket.PACKET_OUTGOING and frame[12:14] == b"\x86\xdd":
            yield frame


@pytest.mark.skipif(
    not Path("/proc/sys/net/ipv6/conf/all/seg6_enabled").exists(), reason="this kernel has no segment routing"
)
@pytest.mark.parametrize("segments", [1, 2])
def test_writes_and_answers_behind_linux_segment_routing_headers_are_taken(tmp_path: Path, segments: int) -> None:
    with routed(segments) as names, ExitStack() as stack:
        started = []
        for host in range(2):
            data = example(host, planes=1, encapsulation="none", rate_bps=50_000_000)
            for destination in data["destinations"].values():
                for path in destination["paths"]:
                    path.update(da=destination["address"], via=None)
            started.append(AgentProcess(tmp_path, names[host], data))
            stack.callback(started[-1].close)
        sockets = [stack.enter_context(listening(names[host], f"h{host}-p0")) for host in range(2)]
        clients = {f"h{host}": agent.client for host, agent in enumerate(started)}
        run = WorkloadGroup(
            clients, name="w", kind="write_bw", ranks=["h0", "h1"], options={"messages": 20, "size": 50_000, "qps": 1}
        )
        run.start()
        results = run.wait(30)
        run.remove()
        assert {status["state"] for status in results.values()} == {"finished"}, results
        assert sum(status["result"]["bytes_wrong"] for status in results.values()) == 0
        assert sum(status["result"]["bytes_verified"] for status in results.values()) >= 20 * 50_000
        for host, heard in enumerate(sockets):
            frames = list(frames_of(heard))
            kinds = Counter((frame[20], frame[56] if frame[20] == ROUTING else None) for frame in frames)
            # On the way here nothing but segment routing headers (routing type 4), as many segments as were listed.
            assert kinds[ROUTING, 4] >= (250 if host else 20), kinds
            assert (UDP, None) not in kinds
            assert {frame[55] for frame in frames if frame[20] == ROUTING} == {2 * segments}
            with entered(names[host]):  # /proc/net is that of the process that reads
                told = subprocess.run(["cat", "/proc/net/snmp6"], capture_output=True, text=True, check=True).stdout
            counts = dict(line.split() for line in told.splitlines())
            assert counts["Icmp6OutParmProblems"] == counts["Icmp6OutDestUnreachs"] == "0"
