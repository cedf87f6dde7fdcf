"""ECMP for plain IPv6: what tells flows apart, and that one flow keeps to one member."""

import ipaddress
import zlib

import pytest

from p4c.entries import ActionCall, Entry, Exact, GroupRef, Lpm
from tests.helpers.p4.frames import frame
from tests.helpers.p4.node import Node, destination
from tests.helpers.p4.programs import ENGINES, PROGRAMS, compiled, engine

PORTS = (2, 3, 4, 5)
PROFILE = "SwitchIngress.route.ecmp_selector"
NETWORK = int(ipaddress.IPv6Address("2001:db9::"))
FLOWS = 64
UDP = 17


@pytest.fixture(params=[(p, k) for p in PROGRAMS for k in ENGINES], ids=lambda pair: "-".join(pair))
def node(request: pytest.FixtureRequest) -> Node:
    program, kind = request.param
    made = Node(engine(kind), compiled(program).program)
    made.wire(1, *PORTS)
    made.add("ipv6_route", (Lpm(NETWORK, 32),), "set_ecmp_group", 1, 0)
    for port in PORTS:
        made.engine.set_member(PROFILE, port, ActionCall("SwitchIngress.route.set_next_hop", (port,)))
    made.engine.set_group(PROFILE, 1, [(port, 1) for port in PORTS])
    made.engine.insert_entry("SwitchIngress.route.ecmp", Entry((Exact(1),), GroupRef(1)))
    return made


def flow(
    host: int = 1, source: int = 0, label: int = 0, sport: int = 49152, dport: int = 4791, next_header: int = UDP
) -> bytes:
    udp = sport.to_bytes(2, "big") + dport.to_bytes(2, "big") + bytes(4)
    to = (NETWORK | host).to_bytes(16, "big")
    made = bytearray(frame(to, flow_label=label, next_header=next_header, payload=udp))
    made[36:38] = source.to_bytes(2, "big")  # the last bits of the source address
    return bytes(made)


def members(node: Node, frames: list[bytes]) -> list[int]:
    for made in frames:
        node.receive(1, made)
    return [sent.port for sent in node.drain()]


@pytest.mark.parametrize(
    "vary",
    [
        lambda i: flow(host=i + 1), lambda i: flow(source=i), lambda i: flow(label=i), lambda i: flow(sport=49152 + i),
        lambda i: flow(dport=4791 + i),
    ],
    ids=["destination", "source", "flow label", "UDP source port", "UDP destination port"],
)  # fmt: skip
def test_each_field_alone_spreads_flows_over_every_member(node: Node, vary) -> None:
    used = members(node, [vary(i) for i in range(FLOWS)])
    assert len(used) == FLOWS
    assert set(used) == set(PORTS)


def hashed(sport: int) -> int:
    """The CRC-32 of addresses, flow label (20 bits) and UDP ports, padded to whole bytes, by zlib."""
    made = flow(sport=sport)
    return zlib.crc32(made[22:54] + ((sport << 16 | 4791) << 4).to_bytes(7, "big"))


@pytest.mark.parametrize("shift", [0, 8, 15])
def test_the_member_is_the_shifted_crc_32_modulo_the_size_of_the_group(node: Node, shift: int) -> None:
    node.add("ipv6_route", (Lpm(NETWORK, 48),), "set_ecmp_group", 1, shift)
    sports = range(49152, 49152 + FLOWS)
    used = members(node, [flow(sport=sport) for sport in sports])
    assert used == [PORTS[(hashed(sport) >> shift) % len(PORTS)] for sport in sports]


def test_flows_that_one_switch_has_sent_one_way_part_at_the_next(node: Node) -> None:
    node.add("ipv6_route", (Lpm(NETWORK, 48),), "set_ecmp_group", 1, 8)
    together = [sport for sport in range(49152, 49152 + 8 * FLOWS) if hashed(sport) % len(PORTS) == 2]
    assert set(members(node, [flow(sport=sport) for sport in together])) == set(PORTS)


def test_a_flow_keeps_to_its_member(node: Node) -> None:
    for label in range(8):
        assert len(set(members(node, [flow(label=label)] * 10))) == 1


def test_what_looks_like_ports_but_is_not_udp_does_not_count(node: Node) -> None:
    assert len(set(members(node, [flow(sport=i, next_header=59) for i in range(FLOWS)]))) == 1


def test_a_group_without_a_member_uses_the_others(node: Node) -> None:
    """What a controller writes after a failure."""
    node.engine.set_group(PROFILE, 1, [(port, 1) for port in PORTS[1:]])
    assert set(members(node, [flow(label=i) for i in range(FLOWS)])) == set(PORTS[1:])


def test_an_empty_group_drops_and_counts(node: Node) -> None:
    node.engine.set_group(PROFILE, 1, [])
    assert members(node, [flow(), frame(destination(2), payload=b"")]) == [2]
    assert node.counter("no_next_hop_drops", 1, 0) == 1
