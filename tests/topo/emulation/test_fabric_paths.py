"""A crafted SRv6 packet for every (host pair, EV) of any fabric: over the right links, with the right outer address."""

import ipaddress
import mmap
import re
import select
import socket
import statistics
import struct
import time
from collections import Counter
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

import pytest
from scapy.layers.inet import UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Ether
from scapy.packet import Raw

from tests.topo.topologies.shapes import SMALL
from topo.address import host_address, port_address, switch_address
from topo.emulation import namespace
from topo.emulation.lab import Lab
from topo.graph import PortRef, peer, ports
from topo.path import hops, path_da, paths
from topo.planfile import load_plan, parse_plan

pytestmark = pytest.mark.root

ETH_P_ALL = 3
PACKET_OUTGOING = 4
SOL_PACKET, PACKET_RX_RING = 263, 5
TP_STATUS_USER = 1
TPACKET_ADDRESS = 32  # struct tpacket_hdr, aligned; then struct sockaddr_ll
FRAME_BYTES, FRAMES = 512, 256
UDP_PORT = 4791
IPV6_RECVERR = 25  # linux/in6.h
TIME_EXCEEDED = 3, 3, 0  # of a sock_extended_err: from ICMPv6, type and code; behind its 16 bytes the sender's address
MARK = b"mrclab path test"
TINY = load_plan("tiny")
PODS = load_plan("pods", {"fabric.planes": "1", "fabric.hosts_per_leaf": "1"})
PLANS = {
    "linux": replace(TINY, switch="linux"),
    "embedded": TINY,
    "embedded-with-a-kernel-spine": replace(TINY, switch_overrides={"p0s1": "linux"}),
    "bmv2": replace(TINY, switch="bmv2"),
    "bmv2-with-a-kernel-spine": replace(TINY, switch="bmv2", switch_overrides={"p0s1": "linux"}),
    "three-tiers": PODS,
    "three-tiers-linux": replace(PODS, switch="linux"),
    "three-tiers-bmv2": replace(PODS, switch="bmv2"),
}
RAILS = load_plan("tiny", {"fabric.topology": "rails", "fabric.rails": "2"})
UNEVEN = parse_plan("""name = "uneven"
[fabric]
topology = "uneven"
planes = 2
leaves = 2
spines = 2
hosts_per_leaf = 1
without = ["p1s1"]
speeds = { "p0l1-p0s0" = 0.5 }
more_hosts = { l0 = 1 }
""")
SLOWLY = {
    f"{name}-{kind}": replace(plan, switch=kind)
    for name, plan in (("rails", RAILS), ("uneven", UNEVEN), ("list", SMALL["list"]))
    for kind in ("embedded", "linux", "bmv2")
}
PLANS |= SLOWLY
PATHS = {"tiny": 8 * 4 + 4 * 2, "pods": 8 * 4 + 4 * 2, "uneven": 4 * 3 + 2 * 2, "mesh": 48 * 2 + 8 * 2}
"""By the name of a plan: those between leaves, and those under one leaf."""


class Taps:
    """Packet sockets on everything: (interface, outgoing, outer destination, hop limit, packet's number) of ours.

    With rings, because a ring copies a frame when it passes: an ordinary packet socket shares the frame's memory with
    the kernel's own forwarding, which rewrites destinations in place before we have read them.
    """

    def __init__(self, plan, stack):
        self.rings = []
        self.ports = {ref.interface for node in plan.nodes() for ref in ports(plan, node)}
        self.seen = []
        self.others = 0
        for node in plan.nodes():
            with namespace.entered(node.name):
                names = dict(socket.if_nameindex())
                tap = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
            request = struct.pack("IIII", FRAME_BYTES * FRAMES, 1, FRAME_BYTES, FRAMES)
            tap.setsockopt(SOL_PACKET, PACKET_RX_RING, request)
            memory = stack.enter_context(mmap.mmap(tap.fileno(), FRAME_BYTES * FRAMES))
            stack.enter_context(tap)
            self.rings.append([names, memory, 0])

    def read(self):
        for ring in self.rings:
            names, memory, index = ring
            while True:
                start = index % FRAMES * FRAME_BYTES
                status, _, length, mac = struct.unpack_from("LIIH", memory, start)
                if not status & TP_STATUS_USER:
                    break
                interface, _, kind = struct.unpack_from("iHB", memory, start + TPACKET_ADDRESS + 4)
                frame = memory[start + mac : start + mac + length]
                struct.pack_into("L", memory, start, 0)
                index += 1
                self._take(names[interface], kind == PACKET_OUTGOING, frame)
            ring[2] = index

    def _take(self, interface, outgoing, frame):
        if interface not in self.ports:  # BMv2's macvlans, on top of the ports
            return
        at = frame.find(MARK)
        if at < 0:
            self.others += 1
            return
        number = struct.unpack_from("!I", frame, at + len(MARK))[0]
        self.seen.append((interface, outgoing, socket.inet_ntop(socket.AF_INET6, frame[38:54]), frame[21], number))

    def wait_for(self, interfaces, count):
        """Until so many of ours have arrived in these interfaces, or ten seconds have passed."""
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline:
            self.read()
            if sum(1 for seen in self.seen if seen[0] in interfaces and not seen[1]) >= count:
                return
            time.sleep(0.005)


