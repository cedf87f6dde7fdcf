"""Plans as files of other gear, and back: the same nodes, cables, rates and settings."""

import json
import re
from collections.abc import Callable
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
from fabric.exporting import FORMS, eth, ethernet, export, source_name
from fabric.facts import Facts
from fabric.planning import imported
from fabric.reading import read
from fabric.shape import shape_of
from tests.topo.topologies.shapes import LEAF_SPINES, leaf_spines, lists, pods, rails, uneven
from topo import Host, Plan, load_plan
from topo.graph import PortRef, links

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


Ends = list[tuple[tuple[str, str], tuple[str, str]]]
"""Cables, by the names of nodes and ports."""


def port(ref: PortRef) -> tuple[str, str]:
    """A port by the names of its configuration."""
    return ref.node.name, eth(ref) if isinstance(ref.node, Host) else ethernet(ref)


def netlab(ends: Ends) -> dict[str, str]:
    """One topology."""
    nodes = {name for link in ends for name, _ in link}
    lines = [
        "nodes:",
        *(f"  {name}: {{role: host}}" if name.startswith("server") else f"  {name}: {{}}" for name in nodes),
    ]
    lines.append("links:")
    for number, link in enumerate(ends, 1):
        lines += [f"- linkindex: {number}", "  type: p2p", "  interfaces:"]
        lines += [f"  - {{node: {name}, ifindex: 1, ifname: {port}}}" for name, port in link]
    return {"netlab.yml": "\n".join(lines) + "\n"}


def netbox(ends: Ends) -> dict[str, str]:
    """The columns of NetBox's import."""
    head = "side_a_device,side_a_type,side_a_name,side_b_device,side_b_type,side_b_name,type,status\n"
    interface = "dcim.interface"
    rows = (f"{a},{interface},{p},{b},{interface},{q},smf,connected\n" for (a, p), (b, q) in ends)
    return {"cables.csv": head + "".join(rows)}


def lldp(ends: Ends) -> dict[str, str]:
    """A table per device, as `lldpcli show neighbors -f json` prints it."""
    seen: dict[str, list[dict[str, Any]]] = {}
    for (a, p), (b, q) in ((one, other) for link in ends for one, other in (link, link[::-1])):
        entry = {"via": "LLDP", "chassis": {b: {}}, "port": {"id": {"type": "ifname", "value": q}, "descr": q}}
        seen.setdefault(a, []).append({p: entry})
    return {f"{name}.json": json.dumps({"lldp": {"interface": rows}}) for name, rows in seen.items()}


@pytest.mark.parametrize("cables", [netlab, netbox, lldp])
@settings(max_examples=6)
@given(plan=plans())
def test_cables_of_every_form_beside_the_configurations_make_the_same_plan(
    cables: Callable[[Ends], dict[str, str]], plan: Plan
):
    """The lab's own names tell roles and planes, which these files do not."""
    plan = replace(plan, names=MappingProxyType({}))
    with TemporaryDirectory() as folder:
        written(plan, "sonic", Path(folder))
        (Path(folder) / "topology.clab.yml").unlink()
        for name, text in cables([(port(link.a), port(link.b)) for link in links(plan)]).items():
            (Path(folder) / name).write_text(text)
        facts = read([Path(folder)])
        again = imported(facts, shape_of(facts), "again").plan
    assert told(again, "sonic") == told(plan, "sonic")


def test_eos_has_ports_routes_and_its_own_usid_in_a_locator(tmp_path: Path, capsys):
    """`router srv6` as in MRC-Client's `configs/p0leaf0.cfg`, with the block and uSID of the plan."""
    assert main(["topo", "export", "eos", "tiny", "-o", str(tmp_path / "out")]) == 0
    assert "EOS: not run" in capsys.readouterr().out
    text = (tmp_path / "out/config/p0l0/startup-config").read_text()
    lines = text.splitlines()
    assert lines[5:11] == [
        "interface Ethernet1",
        "   description h0:eth1",
        "   mtu 4338",
        "   no switchport",
        "   ipv6 enable",
        "!",
    ]
    at = lines.index("router srv6")
    assert [line.strip() for line in lines[at : at + 7]] == [
        "router srv6",
        "vrf default",
        "micro-segment domain MRC",
        "block fcbb:bbbb::/32",
        "!",
        "locator LOC1",
        "prefix micro-segment domain MRC end usid 0x1000",
    ]
    assert "ipv6 route fcbb:bbbb:2000::/48 Ethernet3 fe80::1" in lines


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
