"""The comparison of shapes: as many hosts, the paper's latencies and ratios, and a run in its short form."""

from __future__ import annotations

from pathlib import Path

from paper.figure import Measured
from paper.shape import page, runs
from paper.shape.fabrics import PLANES, TIERS
from topo.count import count_parts


def test_both_fabrics_have_as_many_hosts_of_the_same_rate_and_full_bisection() -> None:
    planes, tiers = count_parts(PLANES.plan), count_parts(TIERS.plan)
    assert (planes.nics, planes.nic_rate_bps) == (tiers.nics, tiers.nic_rate_bps) == (16, 400_000_000_000)
    assert planes.oversubscription == tiers.oversubscription == 1
    assert (planes.longest_path_switches, tiers.longest_path_switches) == (3, 5)


def test_a_host_under_one_leaf_is_as_far_in_both_and_the_farthest_two_switches_farther(tmp_path: Path) -> None:
    """By hand: each switch more costs a link of 711 ns, and next to nothing for a frame of 2 bytes."""
    near, far = (runs.perform(runs.latency(TIERS, way), tmp_path).numbers["half"] for way in ("one leaf", "farthest"))
    assert 4 * 0.711 < far - near < 4 * 0.711 + 0.1
    assert list(tmp_path.iterdir()) == []


def test_a_lost_switch_counts_hosts_against_the_same_hosts_before() -> None:
    before = Measured({"h0": 1.0, "h1": 0.9, "h2": 1.0, "all": 0.9667})
    after = Measured({"h0": 0.75, "h1": 0.89, "h2": 0.0, "all": 0.5467})
    found = runs.lost_of("leaf", before, after)
    assert (found.affected, found.cut_off) == (2, 1)
    assert round(found.kept, 3) == 0.566


def test_power_and_switches_at_the_papers_size_are_its_ratios() -> None:
    """The paper: 3/5 of the switches, 2/3 of the optics; 0.4 % against 3 % for a lost link."""
    rows = {row[0]: row[1:] for row in page.parts()[1]}
    planes, tiers = map(float, rows["switches per NIC"])
    assert abs(planes / tiers - 3 / 5) < 0.001
    assert rows["optics per NIC"] == ["4", "6"]
    assert rows["a lost T0–T1 link takes of a leaf"] == ["0.4%", "3.1%"]


def test_tables_are_counted_switch_by_switch() -> None:
    body = page.entries()[1]
    assert [row[:3] for row in body] == [
        ["4 planes of 2 tiers", "leaf", "8"],
        ["4 planes of 2 tiers", "spine", "32"],
        ["1 plane of 3 tiers", "leaf", "8"],
        ["1 plane of 3 tiers", "spine", "8"],
        ["1 plane of 3 tiers", "core", "4"],
    ]