def crafted(plan, path, number):
    high = path.ev >> 16
    outer = IPv6(src=str(port_address(plan, path.source, path.plane)), dst=str(path_da(plan, path)), hlim=64, fl=high)
    inner = IPv6(src=str(host_address(plan, path.source)), dst=str(host_address(plan, path.destination)), fl=high)
    udp = UDP(sport=path.ev & 0xFFFF, dport=UDP_PORT)
    ref = PortRef(path.source, path.port)
    ether = Ether(src=ref.mac, dst=peer(plan, ref).mac)
    return bytes(ether / outer / inner / udp / Raw(MARK + struct.pack("!I", number)))


def expected(plan, path, number):
    """The sightings of one packet: out of the NIC, in and out of each switch, into the NIC."""
    journey = hops(plan, path)
    sightings = [(PortRef(path.source, path.port).interface, True, str(path_da(plan, path)), 64, number)]
    for index, hop in enumerate(journey):
        sightings.append((PortRef(hop.switch, hop.port_in).interface, False, str(hop.da_in), 64 - index, number))
        sightings.append((PortRef(hop.switch, hop.port_out).interface, True, str(hop.da_out), 63 - index, number))
    arrival = PortRef(path.destination, path.plane + 1).interface
    sightings.append((arrival, False, str(journey[-1].da_out), 64 - len(journey), number))
    return sightings


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(
            name,
            marks=[*([pytest.mark.bmv2] if "bmv2" in name else ()), *([pytest.mark.slow] if name in SLOWLY else ())],
        )
        for name in PLANS
    ],
)
def lab(request, private_run, require_kind):
    plan = PLANS[request.param]
    for kind in {plan.kind_of(switch) for switch in plan.switches()}:
        require_kind(kind)
    provision = None if request.param == "linux" else request.getfixturevalue("provision")
    running = Lab.up(plan, provision=provision)
    yield running
    running.down()


def test_every_pair_and_ev_takes_its_path_with_the_exact_outer_address_at_every_hop(lab):
    plan = lab.plan
    every = [
        path
        for source in plan.hosts()
        for destination in plan.hosts()
        if source != destination
        for path in paths(plan, source, destination)
    ]
    assert len(every) == PATHS[plan.name]
    with ExitStack() as stack:
        for host in plan.hosts():  # or the kernel would answer with "port unreachable"
            with namespace.entered(host.name):
                stack.enter_context(socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)).bind(("::", UDP_PORT))
        before = {node: lab.counters(node) for node in plan.nodes()}
        taps = Taps(plan, stack)
        wanted: Counter[Any] = Counter()
        for number, path in enumerate(every):
            with namespace.entered(path.source.name):
                sender = stack.enter_context(socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0))
            sender.bind((PortRef(path.source, path.port).interface, 0))
            sender.send(crafted(plan, path, number))
            wanted.update(expected(plan, path, number))
        taps.wait_for({ref.interface for host in plan.hosts() for ref in ports(plan, host)}, len(every))
        after = {node: lab.counters(node) for node in plan.nodes()}
    assert Counter(taps.seen) == wanted
    for node in plan.nodes():
        for ref in ports(plan, node):
            counted = {key: after[node][ref.port][key] - before[node][ref.port][key] for key in before[node][ref.port]}
            assert counted["rx_packets"] == sum(n for s, n in wanted.items() if s[:2] == (ref.interface, False))
            assert counted["tx_packets"] == sum(n for s, n in wanted.items() if s[:2] == (ref.interface, True))


def test_host_kernels_reach_each_other_and_can_be_steered(lab):
    plan = lab.plan
    source, destination = plan.host("h0"), plan.host(f"h{plan.host_count - 1}")
    ping = ["ping", "-c", "1", "-W", "5", str(host_address(plan, destination))]
    assert lab.run(source, ping).returncode == 0
    for path in paths(plan, source, destination):
        lab.steer(path)
        before = {hop.switch: lab.counters(hop.switch)[hop.port_out]["tx_packets"] for hop in hops(plan, path)}
        assert lab.run(source, ping).returncode == 0, path
        for hop in hops(plan, path):
            assert lab.counters(hop.switch)[hop.port_out]["tx_packets"] == before[hop.switch] + 1, hop
    lab.unsteer(source, destination)


