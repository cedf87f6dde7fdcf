"""The 48-switch fabric of `segmentrouting/srv6-mrc-emulator`: imported, checked by its own tool's lists, rehearsed on.

Needs a checkout (`tests/switch/public/checkouts.py`), of which nothing is part of this repository.
"""

import os
import subprocess
import sys
from ipaddress import IPv6Address
from itertools import product
from pathlib import Path

import pytest

from cli.main import main
from fabric.checking import check
from fabric.planning import imported
from fabric.reading import read
from fabric.shape import shape_of
from tests.switch.public.checkouts import checkout

LISTS = """
from itertools import product
from srv6_mrc import topo
for words in product(topo.TENANTS, *map(range, (topo.NUM_PLANES, topo.NUM_SPINES, topo.NUM_LEAVES))):
    print(*words, topo.usid_outer_dst(*words))
"""
"""Prints tenant, plane, spine, leaf and the list of uSIDs that the emulator's senders write for them."""


@pytest.fixture(scope="module")
def fabric() -> Path:
    return checkout("srv6-mrc-emulator") / "topologies/4p-4x8"


def test_48_switches_are_imported_and_nothing_is_found(fabric: Path) -> None:
    facts = read([fabric / "topology.clab.yaml", fabric / "config"])
    plan = imported(facts, shape_of(facts), "emulator").plan
    assert (plan.switch_count, plan.host_count, plan.planes) == (48, 16, 4)
    assert plan.names["p3l7"] == "p3-leaf07"
    checked = check(facts)
    assert list(map(str, checked.findings)) == []
    # 16 hosts: 14 others under other leaves by 4 × 4 ways, 1 under the same leaves by 4.
    assert checked.walked == checked.right == 16 * (14 * 16 + 4)


def test_every_list_of_its_own_tool_leads_over_the_links_of_its_numbers(fabric: Path) -> None:
    pytest.importorskip("yaml")
    environment = {**os.environ, "SRV6_TOPO": str(fabric / "topo.yaml"), "PYTHONDONTWRITEBYTECODE": "1"}
    environment["PYTHONPATH"] = str(fabric.parents[1])
    command = [sys.executable, "-c", LISTS]
    told = subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout.splitlines()
    assert len(told) == 2 * 4 * 4 * 8
    tables = check(read([fabric / "topology.clab.yaml", fabric / "config"])).tables
    for line, source in product(told, range(8)):
        tenant, plane, spine, leaf, usids = line.split()
        if source == int(leaf):
            continue
        host = f"{tenant}-host{int(leaf):02d}"
        walk = tables.walk(f"p{plane}-leaf{source:02d}", int(IPv6Address(usids)), host)
        assert (walk.delivered, walk.last) == (True, host)
        assert list(map(str, walk.links)) == [
            f"p{plane}-leaf{source:02d}:Ethernet{4 * int(spine)}",
            f"p{plane}-spine{int(spine):02d}:Ethernet{4 * int(leaf)}",
            f"p{plane}-leaf{int(leaf):02d}:Ethernet{32 if tenant == 'green' else 36}",
        ]


@pytest.mark.slow
def test_a_change_of_it_is_rehearsed(
    fabric: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["topo", "import", str(fabric / "topology.clab.yaml"), str(fabric / "config"), "-o", "own.toml"]) == 0
    step = '[[step]]\ndo = "reboot"\ntarget = "p1-spine02"\nat_s = 1\n'
    Path("reboot.toml").write_text(f'name = "reboot"\nplan = "own.toml"\nseconds = 3\n\n{step}')
    assert main(["rehearse", "reboot.toml", "--seeds", "1", "--runs", "runs", "--workers", "1"]) in (0, 1, 3)
    said = capsys.readouterr().out
    assert "noticed in " in said
    assert "-spine" in said
