"""Answers to exceeded hop limits, of any length: Scapy, which shares no code with this project, builds each of them."""

import random
from functools import cache
from ipaddress import IPv6Address

import pytest
from scapy.layers.inet6 import ICMPv6TimeExceeded, IPv6
from scapy.layers.l2 import Ether

from controller.direct import DirectControl
from controller.pipelines import compiled_pipelines
from controller.tables import TIME_EXCEEDED, tables
from p4c.entries import Lpm
from switch.engine import Engine, MeterConfig, PortConfig
from tests.helpers.p4.frames import SOURCE, frame
from tests.helpers.p4.node import Node, destination
from tests.helpers.p4.programs import ENGINES, PROGRAMS, compiled, engine
from topo.address import host_address, port_address, switch_address
from topo.graph import PortRef, peer, ports
from topo.node import Host, Switch
from topo.path import hops, path_da, paths
from topo.planfile import load_plan

ADDRESS = "fcbb:bbbb:1::"
METER = "SwitchIngress.validate.answer.time_exceeded_meter"
UDP = bytes.fromhex("829a 829b 0010 0000 0102030405060708")


@pytest.fixture(params=[(p, k) for p in PROGRAMS for k in ENGINES], ids=lambda pair: "-".join(pair))
def node(request: pytest.FixtureRequest) -> Node:
    return answering(*request.param)


def answering(program: str, kind: str) -> Node:
    made = Node(engine(kind), compiled(program).program)
    made.wire(1, 2)
    made.add("ipv6_route", (Lpm(int(IPv6Address("fd00:0:0:1::")), 64),), "set_next_hop", 2)
    made.default("hop_limit_exceeded", "send_time_exceeded", int(IPv6Address(ADDRESS)))
    return made


def answer(invoking: bytes) -> bytes:
    """Of `Node.wire`'s port 2, with these bytes of the packet."""
    to = str(IPv6Address(SOURCE))
    outside = Ether(dst="02:00:00:00:00:02", src="02:00:00:00:aa:02") / IPv6(src=ADDRESS, dst=to, hlim=254)
    return bytes(outside / ICMPv6TimeExceeded(code=0) / invoking)


@pytest.mark.parametrize("length", [0, 1, 2, 7, 8, 9, 40, 63, 64, 500, 1000, 1191, 1192])
def test_a_packet_that_fits_is_quoted_whole(node: Node, length: int) -> None:
    dice = random.Random(length)
    for next_header in (41, 43, 59):
        sent = frame("fcbb:bbbb:1:2::", payload=dice.randbytes(length), hop_limit=1, next_header=next_header, ecn=3)
        node.receive(1, sent)
        (found,) = node.drain()
        assert found.frame == answer(sent[14:])
        assert len(found.frame) - 14 <= 1280


@pytest.mark.parametrize("length", [1193, 1400, 4176, 9000])
def test_of_a_longer_packet_its_headers_are_quoted(node: Node, length: int) -> None:
    payload = random.Random(length).randbytes(length)
    sent = frame("fcbb:bbbb:1:2::", payload=payload, hop_limit=1, next_header=41)
    node.receive(1, sent)
    udp = frame("fcbb:bbbb:1:2::", payload=UDP[:8] + payload[8:], hop_limit=0, next_header=17)
    node.receive(1, udp)
    assert [one.frame for one in node.drain()] == [answer(sent[14:54]), answer(udp[14:62])]


def test_bytes_behind_the_packet_and_packets_that_are_cut_are_quoted_by_their_headers(node: Node) -> None:
    """As a short packet in a padded frame, and one that lost its end on the way: their lengths say something else."""
    whole = frame("fcbb:bbbb:1:2::", payload=UDP, hop_limit=1, next_header=17)
    for sent in (whole + b"\x01", whole[:-1]):
        node.receive(1, sent)
        (found,) = node.drain()
        assert found.frame == answer(sent[14:62])


def test_everything_received_is_dropped_or_sent_and_answers_are_counted(node: Node) -> None:
    dice = random.Random(3)
    for _ in range(300):
        hop_limit = dice.choice([0, 1, 2, 64])
        node.receive(1, frame(destination(2), size=dice.randrange(54, 1500), hop_limit=hop_limit))
        node.receive(1, frame("fcbb:bbbb:1:2::", payload=UDP, next_header=dice.choice([17, 58]), hop_limit=hop_limit))
    node.drain()

    def total(name: str, port: int) -> int:
        return sum(node.counter(name, port, traffic_class) for traffic_class in range(8))

    answers, drops = total("time_exceeded", 1), total("hop_limit_drops", 1) + total("no_route_drops", 1)
    assert answers > 100
    assert total("received", 1) + answers == total("sent", 2) + drops


def test_answers_are_limited_to_a_rate_and_a_burst(node: Node) -> None:
    """As the controller sets it: ten at once and ten per second."""
    node.engine.set_meter(METER, 0, TIME_EXCEEDED)
    probe, found = frame("fcbb:bbbb:1:2::", payload=UDP, next_header=17, hop_limit=1), []
    for wait_ns in (0, 100_000_000, 500_000_000, 5_000_000_000):
        node.run(wait_ns)
        for _ in range(20):
            node.receive(1, probe)
        found.append(len(node.take()))
    assert found == [10, 1, 5, 10]