def test_the_kernel_hears_from_each_switch_of_a_path_what_a_traceroute_asks(lab):
    """The answers' checksums, and whether they are about a socket's packet, are the kernel's to judge (RFC 4443)."""
    plan = lab.plan
    if {plan.kind_of(switch) for switch in plan.switches()} & {"linux"}:
        pytest.skip("a switch that is a kernel has no address")
    source = plan.host("h0")
    for path in paths(plan, source, plan.host(f"h{plan.host_count - 1}")):
        with namespace.entered(source.name):
            probes = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
        with probes:
            probes.bind((str(port_address(plan, source, path.plane)), 0))
            probes.setsockopt(socket.IPPROTO_IPV6, IPV6_RECVERR, 1)
            for hop_limit, hop in enumerate(hops(plan, path), 1):
                probes.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_UNICAST_HOPS, hop_limit)
                probes.sendto(b"probe", (str(path_da(plan, path)), 33434 + hop_limit))
                assert select.select([probes], [], [], 10)[0], (path, hop_limit)
                data, ((_, _, told), *_), _, _ = probes.recvmsg(100, 200, socket.MSG_ERRQUEUE)
                assert (data, *struct.unpack_from("=4xBBB", told)) == (b"probe", *TIME_EXCEEDED)
                assert ipaddress.IPv6Address(told[24:40]) == switch_address(plan, hop.switch)
    ping = lab.run(source, ["ping", "-c", "1", "-W", "5", "-t", "1", str(path_da(plan, path))])
    assert f"From {switch_address(plan, path.switches[0])} icmp_seq=1 Time exceeded: Hop limit" in ping.stdout


def test_a_round_trip_takes_the_time_that_the_plan_says(lab):
    """Cables of 5 ms for a ping, two of them on hosts, whose transmit sides have no delay.

    Plain routes may lead over the shortest path only. Switches move frames in turns of R/32: one ping may gain half a
    turn at either end of a way, which their mean must not.
    """
    if lab.plan.switch != "embedded" or lab.plan.switch_overrides:
        pytest.skip("only the embedded switch delays")
    links = lab.plan.links
    source, destination = lab.plan.host("h0"), lab.plan.host(f"h{lab.plan.host_count - 1}")
    crossed = min(len(path.switches) for path in paths(lab.plan, source, destination))
    ping = ["ping", "-c", "20", "-i", "0.1", "-W", "5", str(host_address(lab.plan, destination))]
    rtts_ms = [float(rtt) for rtt in re.findall(r"time=([\d.]+)", lab.run(source, ping).stdout)]
    planned_ms = 2 * (2 * links.host_delay_ns + (crossed - 1) * links.fabric_delay_ns) / 1e6
    turn_ms = lab.plan.base_rtt_ns / 32e6
    assert len(rtts_ms) == 20
    assert min(rtts_ms) >= planned_ms - 2 * turn_ms
    assert statistics.mean(rtts_ms) >= planned_ms - turn_ms / 4


def test_the_fabric_is_silent_when_nobody_sends(lab):
    """No router solicitations, no MLD, no neighbour discovery: nothing at all in half a second."""
    with ExitStack() as stack:
        taps = Taps(lab.plan, stack)
        time.sleep(0.5)
        taps.read()
    assert (taps.seen, taps.others) == ([], 0)


@pytest.mark.parametrize(
    "kind", ["linux", "embedded", pytest.param("bmv2", marks=pytest.mark.bmv2)], ids=lambda kind: f"single-plane-{kind}"
)
def test_on_the_single_plane_equivalent_every_host_reaches_every_other(kind, private_run, require_kind, request):
    require_kind(kind)
    plan = replace(TINY, switch=kind).single_plane()
    provision = None if kind == "linux" else request.getfixturevalue("provision")
    running = Lab.up(plan, provision=provision)
    try:
        for source in plan.hosts():
            for destination in plan.hosts():
                ping = ["ping", "-c", "1", "-W", "5", str(host_address(plan, destination))]
                assert running.run(source, ping).returncode == 0, (source, destination)
    finally:
        running.down()


def test_wide_comes_up_with_its_tables_and_its_256_paths(private_run, require_kind, provision):
    require_kind("embedded")
    plan = load_plan("wide")
    running = Lab.up(plan, provision=provision)
    try:
        assert running.status()["switches_silent"] == []
        source, destination = plan.host("h0"), plan.host("h7")
        ping = ["ping", "-c", "1", "-W", "5", str(host_address(plan, destination))]
        for path in paths(plan, source, destination):
            running.steer(path)
            assert running.run(source, ping).returncode == 0, path
    finally:
        running.down()
