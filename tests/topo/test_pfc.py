"""Flow control of a plan (IEEE 802.1Qbb): thresholds and headroom worked by hand, and what is refused."""

from dataclasses import replace
from pathlib import Path

import pytest

from controller.entries import TableEntry
from controller.tables import ROCE, tables
from p4c.entries import Exact
from topo.emulation.embedded import serve_config
from topo.graph import PortRef
from topo.node import leaf
from topo.pfc import classes, headroom_bytes, jitter_ns, port_settings
from topo.plan import Links, Plan
from topo.planfile import PlanError, check_pfc, parse_document, plan_document
from topo.profile import nic_profile

GBPS = 1_000_000_000
SOCKETS = Path("/run/mrclab/switch")
LINKS = Links(400 * GBPS, 400 * GBPS, 500, 1000, wire_overhead_bytes=24)
LOSSY = Plan("drawn", 1, 4, 4, 4, links=LINKS, encapsulation="none")
PLAN = LOSSY.with_pfc()
TO_HOST, TO_SPINE = PortRef(leaf(0, 0), 1), PortRef(leaf(0, 0), 5)


def test_headroom_is_the_cable_both_ways_three_longest_frames_and_the_pause() -> None:
    frame = 4338 + 14 + 24
    assert headroom_bytes(PLAN, TO_HOST) == 50 * 2 * 500 + 3 * frame + 64 + 24  # 400 Gb/s are 50 bytes a nanosecond
    assert headroom_bytes(PLAN, TO_SPINE) == 50 * 2 * 1000 + 3 * frame + 64 + 24
    assert headroom_bytes(PLAN, TO_HOST, late_ns=100) == headroom_bytes(PLAN, TO_HOST) + 50 * 100


@pytest.mark.parametrize("gbps", [100, 200, 400])
def test_thresholds_and_headroom_scale_with_rate_and_delay(gbps: int) -> None:
    plan = PLAN.at_rate(gbps * GBPS)
    settings = port_settings(plan, TO_HOST)
    assert settings["pfc_xoff_bytes"] == 2 * plan.plane_bdp_bytes
    assert settings["pfc_headroom_bytes"] - port_settings(PLAN, TO_HOST)["pfc_headroom_bytes"] == 0  # delays stretch
    farther = replace(plan, links=replace(plan.links, host_delay_ns=plan.links.host_delay_ns + 800))
    assert headroom_bytes(farther, TO_HOST) - headroom_bytes(plan, TO_HOST) == 2 * 800 * gbps // 8


def test_only_the_baselines_data_is_lossless_and_only_where_it_is_asked_for() -> None:
    assert (classes(LOSSY), classes(PLAN)) == (0, 1 << 3)
    assert (nic_profile(LOSSY, LOSSY.host("h0"))["pfc_classes"], port_settings(LOSSY, TO_HOST)) == (0, {})
    assert nic_profile(PLAN, PLAN.host("h0"))["pfc_classes"] == 1 << 3
    assert port_settings(PLAN, TO_HOST)["pfc_mac"] == 0x02_10_00_00_00_01
    entries = {plan.pfc.enabled: tables(plan, leaf(0, 0)) for plan in (LOSSY, PLAN)}
    dscp = (("dscp", Exact(PLAN.dscp.roce)),)
    priorities = {
        on: [e.args for e in found if isinstance(e, TableEntry) and e.match == dscp] for on, found in entries.items()
    }
    assert priorities == {False: [(ROCE, 0)], True: [(ROCE, 3)]}


def test_real_ports_have_the_same_with_room_for_late_processes() -> None:
    (device,) = serve_config(PLAN, [leaf(0, 0)], SOCKETS)["devices"]
    (lossy,) = serve_config(LOSSY, [leaf(0, 0)], SOCKETS)["devices"]
    assert {key: value for key, value in device["ports"][0].items() if key.startswith("pfc_")} == port_settings(
        PLAN, TO_HOST, late_ns=2 * jitter_ns(PLAN)
    )
    assert not any(key.startswith("pfc_") for key in lossy["ports"][0])


def test_a_plan_with_flow_control_is_read_back_as_it_was_written() -> None:
    assert parse_document(plan_document(PLAN)) == PLAN


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"encapsulation": "srv6"}, "MRC runs without it: set encapsulation = 'none' and fabric.planes = 1"),
        ({"switch": "bmv2"}, "bmv2 switches have no priority-based flow control .* valid is switch = 'embedded'"),
        ({"switch": "linux"}, "linux switches have no priority-based flow control"),
        ({"pfc": {"enabled": True, "xon": 3.0}}, "pfc.xon must not exceed pfc.xoff: 3.0 > 2.0"),
        ({"pfc": {"enabled": True, "quanta": 65_536}}, "pfc.quanta"),
        ({"pfc": {"enabled": True, "xoff": -1.0}}, "pfc.xoff"),
    ],
)
def test_a_plan_that_cannot_be_lossless_is_refused(changes: dict[str, object], says: str) -> None:
    with pytest.raises(PlanError, match=says):
        parse_document({**plan_document(PLAN), **changes})


def test_a_transport_that_needs_flow_control_refuses_switches_without() -> None:
    with pytest.raises(PlanError, match="valid is switch = 'embedded'"):
        check_pfc(replace(LOSSY, switch="bmv2").with_pfc())