@pytest.mark.parametrize("program", PROGRAMS)
def test_both_engines_answer_anything_alike(program: str) -> None:
    """Any types, sources and destinations, frames that are cut or padded, and bytes that are anything."""
    dice, nodes = random.Random(9), [answering(program, kind) for kind in ENGINES]
    for one in nodes:
        one.engine.set_meter(METER, 0, MeterConfig(500, 20, 500, 20))
    places = ["fcbb:bbbb:1:2::", "fcbb:bbbb:1::", "ff02::1", "2001:db8:2::1", "::"]
    sent = [0, 0]
    for _ in range(1500):
        next_header = dice.choice([17, 41, 43, 58, 58, 59])
        payload = dice.randbytes(dice.choice([0, 1, 7, 8, 9, 60, 1191, 1192, 1193, 2000]))
        data = frame(dice.choice(places), payload=payload, next_header=next_header, hop_limit=dice.choice([0, 1, 1, 2]))
        if dice.random() < 0.2:
            data = data[:22] + IPv6Address(dice.choice(places)).packed + data[38:]
        if dice.random() < 0.3:
            data = data[: dice.randrange(len(data))] if dice.random() < 0.5 else data + dice.randbytes(9)
        if dice.random() < 0.2:
            at = dice.randrange(max(1, len(data)))
            data = data[:at] + dice.randbytes(1) + data[at + 1 :]
        for one in nodes:
            one.receive(1, data)
            one.run(1_000_000)
        ours, theirs = ([item.frame for item in one.take()] for one in nodes)
        assert ours == theirs
        sent[0] += len(ours)
        sent[1] += any(item[20:21] == b":" and item[54:55] == b"\x03" for item in ours)
    assert sent[0] > 400
    assert sent[1] > 200


# --- traceroute ------------------------------------------------------------------------------------------------------


class Fabric:
    """The switches of a plan with the plan's tables, one frame at a time."""

    def __init__(self, name: str) -> None:
        self.plan = load_plan(name)
        self._engine = cache(self._made)

    def _made(self, switch: Switch) -> Engine:
        made = engine("native")
        DirectControl(made, compiled_pipelines()[switch.program]).install(tables(self.plan, switch))
        for ref in ports(self.plan, switch):
            made.configure_port(ref.port, PortConfig(), 0)
        return made

    def carried(self, ref: PortRef, data: bytes) -> tuple[Host, bytes]:
        """A frame that leaves by a host's port ends at this host."""
        while True:
            there = peer(self.plan, ref)
            if isinstance(there.node, Host):
                return there.node, data
            switch = self._engine(there.node)
            switch.receive(there.port, data, 0)
            (sent,) = switch.advance(0)
            ref, data = PortRef(there.node, sent.port), sent.frame


@pytest.mark.parametrize("name", ["tiny", "lab", "pods"])
def test_a_traceroute_over_a_list_of_usids_names_each_switch_of_its_path(name: str) -> None:
    fabric = Fabric(name)
    plan = fabric.plan
    source, target = Host(0), Host(plan.host_count - 1)
    for path in paths(plan, source, target):
        named = []
        own = port_address(plan, source, path.port - 1)
        ref = PortRef(source, path.port)
        for hop_limit in range(1, len(list(hops(plan, path))) + 1):
            probe = frame(path_da(plan, path).packed, payload=UDP, next_header=17, hop_limit=hop_limit)
            probe = probe[:22] + own.packed + probe[38:]
            host, data = fabric.carried(ref, probe)
            assert host == source
            told = IPv6(data[14:])
            assert (told.dst, told[ICMPv6TimeExceeded].code) == (str(own), 0)
            assert bytes(told.payload)[48:] == UDP, "the part by which traceroute knows its probe"
            named.append(told.src)
        assert named == [str(switch_address(plan, hop.switch)) for hop in hops(plan, path)]


def test_a_traceroute_over_plain_ipv6_names_switches_of_the_way() -> None:
    fabric = Fabric("tiny")
    plan = fabric.plan
    target = Host(plan.host_count - 1)
    named = []
    for hop_limit in (1, 2, 3, 4):
        probe = frame(host_address(plan, target).packed, payload=UDP, next_header=17, hop_limit=hop_limit)
        probe = probe[:22] + host_address(plan, Host(0)).packed + probe[38:]
        host, data = fabric.carried(PortRef(Host(0), 1), probe)
        named.append((host, IPv6(data[14:]).src))
    leaves = [str(switch_address(plan, plan.switch_node(f"p0l{index}"))) for index in range(2)]
    assert named[0] == (Host(0), leaves[0])
    assert named[1][1] in [str(switch_address(plan, plan.switch_node(f"p0s{index}"))) for index in range(2)]
    assert named[2:] == [(Host(0), leaves[1]), (target, str(host_address(plan, Host(0))))]
