"""Plans as files of other gear, and back: the same nodes, cables, rates and settings."""

import re
from dataclasses import replace
from ipaddress import IPv6Network
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from cli.main import main
from fabric.checking import check
from fabric.exporting import FORMS, export, source_name
from fabric.facts import Facts
from fabric.planning import imported
from fabric.reading import read
from fabric.shape import shape_of
from tests.topo.topologies.shapes import LEAF_SPINES, leaf_spines, lists, pods, rails, uneven
from topo import Plan, load_plan
from topo.graph import links

SHAPES = st.one_of(leaf_spines, LEAF_SPINES, lists(), pods(), rails(), uneven())


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    plan: Plan = draw(SHAPES)
    names = {host.name: f"server-{host.index}" for host in plan.hosts()} if draw(st.booleans()) else {}
    return replace(
        plan,
        names=MappingProxyType(names),
        usid_block=draw(st.sampled_from((plan.usid_block, IPv6Network("5f00:7::/32")))),
        links=replace(plan.links, hardware_rate_bps=draw(st.sampled_from((100, 400, 800))) * 10**9),
        trimming=replace(plan.trimming, size_bytes=draw(st.integers(122, 512))),
    )


def told(plan: Plan, form: str) -> dict[str, Any]:
    """Everything about a plan that a form can carry, by the names of the source: its hosts may get other numbers."""
    rates = {
        f"{source_name(plan, link.a.node)}–{source_name(plan, link.b.node)}": link.rate_bps / plan.links.host_rate_bps
        for link in links(plan)
    }
    rich = form == "sonic"
    return {
        "cables": rates if rich else sorted(rates),
        "names": sorted(plan.names.values()),
        "block": plan.usid_block,
        "hardware": plan.links.hardware_rate_bps if rich else 0,
        "trimmed": (plan.trimming.size_bytes, plan.dscp.trimmed) if rich else (),
    }


def written(plan: Plan, form: str, folder: Path) -> Facts:
    for name, text in export(plan, form):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return read([folder])


@pytest.mark.parametrize("form", ["frr", "sonic"])
@settings(max_examples=12)
@given(plan=plans())
def test_an_exported_plan_is_imported_as_the_same_plan(form: str, plan: Plan):
    with TemporaryDirectory() as folder:
        facts = written(plan, form, Path(folder))
        again = imported(facts, shape_of(facts), "again").plan
    assert told(again, form) == told(plan, form)


@pytest.mark.parametrize("form", ["frr", "sonic"])
@pytest.mark.parametrize("name", ["tiny", "lab", "pods"])
def test_every_ev_of_an_exported_plan_leads_where_it_must(form: str, name: str, tmp_path: Path):
    checked = check(written(load_plan(name), form, tmp_path))
    assert list(map(str, checked.findings)) == []
    assert checked.right == checked.walked > 0


def test_nvue_has_the_commands_of_its_documentation_and_says_that_it_was_not_run(tmp_path: Path, capsys):
    """The prefix has the bits of block and node, func-length is 0 for uN, static routes go by interface."""
    assert main(["topo", "export", "cumulus", "tiny", "-o", str(tmp_path / "out")]) == 0
    assert "Cumulus Linux 5.14 or newer: not run" in capsys.readouterr().out
    lines = (tmp_path / "out/config/p0l0/nvue.sh").read_text().splitlines()
    assert lines[2:8] == [
        "nv set router segment-routing srv6 locator MAIN prefix fcbb:bbbb:1000::/48",
        "nv set router segment-routing srv6 locator MAIN block-length 32",
        "nv set router segment-routing srv6 locator MAIN node-length 16",
        "nv set router segment-routing srv6 locator MAIN func-length 0",
        "nv set router segment-routing static srv6-sid fcbb:bbbb:1000::/48 locator-name MAIN",
        "nv set router segment-routing static srv6-sid fcbb:bbbb:1000::/48 behavior uN",
    ]
    assert "nv set vrf default router static fcbb:bbbb:2000::/48 via swp3" in lines
    assert all(re.match(r"nv (set|config) |# ", line) for line in lines)


def test_a_plan_without_usids_is_refused_and_every_form_says_how_far_it_was_tried(tmp_path: Path, capsys):
    plan = tmp_path / "plain.toml"
    plan.write_text(
        'name = "plain"\nencapsulation = "none"\n[fabric]\nplanes = 1\nleaves = 2\nspines = 2\nhosts_per_leaf = 2\n'
    )
    assert main(["topo", "export", "frr", str(plan), "-o", str(tmp_path / "out")]) == 2
    assert "must have uSIDs to be exported" in capsys.readouterr().err
    assert all(re.search(r": (not )?run$", form.tried) for form in FORMS.values())
