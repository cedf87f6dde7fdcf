"""Names, addresses, paths, EVs and uSID lists: unique, and every list walks the graph to its host, or into a fault."""

import ipaddress
import json

import pytest
from hypothesis import given, strategies as st

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
from topo.fault import arrival, conditions, make_fault
from topo.fault.fault import Fault
from topo.graph import PortRef, link_between, peer, port_count, ports
from topo.node import Host, Switch, leaf, parse_node, spine
from topo.path import evs, path_count, path_da, path_of_ev, paths, self_probe, usid_list, walk
from topo.plan import Plan
from topo.planfile import load_plan
from topo.profile import nic_profile
from topo.show import duration, show_paths, show_plan


@st.composite
def pairs(draw):
    plan = draw(LEAF_SPINES)
    host = st.integers(0, plan.host_count - 1).map(Host)
    return plan, draw(host), draw(host)


@given(pairs())
def test_every_pair_of_hosts_has_an_ev_per_spine_and_as_many_paths_as_there_are(pair):
    plan, source, destination = pair
    found = list(evs(plan, source, destination))
    assert len(found) == plan.planes * plan.spines
    assert all(0 < ev < 2**32 for ev, _ in found)
    local = plan.leaf_of(source) == plan.leaf_of(destination)
    assert len(list(paths(plan, source, destination))) == path_count(plan, local=local)


@given(pairs(), st.integers(0, 2**32 - 1))
def test_an_ev_of_no_path_is_refused(pair, ev):
    plan, source, destination = pair
    if ev in {known for known, _ in evs(plan, source, destination)}:
        return
    with pytest.raises(ValueError, match="names no path"):
        path_of_ev(plan, source, destination, ev)


@given(LEAF_SPINES)
def test_self_probes_return_to_the_host_over_the_named_switch(plan):
    for host in plan.hosts():
        for plane in range(plan.planes):
            own = leaf(plane, plan.leaf_of(host))
            for target in (own, *(spine(plane, i) for i in range(plan.spines))):
                port, da = self_probe(plan, host, target)
                entered = walk(plan, host, port - 1, da)
                assert entered[-1] == PortRef(host, port)
                assert target in {ref.node for ref in entered[:-1]}


def test_a_host_does_not_probe_other_leaves_and_a_list_that_no_switch_knows_ends_there():
    plan = load_plan("lab")
    with pytest.raises(ValueError, match="probes its own leaves, in plane 1 p1l0"):
        self_probe(plan, Host(0), leaf(1, 1))
    plan = load_plan("tiny")
    entered = walk(plan, Host(0), 0, usid_address(plan, [0x1000, 0x9999]))
    assert [str(ref) for ref in entered] == ["p0l0:1"]


def test_lists_evs_and_ports_follow_the_contract():
    plan = load_plan("lab")
    cross = path_of_ev(plan, Host(0), Host(5), 1 << 16 | 0xC003)
    assert [hex(usid) for usid in usid_list(plan, cross)] == ["0x1200", "0x2103", "0x1202", "0x3001"]
    assert str(path_da(plan, cross)) == "fcbb:bbbb:1200:2103:1202:3001::"
    assert (cross.via, cross.port) == ("p1s3", 2)
    local = path_of_ev(plan, Host(0), Host(1), 1 << 16 | 0xFFFF)
    assert str(path_da(plan, local)) == "fcbb:bbbb:1200:3001::"
    assert local.via is None
    wired = [str(peer(plan, ref)) for ref in ports(plan, leaf(1, 2))]
    assert wired == ["h4:2", "h5:2", "p1s0:3", "p1s1:3", "p1s2:3", "p1s3:3"]
    assert [str(peer(plan, ref)) for ref in ports(plan, spine(1, 3))] == ["p1l0:6", "p1l1:6", "p1l2:6", "p1l3:6"]
    with pytest.raises(ValueError, match=r"p1l2 has no port 7: its ports are 1 to 6"):
        peer(plan, type(next(ports(plan, leaf(1, 2))))(leaf(1, 2), 7))
    with pytest.raises(ValueError, match="p0l0 is wired to h0, h1, p0s0"):
        link_between(plan, leaf(0, 0), leaf(0, 1))


