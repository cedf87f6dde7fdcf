"""The rules in which the presets differ, each by itself."""

from dataclasses import asdict
from random import Random

import pytest

from benchmarks.rig.profiles import profile as profile_data
from endpoint import profile as profiles
from endpoint.mrc.algorithms import find
from endpoint.mrc.loss.reorder import ReorderRule
from endpoint.mrc.paths.ev_state import EvCause, EvState
from endpoint.mrc.paths.selection import next_after_loss
from endpoint.mrc.presets import BY_DEFAULT, CX8, LAB, OCP, RULES
from endpoint.nic.config import ConfigError, Settings, derive, make_settings
from tests.helpers.transport import Bench, ev_set

ALL = 0b1111


def test_the_defaults_are_the_measured_nics_but_for_the_rules_that_are_named() -> None:
    defaults = asdict(Settings())
    assert {name: defaults[name] for name in CX8} == {**CX8, **{name: LAB[name] for name in BY_DEFAULT}}
    assert all(len({rule.ocp, rule.cx8, rule.lab}) == 2 for rule in RULES)
    assert len({rule.setting for rule in RULES}) == len(RULES)
    for preset in (OCP, CX8, LAB):
        derive(profiles.parse(profile_data(0)), make_settings(dict(preset)))


@pytest.mark.parametrize("cause", [EvCause.ECN, EvCause.TRIM])
def test_a_congested_ev_gives_its_place_to_a_backup_of_its_plane_where_it_is_swapped(cause: EvCause) -> None:
    found = ev_set(16, 16, swaps_congested=True)
    plane = found.planes[1]
    path, backups = plane.active[0], list(plane.backups)
    assert backups
    found.signal(path, cause, 0)
    assert (path.active, path.state, path in plane.backups) == (False, EvState.GOOD, True)
    assert plane.active[0] in backups
    assert plane.active[0].active
    assert len(plane.active) == plane.quota


def test_a_congested_ev_rests_where_it_is_not_swapped_or_has_no_backup() -> None:
    for found in (ev_set(16, 16), ev_set(16, swaps_congested=True)):
        path = found.planes[1].active[0]
        found.signal(path, EvCause.ECN, 0)
        assert (path.active, path.state) == (True, EvState.SKIP)


def sent(bench: Bench, count: int) -> list[int]:
    """The EVs of the next so many packets of a plane, as a queue pair's selection takes them."""
    plane = bench.qp_a.evs.planes[0]
    return [path.ev for _ in range(count) if (path := plane.take()) is not None]


def test_cx8_leaves_a_marked_ev_for_a_backup_and_stays_away() -> None:
    """The paper's figure 14: flow 1 moves from EV-A to EV-B by ECN, and stays there."""
    bench = Bench(**CX8, evs_active=4, evs_backup=4)
    plane = bench.qp_a.evs.planes[0]
    marked = plane.active[0]
    bench.qp_a.evs.signal(marked, EvCause.ECN, 0)
    assert marked.ev not in sent(bench, 64)


def test_a_swapped_ev_that_is_lost_later_leaves_its_plane_whole() -> None:
    found = ev_set(16, 16, swaps_congested=True)
    plane = found.planes[0]
    path = plane.active[0]
    found.signal(path, EvCause.ECN, 0)
    found.signal(path, EvCause.LOSS, 0)
    assert path not in plane.backups
    assert path in plane.out
    assert len(plane.active) == plane.quota


@pytest.mark.parametrize("suspects", [True, False])
def test_a_lossy_plane_is_left_as_a_whole_only_where_planes_are_suspected(suspects: bool) -> None:
    found = ev_set(32, suspects_planes=suspects)
    plane = found.planes[2]
    for sent_ns in range(8):  # eight silent losses in a row: two points each
        path = plane.active[sent_ns % len(plane.active)]
        found.lose(path, sent_ns, 1000 + sent_ns, proved=True)
    assert (plane not in found.live) == suspects


@pytest.mark.parametrize("suspects", [True, False])
def test_the_last_ev_of_a_lossy_plane_goes_only_where_planes_are_suspected(suspects: bool) -> None:
    """Replacements are of the same plane (the paper, section 4), so only a policy can leave one that is up."""
    found = ev_set(4, suspects_planes=suspects)
    plane = found.planes[2]
    (path,) = plane.active
    for sent_ns in range(0, 1000, 10):
        path.alive_ns = sent_ns + 5  # what was sent after the lost packet has been acknowledged
        found.lose(path, sent_ns, sent_ns + 7, proved=True)
    assert (plane not in found.live) == suspects


@pytest.mark.parametrize("leaves", [True, False])
def test_what_was_lost_goes_by_another_plane_only_by_the_labs_rule(leaves: bool) -> None:
    found = ev_set(16, 16, leaves_plane=leaves)
    selection = find("selection", "mrc")(found, Random(3), {})
    blamed = found.planes[0].active[0]
    planes = {path.plane.number for _ in range(64) if (path := next_after_loss(selection, found, ALL, blamed, 0))}
    assert planes == ({1, 2, 3} if leaves else {0, 1, 2, 3})


def test_a_patient_nic_takes_a_packet_for_lost_that_much_later() -> None:
    assert ReorderRule(100, 20, patience_ns=500).window_ns == ReorderRule(100, 20).window_ns + 500
    patient = ReorderRule(100, 20, patience_ns=500)
    patient.rtt_sample(0, 150)
    patient.rtt_sample(1, 250)
    assert patient.later_ns == 150 + 500 + 100
    assert patient.window_ns == 100 + 20 + 500 + 100


@pytest.mark.parametrize(
    ("setting", "rule"),
    [
        ({"congested_ev": "drop"}, "congested_ev is 'drop'; it must be one of skip, swap"),
        ({"retransmit_plane": "same"}, "retransmit_plane is 'same'; it must be one of other, any"),
        ({"loss_patience_ns": -1}, "loss_patience_ns is -1; it must be from 0"),
        ({"timeout_rtts": 0}, "timeout_rtts is 0; it must be from 1"),
    ],
)
def test_a_rule_that_there_is_not_is_refused_by_name(setting: dict[str, object], rule: str) -> None:
    with pytest.raises(ConfigError, match=rule):
        derive(profiles.parse(profile_data(0)), make_settings(setting))
