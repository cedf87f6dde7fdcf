"""ECMP on the plan `pods`: packets per core, against members worked out with the CRC-32 of zlib."""

from collections import Counter
from random import Random
from statistics import NormalDist
from zlib import crc32

from running.worlds.virtual_time import SimulatedFabric
from topo import Host, Plan, Switch
from topo.address import host_address
from topo.planfile import load_plan
from topo.topologies.topology import Topology

PODS = load_plan("pods").single_plane()
FLOWS, FRAMES = 2_000, 2
SPACING_NS = 1_000_000


def key(plan: Plan, source: Host, destination: Host, sport: int) -> bytes:
    """The fields that are hashed: addresses, a flow label of 0 (20 bits) and the UDP ports, padded to whole bytes."""
    addresses = host_address(plan, source).packed + host_address(plan, destination).packed
    return addresses + ((sport << 16 | 4791) << 4).to_bytes(7, "big")


def frame(fields: bytes) -> bytes:
    sport = int.from_bytes(fields[32:], "big") >> 20 & 0xFFFF
    udp = sport.to_bytes(2, "big") + (4791).to_bytes(2, "big") + (8).to_bytes(2, "big") + bytes(2)
    ethernet = bytes(12) + b"\x86\xdd"
    return ethernet + b"\x60\0\0\0" + (8).to_bytes(2, "big") + bytes([17, 64]) + fields[:32] + udp


def core_of(topology: Topology, switch: Switch, leaf_index: int, hashed: int) -> Switch:
    """Up from a leaf: at each switch the member of the ports towards the destination's leaf that the hash names."""
    while switch.role != "core":
        ports = sorted(topology.next_ports(switch, leaf_index))
        shift = 0 if switch.role == "leaf" else 8 + switch.index % 8
        above = topology.neighbour(switch, ports[(hashed >> shift) % len(ports)])
        assert isinstance(above, Switch)
        switch = above
    return switch


def counted() -> tuple[Counter[str], Counter[str]]:
    """Frames of random flows between the pods by core: expected ones, and those that cores have received."""
    rng, topology = Random(3), PODS.topology
    fabric, expected, frames = SimulatedFabric(PODS, seed=1), Counter[str](), []
    pods = [[host for host in PODS.hosts() if (host.index < 4) == first] for first in (True, False)]
    for flow in range(FLOWS):
        ends = [rng.choice(pod) for pod in pods]
        rng.shuffle(ends)
        source, destination = ends
        fields = key(PODS, source, destination, 0xC000 + rng.randrange(0x4000))
        own, other = (Switch(0, "leaf", host.index // PODS.hosts_per_leaf) for host in ends)
        expected[core_of(topology, own, other.index, crc32(fields)).name] += FRAMES
        number = fabric.host_numbers[source]
        frames += [((FRAMES * flow + i + 1) * SPACING_NS, number, 1, frame(fields)) for i in range(FRAMES)]
    fabric.fabric.send(frames)
    end_ns = (FRAMES * FLOWS + 1_000) * SPACING_NS
    while fabric.fabric.reached_ns < end_ns:
        fabric.fabric.gather(fabric.fabric.run(None, end_ns))
    found = Counter[str]()
    for node, switch in fabric.switches.items():
        if node.role == "core":
            cells = switch.program_counters().values()
            found[node.name] = sum(classes.received for port in cells for classes in port.values())
    return expected, found


def test_cores_receive_what_the_hash_says_and_each_its_share_of_random_flows() -> None:
    expected, found = counted()
    assert sum(found.values()) == FLOWS * FRAMES
    assert found == expected
    # Within a binomial interval of 99.99 %. With the same hash on both tiers, two of the four cores received none.
    reach = NormalDist().inv_cdf(1 - 0.00005) * (FLOWS * 0.25 * 0.75) ** 0.5
    assert all(abs(found[f"p0c{core}"] / FRAMES - FLOWS / 4) < reach for core in range(4))
