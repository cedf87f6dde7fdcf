"""Plans for other gear: golden files, and packets that follow the exported text from NIC to NIC."""

import ipaddress
import json
import re
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from cli import main as cli
from cli.exporting.routers import LANES, frr, sonic
from common.terminal import progress
from tests.topo.topologies.shapes import SMALL
from topo.address import usid_address
from topo.graph import PortRef, peer
from topo.node import Switch
from topo.path import hops, path_da, paths
from topo.planfile import load_plan

GOLDEN = Path(__file__).parent / "golden"
PLAN = load_plan("tiny")
STATIC_SIDS_SINCE = (10, 3)
Table = dict[ipaddress.IPv6Network, set[int]]


def test_configurations_are_those_of_the_golden_files() -> None:
    switch = PLAN.switch_node("p0l0")
    assert frr(PLAN, switch) == (GOLDEN / "p0l0.frr.conf").read_text()
    assert json.loads(sonic(PLAN, switch)) == json.loads((GOLDEN / "p0l0.sonic.json").read_text())


def frr_release() -> tuple[int, int] | None:
    """Of the FRR on this machine; None when there is none."""
    if shutil.which("vtysh") is None:
        return None
    told = subprocess.run(["vtysh", "--help"], capture_output=True, text=True, check=False, timeout=30).stdout
    found = re.search(r"version (\d+)\.(\d+)", told)
    return (int(found[1]), int(found[2])) if found else None


def refused_by_frr(folder: Path, text: str) -> str:
    """What FRR's own parser says against a configuration; "" when it takes every line."""
    (folder / "vtysh.conf").touch()
    file = folder / "frr.conf"
    file.write_text(text)
    argv = ["vtysh", "--config_dir", str(folder), "-C", "-f", str(file)]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=30)
    return f"status {done.returncode}: {done.stderr}" if done.returncode else ""


@pytest.mark.skipif(frr_release() is None, reason="needs FRR's vtysh (apt-get install frr)")
def test_frrs_own_parser_takes_every_static_route_and_names_a_wrong_line(tmp_path: Path) -> None:
    for plan in (PLAN, load_plan("lab"), *SMALL.values()):
        for switch in plan.switches():
            assert refused_by_frr(tmp_path, frr(plan, switch).partition("segment-routing")[0]) == "", switch
    assert refused_by_frr(tmp_path, "ipv6 rode fd00::/48 fe80::1 p0l0-eth1\n").startswith("status 2")


@pytest.mark.skipif(
    (frr_release() or (0, 0)) < STATIC_SIDS_SINCE, reason="needs FRR 10.3 or newer: older ones know no static SIDs"
)
def test_frrs_own_parser_takes_every_line(tmp_path: Path) -> None:
    for plan in (PLAN, load_plan("lab"), *SMALL.values()):
        for switch in plan.switches():
            assert refused_by_frr(tmp_path, frr(plan, switch)) == "", switch


def frr_table(text: str) -> tuple[ipaddress.IPv6Network, Table]:
    """A switch's own uSID and its routes, as FRR's words say them: prefix to port numbers."""
    table: Table = {}
    for prefix, interface in re.findall(r"^ipv6 route (\S+) fe80::1 (\S+)$", text, re.MULTILINE):
        table.setdefault(ipaddress.IPv6Network(prefix), set()).add(int(interface.rpartition("eth")[2]))
    (own,) = re.findall(r"sid (\S+) locator MAIN behavior uN", text)
    return ipaddress.IPv6Network(own), table


def sonic_table(text: str) -> tuple[ipaddress.IPv6Network, Table]:
    told = json.loads(text)
    table = {
        ipaddress.IPv6Network(key.partition("|")[2]): {
            int(name.removeprefix("Ethernet")) // LANES + 1 for name in row["ifname"].split(",")
        }
        for key, row in told["STATIC_ROUTE"].items()
    }
    (own,) = told["SRV6_MY_SIDS"]
    return ipaddress.IPv6Network(own.partition("|")[2]), table


@pytest.mark.parametrize("plan", [PLAN, *SMALL.values()], ids=["tiny", *SMALL])
@pytest.mark.parametrize(("form", "read"), [(frr, frr_table), (sonic, sonic_table)], ids=["frr", "sonic"])
def test_packets_follow_the_exported_routes_along_every_path(form, read, plan) -> None:
    read_tables = {switch: read(form(plan, switch)) for switch in plan.switches()}
    source, destination = plan.host("h0"), plan.host(f"h{plan.host_count - 1}")
    for path in paths(plan, source, destination):
        address, here = path_da(plan, path), peer(plan, PortRef(source, path.port))
        crossed = []
        while isinstance(here.node, Switch):
            own, table = read_tables[here.node]
            if address in own:
                # uN, RFC 9800: what stands behind the active uSID moves up by its 16 bits.
                block, rest = int(address) >> 96 << 96, int(address) & (1 << 96) - 1
                address = ipaddress.IPv6Address(block | rest << 16 & (1 << 96) - 1)
            matching = [prefix for prefix in table if address in prefix]
            (port,) = table[max(matching, key=lambda prefix: prefix.prefixlen)]
            crossed.append((here.node, port))
            here = peer(plan, PortRef(here.node, port))
        assert here.node == destination
        assert crossed == [(hop.switch, hop.port_out) for hop in hops(plan, path)]
        assert address == usid_address(plan, [0x3001])


@pytest.mark.parametrize("form", ["json", "frr"])
def test_a_long_export_says_how_far_it_is(form: str, tmp_path, capsys, monkeypatch) -> None:
    monkeypatch.setattr(progress, "LINE_S", 0.0)
    monkeypatch.setattr(time, "monotonic", iter(range(0, 10**6, 60)).__next__)
    assert cli.main(["export", form, "tiny", "-o", str(tmp_path / "out")]) == 0
    said = capsys.readouterr().err.splitlines()
    assert "mrclab: 7 of 8 switches, about 69 s left" in said
    assert ("mrclab: 11 of 12 nodes, about 65 s left" in said) == (form == "json")
    told = {line.split()[4] for line in said}
    assert len(told) == (3 if form == "json" else 1), said


def test_export_refuses_what_it_cannot_write(tmp_path: Path, refused) -> None:
    assert "-o FOLDER for all 8 switches, or --switch NAME" in refused("export", "sonic", "tiny")
    refused("export", "frr", "tiny", "--switch", "p9l9")
    assert "--switch must be left out with json" in refused("export", "json", "tiny", "--switch", "p0l0")
    said = refused("export", "frr", "tiny", "--switch", "p0l0", "-o", tmp_path)
    assert f"--output must be a file with --switch (got the folder {tmp_path})" in said


def test_one_switch_goes_into_the_file_that_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "leaf.conf"
    assert cli.main(["export", "frr", "tiny", "--switch", "p0l0", "-o", str(file)]) == 0
    assert file.read_text() == frr(PLAN, PLAN.switch_node("p0l0"))
    assert capsys.readouterr().out == f"wrote {file}\n"
