"""Paths, EVs and uSID lists: every list walks the graph to its host, EV → path → EV is the identity."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.topo.topologies.shapes import LEAF_SPINES
from topo.address import usid_address
from topo.graph import PortRef
from topo.node import Host, leaf, spine
from topo.path import evs, path_count, path_da, path_of_ev, paths, self_probe, usid_list, walk
from topo.planfile import load_plan
from topo.profile import nic_profile


@st.composite
def pairs(draw):
    plan = draw(LEAF_SPINES)
    host = st.integers(0, plan.host_count - 1).map(Host)
    return plan, draw(host), draw(host)


@given(pairs())
def test_every_pair_of_hosts_has_as_many_evs_and_each_names_its_path(pair):
    plan, source, destination = pair
    found = list(evs(plan, source, destination))
    assert len({ev for ev, _ in found}) == len(found) == plan.planes * plan.spines
    assert [path_of_ev(plan, source, destination, ev) for ev, _ in found] == [path for _, path in found]
    distinct = [path.ev for path in paths(plan, source, destination)]
    assert set(distinct) <= {ev for ev, _ in found}
    assert all(0 < ev < 2**32 for ev, _ in found)
    local = plan.leaf_of(source) == plan.leaf_of(destination)
    assert len(set(distinct)) == len(distinct) == path_count(plan, local=local)


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


def test_a_host_does_not_probe_other_leaves():
    plan = load_plan("lab")
    with pytest.raises(ValueError, match="probes its own leaves, in plane 1 p1l0"):
        self_probe(plan, Host(0), leaf(1, 1))


def test_a_list_that_no_switch_knows_ends_where_it_is_dropped():
    plan = load_plan("tiny")
    entered = walk(plan, Host(0), 0, usid_address(plan, [0x1000, 0x9999]))
    assert [str(ref) for ref in entered] == ["p0l0:1"]


def test_lists_and_evs_follow_the_contract():
    plan = load_plan("lab")
    cross = path_of_ev(plan, Host(0), Host(5), 1 << 16 | 0xC003)
    assert [hex(usid) for usid in usid_list(plan, cross)] == ["0x1200", "0x2103", "0x1202", "0x3001"]
    assert str(path_da(plan, cross)) == "fcbb:bbbb:1200:2103:1202:3001::"
    assert (cross.via, cross.port) == ("p1s3", 2)
    local = path_of_ev(plan, Host(0), Host(1), 1 << 16 | 0xFFFF)
    assert str(path_da(plan, local)) == "fcbb:bbbb:1200:3001::"
    assert local.via is None


def test_wide_has_256_distinct_paths_between_leaves():
    plan = load_plan("wide")
    assert len({path_da(plan, path) for path in paths(plan, Host(0), Host(7))}) == 256


@pytest.mark.slow
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
