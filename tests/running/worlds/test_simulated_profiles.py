"""Profiles in virtual time are those that agents read, paths made late or not."""

from dataclasses import replace

import pytest

from endpoint import profile
from endpoint.host import count_records
from endpoint.nic.config import Settings, derive
from running.worlds.profiles import HostProfiles
from tests.topo.topologies.shapes import SMALL
from topo.plan import Plan
from topo.planfile import load_plan
from topo.profile import nic_profile


@pytest.mark.parametrize(
    "plan", [load_plan("tiny"), load_plan("lab"), load_plan("rack").single_plane(), *SMALL.values()]
)
def test_a_simulated_hosts_profile_is_the_one_that_an_agent_reads(plan: Plan) -> None:
    profiles = HostProfiles(plan)
    for host in plan.hosts():
        made, read = profiles.of(host), profile.parse(nic_profile(plan, host))
        whole = {name: replace(other, paths=tuple(other.paths)) for name, other in made.destinations.items()}
        assert replace(made, destinations=whole, self_probes=tuple(made.self_probes)) == read
        assert len(made.self_probes) == len(read.self_probes)
        first = next(iter(made.destinations.values()))
        assert [first.paths[0], *first.paths[1:]] == list(first.paths)


@pytest.mark.parametrize("trims", [True, False])
def test_a_transport_knows_whether_its_fabric_trims(trims: bool) -> None:
    plan = load_plan("tiny", {"trimming.enabled": str(trims).lower()})
    for nic in (HostProfiles(plan).of(plan.host("h0")), profile.parse(nic_profile(plan, plan.host("h0")))):
        assert derive(nic, Settings()).trimming == trims


def test_a_hosts_records_are_the_same_whichever_other_hosts_share_its_process() -> None:
    plan = load_plan("tiny")
    profiles, (first, *others) = HostProfiles(plan), plan.hosts()
    own = profiles.of(first)
    assert all(other.paths[0] for other in own.destinations.values())
    alone = count_records([own])
    for host in others:
        assert all(other.paths[0] for other in profiles.of(host).destinations.values())
    assert count_records([own]) == alone