@given(LEAF_SPINES)
def test_profiles_name_every_destination_and_path_once(plan):
    for host in plan.hosts():
        profile = json.loads(json.dumps(nic_profile(plan, host)))
        assert [port["port"] for port in profile["ports"]] == list(range(1, plan.planes + 1))
        assert set(profile["destinations"]) == {h.name for h in plan.hosts()} - {host.name}
        for name, destination in profile["destinations"].items():
            wanted = {ev for ev, _ in evs(plan, host, plan.host(name))}
            assert {row["ev"] for row in destination["paths"]} == wanted
            assert len(destination["paths"]) == len(wanted)
            assert all(row["port"] == row["plane"] + 1 for row in destination["paths"])
        assert len(profile["self_probes"]) == plan.planes * (1 + plan.spines)


def test_the_baseline_profile_has_one_port_and_plain_destinations():
    plan = load_plan("lab").single_plane()
    profile = nic_profile(plan, Host(0))
    assert profile["encapsulation"] == "none"
    assert [port["rate_bps"] for port in profile["ports"]] == [40_000_000]
    rows = profile["destinations"]["h5"]["paths"]
    assert {row["da"] for row in rows} == {"fd00:2:1::1"}
    assert len({row["ev"] for row in rows}) == len(rows) >= 16
    assert profile["self_probes"] == []


@given(LEAF_SPINES)
def test_interfaces_are_short_and_addresses_unique_over_the_fabric(plan):
    refs = [ref for node in (*plan.hosts(), *plan.switches()) for ref in ports(plan, node)]
    assert all(len(ref.interface) <= 15 for ref in refs)
    addresses = [host_address(plan, h) for h in plan.hosts()]
    addresses += [port_address(plan, h, p) for h in plan.hosts() for p in range(plan.planes)]
    assert len(set(addresses)) == len(addresses)
    for host in plan.hosts():
        inside = [host_address(plan, host), *(port_address(plan, host, p) for p in range(plan.planes))]
        assert all(a in host_prefix(plan, host) for a in inside)
        assert host_prefix(plan, host).subnet_of(leaf_prefix(plan.leaf_of(host)))


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


def test_usids_follow_the_contract_and_containers_refuse_what_they_cannot_hold():
    assert switch_usid(leaf(1, 2)) == 0x1000 + 512 + 2
    assert switch_usid(spine(1, 3)) == 0x2000 + 256 + 3
    assert nic_usid(1) == 0x3001
    assert adjacency_usid(3) == 0xE003
    plan = load_plan("lab")
    assert str(usid_address(plan, [nic_usid(1)])) == "fcbb:bbbb:3001::"
    assert str(usid_prefix(plan, 0x1202, 0xE001)) == "fcbb:bbbb:1202:e001::/64"
    for usids in ([], [1] * 7, [0], [0x10000]):
        with pytest.raises(ValueError, match="uSID"):
            usid_address(plan, usids)
    with pytest.raises(ValueError, match="not in the uSID block"):
        address_usids(plan, ipaddress.IPv6Address("fd00::1"))


@given(st.lists(st.integers(1, 0xFFFF), min_size=1, max_size=6))
def test_a_container_gives_back_its_usids(usids):
    plan = load_plan("lab")
    assert address_usids(plan, usid_address(plan, usids)) == usids


@given(st.integers(0, 7), st.integers(0, 511), st.sampled_from(["leaf", "spine"]))
def test_names_parse_back_to_their_nodes(plane, index, role):
    assert parse_node(Switch(plane, role, index).name) == Switch(plane, role, index)
    assert parse_node(Host(index).name) == Host(index)


@pytest.mark.parametrize("name", ["", "h", "h01", "p1", "p1x2", "H1", "h1 ", "p01l2", "h-1"])
def test_what_is_no_name_is_refused(name):
    with pytest.raises(ValueError, match="is no node"):
        parse_node(name)


PLAN = load_plan("tiny")
PATH = next(path for path in paths(PLAN, Host(0), Host(3)) if (path.plane, path.via) == (0, "p0s1"))


def shown(*faults: Fault) -> list[str]:
    return show_paths(PLAN, [path_of_ev(PLAN, Host(0), Host(3), PATH.ev)], faults).splitlines()


