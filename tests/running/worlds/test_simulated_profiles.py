"""Profiles in virtual time are those that agents read, paths made late or not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from endpoint import profile
from running.worlds.profiles import HostProfiles
from topo.plan import Plan
from topo.planfile import load_plan
from topo.profile import nic_profile


@pytest.mark.parametrize("plan", [load_plan("tiny"), load_plan("lab"), load_plan("rack").single_plane()])
def test_a_simulated_hosts_profile_is_the_one_that_an_agent_reads(plan: Plan) -> None:
    profiles = HostProfiles(plan)
    for host in plan.hosts():
        made, read = profiles.of(host), profile.parse(nic_profile(plan, host))
        whole = {name: replace(other, paths=tuple(other.paths)) for name, other in made.destinations.items()}
        assert replace(made, destinations=whole) == read
        first = next(iter(made.destinations.values()))
        assert [first.paths[0], *first.paths[1:]] == list(first.paths)
