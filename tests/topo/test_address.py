"""Names, MACs, addresses and uSIDs: unique where they must be, for any plan."""

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.topo.topologies.shapes import LEAF_SPINES
from topo.address import (
    address_usids,
    adjacency_usid,
    host_address,
    host_prefix,
    leaf_prefix,
    nic_usid,
    port_address,
    switch_usid,
    usid_address,
    usid_prefix,
)
from topo.graph import link_between, peer, port_count, ports, towards_host
from topo.node import Host, Switch, leaf, parse_node, spine
from topo.planfile import load_plan


@given(LEAF_SPINES)
def test_macs_interfaces_and_addresses_are_unique_over_the_fabric(plan):
    refs = [ref for node in (*plan.hosts(), *plan.switches()) for ref in ports(plan, node)]
    assert len({ref.mac for ref in refs}) == len(refs)
    assert len({ref.interface for ref in refs}) == len(refs)
    assert all(len(ref.interface) <= 15 for ref in refs)
    addresses = [host_address(plan, h) for h in plan.hosts()]
    addresses += [port_address(plan, h, p) for h in plan.hosts() for p in range(plan.planes)]
    assert len(set(addresses)) == len(addresses)
    for host in plan.hosts():
        inside = [host_address(plan, host), *(port_address(plan, host, p) for p in range(plan.planes))]
        assert all(a in host_prefix(plan, host) for a in inside)
        assert host_prefix(plan, host).subnet_of(leaf_prefix(plan.leaf_of(host)))


@given(LEAF_SPINES)
def test_no_two_prefixes_that_one_switch_looks_up_collide(plan):
    for switch in plan.switches():
        own = [usid_prefix(plan, switch_usid(switch))]
        own += [usid_prefix(plan, adjacency_usid(ref.port)) for ref in ports(plan, switch)]
        own += [usid_prefix(plan, switch_usid(switch), adjacency_usid(ref.port)) for ref in ports(plan, switch)]
        static = []
        for ref in ports(plan, switch):
            other = peer(plan, ref).node
            usid = nic_usid(plan.downlink_of(other)) if isinstance(other, Host) else switch_usid(other)
            static.append(usid_prefix(plan, usid))
        assert len(set(own + static)) == len(own) + len(static)
        hosts = {ref: peer(plan, ref).node for ref in ports(plan, switch) if towards_host(plan, ref)}
        assert bool(hosts) == (switch.role == "leaf")


def test_the_largest_fabric_keeps_every_usid_apart():
    plan = load_plan("paper")
    t0 = {switch_usid(leaf(p, i)) for p in range(plan.planes) for i in range(plan.leaves)}
    t1 = {switch_usid(spine(p, i)) for p in range(plan.planes) for i in range(plan.spines)}
    nic = {nic_usid(d) for d in range(plan.hosts_per_leaf)}
    adjacency = {adjacency_usid(p) for p in range(1, port_count(plan, leaf(0, 0)) + 1)}
    assert len(t0) == 8 * 512
    assert len(t1) == 8 * 256
    assert len(t0 | t1 | nic | adjacency) == len(t0) + len(t1) + len(nic) + len(adjacency)
    assert max(t0 | t1 | nic) < 0xE000 <= min(adjacency)


def test_usids_follow_the_contract():
    assert switch_usid(leaf(1, 2)) == 0x1000 + 512 + 2
    assert switch_usid(spine(1, 3)) == 0x2000 + 256 + 3
    assert nic_usid(1) == 0x3001
    assert adjacency_usid(3) == 0xE003
    plan = load_plan("lab")
    assert str(usid_address(plan, [nic_usid(1)])) == "fcbb:bbbb:3001::"
    assert str(usid_prefix(plan, 0x1202, 0xE001)) == "fcbb:bbbb:1202:e001::/64"


@given(st.lists(st.integers(1, 0xFFFF), min_size=1, max_size=6))
def test_a_container_gives_back_its_usids(usids):
    plan = load_plan("lab")
    assert address_usids(plan, usid_address(plan, usids)) == usids


def test_containers_refuse_what_they_cannot_hold():
    plan = load_plan("lab")
    for usids in ([], [1] * 7, [0], [0x10000]):
        with pytest.raises(ValueError, match="uSID"):
            usid_address(plan, usids)
    with pytest.raises(ValueError, match="not in the uSID block"):
        address_usids(plan, ipaddress.IPv6Address("fd00::1"))


def test_ports_follow_the_contract():
    plan = load_plan("lab")
    wired = [str(peer(plan, ref)) for ref in ports(plan, leaf(1, 2))]
    assert wired == ["h4:2", "h5:2", "p1s0:3", "p1s1:3", "p1s2:3", "p1s3:3"]
    assert [str(peer(plan, ref)) for ref in ports(plan, spine(1, 3))] == ["p1l0:6", "p1l1:6", "p1l2:6", "p1l3:6"]
    with pytest.raises(ValueError, match=r"p1l2 has no port 7: its ports are 1 to 6"):
        peer(plan, type(next(ports(plan, leaf(1, 2))))(leaf(1, 2), 7))
    with pytest.raises(ValueError, match="p0l0 is wired to h0, h1, p0s0"):
        link_between(plan, leaf(0, 0), leaf(0, 1))


@given(st.integers(0, 7), st.integers(0, 511), st.sampled_from(["leaf", "spine"]))
def test_names_parse_back_to_their_nodes(plane, index, role):
    assert parse_node(Switch(plane, role, index).name) == Switch(plane, role, index)
    assert parse_node(Host(index).name) == Host(index)


@pytest.mark.parametrize("name", ["", "h", "h01", "p1", "p1x2", "H1", "h1 ", "p01l2", "h-1"])
def test_what_is_no_name_is_refused(name):
    with pytest.raises(ValueError, match="is no node"):
        parse_node(name)