def test_a_sound_path_is_shown_from_its_first_switch_to_the_host_without_a_remark() -> None:
    lines = shown()
    assert len(lines) == 5
    assert "DEAD" not in lines[0]
    assert "LOSES" not in lines[0]
    assert [line.split()[0] for line in lines[1:]] == ["p0l0", "p0s1", "p0l1", "h3"]


@pytest.mark.parametrize(
    ("verb", "target", "place", "words"),
    [
        ("link-down", "h0-p0l0", "h0>p0l0", ["EV", "✗"]),
        ("link-down", "p0l0-p0s1", "p0l0>p0s1", ["EV", "p0l0", "✗"]),
        ("blackhole", "p0s1>p0l1", "p0s1>p0l1", ["EV", "p0l0", "p0s1", "✗"]),
        ("switch-crash", "p0s1", "p0s1", ["EV", "p0l0", "✗"]),
        ("switch-stop", "p0l1", "p0l1", ["EV", "p0l0", "p0s1", "✗"]),
    ],
)
def test_nothing_is_shown_of_a_path_beyond_what_no_packet_survives(verb, target, place, words) -> None:
    lines = shown(make_fault(PLAN, verb, target))
    assert lines[0].endswith("  DEAD")
    assert [line.split()[0] for line in lines] == words
    assert lines[-1].split()[1] == place
    assert [condition.ends for condition in conditions(PLAN, [make_fault(PLAN, verb, target)], PATH)] == [True]


def test_a_loss_is_shown_where_it_happens_and_a_silent_one_of_every_packet_counts_as_a_whole() -> None:
    faults = [make_fault(PLAN, "loss", "p0l0>p0s1", 25), make_fault(PLAN, "loss", "p0l1>h3", 50)]  # percent
    lines = shown(*faults)
    assert lines[0].endswith("  LOSES 0.625")  # 1 - 0.75 * 0.5
    assert [line.split()[0] for line in lines] == ["EV", "p0l0", "!", "p0s1", "p0l1", "!", "h3"]
    assert "p0l0>p0s1 loses 0.25 of its packets" in lines[2]
    assert [condition.loss for condition in conditions(PLAN, faults, PATH)] == [0.25, 0.5]
    assert arrival(conditions(PLAN, faults, PATH)) == 0.375
    (met,) = conditions(PLAN, [make_fault(PLAN, "blackhole", "p0l0>p0s1")], PATH)
    assert (met.text, met.ends, met.loss) == ("loses every packet silently", True, 1.0)


def test_a_switch_says_only_what_happened_to_the_whole_of_it() -> None:
    crash, drain = make_fault(PLAN, "switch-crash", "p0s1"), make_fault(PLAN, "drain", "p0s1")
    assert [met.text for met in conditions(PLAN, [crash], PATH)] == ["has crashed: no program, no tables"]
    assert [met.text for met in conditions(PLAN, [drain], PATH)] == ["is drained: NICs send nothing across it"]
    assert conditions(PLAN, [make_fault(PLAN, "switch-crash", "p0s0")], PATH) == []
    assert conditions(PLAN, [make_fault(PLAN, "link-down", "p0l0-p0s0")], PATH) == []


@pytest.mark.parametrize(
    ("ns", "words"),
    [(999, "999 ns"), (1000, "1 µs"), (999_999, "1000 µs"), (1_000_000, "1 ms"), (1_500_000_000, "1.5 s")],
)
def test_a_time_has_the_largest_unit_that_it_fills(ns: int, words: str) -> None:
    assert duration(ns) == words


@pytest.mark.parametrize(
    ("sizes", "row", "ratio"),
    [
        ((4, 2, 2, 2), "switches ", "51.200 = 256/5"),
        ((4, 2, 3, 2), "switches ", "64.000"),
        ((2, 1, 1, 2), "optics ", "0.500 = 1/2"),
        ((3, 7, 5, 11), "switches ", "5.984"),
    ],
)
def test_a_ratio_is_a_fraction_only_where_it_is_one_exactly(sizes: tuple[int, int, int, int], row, ratio) -> None:
    """Planes, leaves, spines and hosts of a leaf, beside the 5,120 switches for 65,536 NICs that three tiers take."""
    shown_plan = show_plan(Plan("any", *sizes)).splitlines()
    assert [line.split("   ")[-1] for line in shown_plan if line.startswith(row)][-1] == ratio
