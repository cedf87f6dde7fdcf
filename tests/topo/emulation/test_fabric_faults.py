"""Each fault on a running fabric: what stops, what keeps flowing, and that undo restores it; per switch kind."""

import random
import socket
import struct
import time
from dataclasses import replace
from typing import Any

import pytest
from scapy.layers.inet import UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Ether
from scapy.packet import Raw

from tests.helpers.waiting import eventually
from topo.address import host_address, port_address
from topo.emulation import namespace
from topo.emulation.lab import Lab
from topo.fault import FaultError
from topo.graph import PortRef, links as fabric_links, peer
from topo.node import leaf, spine
from topo.path import path_da, path_of_ev
from topo.planfile import load_plan

pytestmark = pytest.mark.root

TINY = load_plan("tiny")
H0, H1, H2, H3 = TINY.hosts()
UDP_PORT = 4791
VIA_S0, VIA_S1, PLANE1 = 0xC000, 0xC001, 0x1C000  # EVs of cross-leaf paths: p0s0, p0s1, p1s0
LOCAL = 0xFFFF
GRACE_S = 0.1
SO_TIMESTAMPNS = 35  # <asm-generic/socket.h>; Python has no name for the option


@pytest.fixture(scope="module", params=["linux", "embedded", pytest.param("bmv2", marks=pytest.mark.bmv2)])
def lab(request, private_run, require_kind):
    require_kind(request.param)
    provision = None if request.param == "linux" else request.getfixturevalue("provision")
    running: Any = Lab.up(replace(TINY, switch=request.param), provision=provision)
    running.kind = request.param
    yield running
    running.down()


@pytest.fixture(autouse=True)
def _healed(lab):
    yield
    lab.heal()
    assert lab.faults() == []


class Listener:
    """What arrives at a host's own UDP port, after its kernel has taken off the outer header."""

    def __init__(self, host):
        with namespace.entered(host.name):
            self.socket = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
        self.socket.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        self.socket.bind(("::", UDP_PORT))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def next(self, timeout_s):
        """[(number, arrival in seconds of the day's clock)] of the next packet; [] when none comes in time.

        The kernel noted the arrival: however late this process reads, the packet is no later.
        """
        self.socket.settimeout(timeout_s)
        try:
            data, notes, *_ = self.socket.recvmsg(65536, socket.CMSG_SPACE(16))
        except TimeoutError:
            return []
        seconds, nanoseconds = struct.unpack("@qq", notes[0][2])
        return [(struct.unpack_from("!I", data)[0], seconds + nanoseconds / 1e9)]

    def numbers_until(self, last, timeout_s):
        """(number, arrival in seconds) of everything up to the packet `last`, or until the time ran out."""
        found = []
        deadline = time.monotonic() + timeout_s
        while (left_s := deadline - time.monotonic()) > 0 and (more := self.next(left_s)):
            found += more
            if more[0][0] == last:
                break
        return found


def send(source, destination, ev, numbers, size=64):
    path = path_of_ev(TINY, source, destination, ev)
    ref = PortRef(source, path.port)
    ether = Ether(src=ref.mac, dst=peer(TINY, ref).mac)
    outer = IPv6(src=str(port_address(TINY, source, path.plane)), dst=str(path_da(TINY, path)))
    inner = IPv6(src=str(host_address(TINY, source)), dst=str(host_address(TINY, destination)))
    with namespace.entered(source.name):
        sender = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    with sender:
        sender.bind((ref.interface, 0))
        for number in numbers:
            payload = struct.pack("!I", number).ljust(size, b"\0")
            try:
                sender.send(bytes(ether / outer / inner / UDP(sport=ev & 0xFFFF, dport=UDP_PORT) / Raw(payload)))
            except OSError:  # ENETDOWN: the port is off
                return


def arrivals(source, destination, ev, count=1, sentinel=PLANE1, size=64, late_s=GRACE_S):
    """Of `count` packets on this path, how many arrive before a later one on a healthy path, and after it until none
    comes for `late_s`."""
    with Listener(destination) as listener:
        send(source, destination, ev, range(count), size)
        send(source, destination, sentinel, [count])
        found = listener.numbers_until(count, 5.0)
        assert count in [number for number, _ in found], "the healthy path lost its packet"
        while len(found) <= count and (more := listener.next(late_s)):
            found += more
    return len(found) - 1


def works(source, destination, ev, sentinel=PLANE1):
    """A packet arrives, however late this machine is, if not the first then one after it.

    The kernel activates the queue of a port a little after its cable is back (linkwatch), and drops packets until then.
    """
    return any(arrivals(source, destination, ev, sentinel=sentinel, late_s=1.0) == 1 for _ in range(5))


