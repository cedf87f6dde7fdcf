"""Whole fabrics other than `tiny` with SRv6: the baseline's single plane, and the largest that is run."""

from dataclasses import replace

import pytest

from topo.address import host_address
from topo.emulation.lab import Lab
from topo.path import paths
from topo.planfile import load_plan

pytestmark = pytest.mark.root

TINY = load_plan("tiny")


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


@pytest.mark.slow
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