def blocked(source, destination, ev):
    """A packet does not arrive, though a later one on a healthy path has."""
    return arrivals(source, destination, ev) == 0


def test_link_down_takes_both_carriers_and_only_that_path(lab):
    if lab.kind == "bmv2" and not lab.record.details["bmv2"]["macvlan"]:
        with pytest.raises(FaultError, match=r"link-down p0l0-p0s0: p0l0: BMv2 stops reading all its ports"):
            lab.inject("link-down", "p0l0-p0s0")
        return
    a, b = PortRef(leaf(0, 0), 3), PortRef(spine(0, 0), 1)
    fault = lab.inject("link-down", "p0l0-p0s0")
    assert not lab.carrier(a)
    assert not lab.carrier(b)
    assert blocked(H0, H2, VIA_S0)
    assert blocked(H2, H0, VIA_S0)
    assert works(H0, H2, VIA_S1)
    assert works(H0, H1, LOCAL, sentinel=0x1FFFF)
    lab.undo(fault)
    assert lab.carrier(a)
    assert lab.carrier(b)
    assert works(H0, H2, VIA_S0)
    assert works(H2, H0, VIA_S0)


def test_a_blackhole_is_silent_and_may_be_one_way(lab):
    fault = lab.inject("blackhole", "p0l0>p0s0")
    assert lab.carrier(PortRef(leaf(0, 0), 3))
    assert blocked(H0, H2, VIA_S0)
    assert works(H2, H0, VIA_S0)
    lab.undo(fault)
    fault = lab.inject("blackhole", "p0l0-p0s0")
    assert blocked(H0, H2, VIA_S0)
    assert blocked(H2, H0, VIA_S0)
    assert works(H0, H2, VIA_S1)
    lab.undo(fault)
    assert works(H0, H2, VIA_S0)
    assert works(H2, H0, VIA_S0)


def test_loss_takes_about_its_share_and_nothing_elsewhere(lab):
    fault = lab.inject("loss", "p0s0>p0l1", 50, seed=3)
    # 30 at a time: a longer burst would be dropped as congestion. Of 240, half is 120 and six deviations are 46.
    assert 74 <= sum(arrivals(H0, H2, VIA_S0, count=30) for _ in range(8)) <= 166
    assert arrivals(H0, H2, VIA_S1, count=30, late_s=5.0) == 30
    assert arrivals(H2, H0, VIA_S0, count=30, late_s=5.0) == 30
    lab.undo(fault)
    assert arrivals(H0, H2, VIA_S0, count=30, late_s=5.0) == 30


def transit_s(lab, ev):
    """How long one packet takes."""
    with Listener(H2) as listener:
        sent = time.time()
        send(H0, H2, ev, [7])
        found = listener.numbers_until(7, 5.0)
    assert found
    return found[0][1] - sent


def test_delay_holds_every_packet_back(lab):
    if lab.kind != "embedded":
        with pytest.raises(FaultError, match=f"delay: p0l0 is a {lab.kind} switch, which cannot do it"):
            lab.inject("delay", "p0l0-p0s0", 300)
        return
    fault = lab.inject("delay", "p0l0>p0s0", 300)
    assert transit_s(lab, VIA_S0) > 0.3
    eventually(lambda: transit_s(lab, VIA_S1) < 0.2, "the other path holds no packet back")
    lab.undo(fault)
    eventually(lambda: transit_s(lab, VIA_S0) < 0.2, "nothing is held back any more")


def test_rate_spaces_packets_out(lab):
    # BMv2 counts packets: 0.35 Mb/s are 10 full frames a second. The others count bytes: 1,118 each here, of which the
    # kernel's token bucket lets two full frames go at once.
    mbps, count = {"bmv2": (0.35, 5), "embedded": (0.1, 5), "linux": (0.1, 12)}[lab.kind]

    def spread_s():
        with Listener(H2) as listener:
            send(H0, H2, VIA_S0, range(count), size=1000)
            found = listener.numbers_until(count - 1, 10.0)
        assert len(found) == count
        return found[-1][1] - found[0][1]

    fault = lab.inject("rate", "p0l0>p0s0", mbps)
    # A switch that this machine lets stand still at the wrong moment has all packets due at once.
    eventually(lambda: spread_s() > 0.25, "packets are spaced out")
    lab.undo(fault)
    eventually(lambda: spread_s() < 0.25, "packets follow each other")


def test_a_nic_port_down_loses_one_plane_and_its_kernel_routes_come_back(lab):
    ref = PortRef(H0, 1)
    fault = lab.inject("port-down", "h0.p0")
    assert not lab.carrier(ref)
    assert not lab.carrier(peer(TINY, ref))
    assert blocked(H2, H0, VIA_S0)
    assert blocked(H0, H2, VIA_S0)
    assert works(H1, H2, VIA_S0)
    lab.undo(fault)
    assert lab.carrier(ref)
    assert works(H2, H0, VIA_S0)
    assert works(H0, H2, VIA_S0)
    for plane in range(2):
        target = str(port_address(TINY, H2, plane))
        ping = ["ping", "-c", "1", "-W", "5", "-I", str(port_address(TINY, H0, plane)), target]
        assert lab.run(H0, ping).returncode == 0


@pytest.mark.parametrize("verb", ["switch-stop", "switch-crash"])
def test_a_stopped_or_crashed_switch_keeps_its_links_and_forwards_nothing(lab, verb):
    fault = lab.inject(verb, "p0s0")
    assert lab.carrier(PortRef(leaf(0, 0), 3))
    assert lab.carrier(PortRef(spine(0, 0), 1))
    assert blocked(H0, H2, VIA_S0)
    assert works(H0, H2, VIA_S1)
    lab.undo(fault)
    assert works(H0, H2, VIA_S0)
    assert works(H2, H0, VIA_S0)


def test_a_reboot_empties_the_switch_and_ends_with_the_tables_as_planned_and_links_never_down(
    lab, request, monkeypatch
):
    if lab.kind == "linux":  # something that only the loss of all tables removes
        namespace.run_ip(["route add fd99::/16 via fe80::1 dev p0l1-eth1"], "p0l1")
        lab.inject("switch-reboot", "p0l1")
        assert "fd99" not in lab.run(leaf(0, 1), ["ip", "-6", "route"]).stdout
    else:
        install, seen = lab._provision, []

        def observed(lab_, switches):
            seen.append(([switch.name for switch in switches], blocked(H0, H2, VIA_S0)))
            install(lab_, switches)

        monkeypatch.setattr(lab, "_provision", observed)
        lab.inject("switch-reboot", "p0l1")
        assert seen == [(["p0l1"], True)]  # empty until provisioned
    assert lab.faults() == []
    assert all(lab.carrier(PortRef(leaf(0, 1), port)) for port in range(1, 5))
    assert works(H0, H2, VIA_S0)
    if lab.kind != "linux":
        request.getfixturevalue("control")("verify", lab, lab.plan.switches())


def test_a_fault_on_a_cable_outlives_the_crash_of_its_switch(lab):
    hole = lab.inject("blackhole", "p0s0>p0l1")
    crash = lab.inject("switch-crash", "p0s0")
    lab.undo(crash)
    assert blocked(H0, H2, VIA_S0)
    assert works(H2, H0, VIA_S0)
    lab.undo(hole)
    assert works(H0, H2, VIA_S0)


@pytest.mark.parametrize("seed", [1, 2])
def test_any_faults_undone_in_any_order_leave_a_healthy_fabric(lab, seed):
    generator = random.Random(seed)
    links = [link.name for link in fabric_links(TINY)]
    possible: list[tuple[str, str, float | None]] = [
        (verb, link, None) for verb in ("link-down", "blackhole") for link in links
    ]
    possible += [("loss", link, 30.0) for link in links]
    possible += [("rate", link, 3.0) for link in links if not link.startswith("h")]
    possible += [("port-down", f"h{host}.p{plane}", None) for host in range(4) for plane in range(2)]
    possible += [
        (verb, switch.name, None)
        for verb in ("switch-stop", "switch-crash", "switch-reboot")
        for switch in TINY.switches()
    ]
    in_force = []
    for verb, target, value in generator.sample(possible, 25):
        fault = lab.inject(verb, target, value)
        if verb != "switch-reboot":
            in_force.append(fault)
        if generator.random() < 0.3 and in_force:
            lab.undo(in_force.pop(generator.randrange(len(in_force))))
    generator.shuffle(in_force)
    for fault in in_force:
        lab.undo(fault)
    for ev, healthy in ((VIA_S0, PLANE1), (VIA_S1, PLANE1), (PLANE1, VIA_S0), (0x1C001, VIA_S0)):
        for source, destination in ((H0, H2), (H3, H1)):
            assert works(source, destination, ev, sentinel=healthy), (seed, ev, source)
            assert works(destination, source, ev, sentinel=healthy), (seed, ev, destination)
