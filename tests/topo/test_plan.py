"""Plan files, and topology files of htsim: what is accepted, and which line or key is refused in which words."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

from controller.entries import TableEntry
from controller.tables import ROCE, tables
from p4c.entries import Exact
from topo.address import switch_usid
from topo.emulation.embedded import serve_config
from topo.graph import PortRef, port_queues
from topo.node import leaf
from topo.pfc import classes, headroom_bytes, jitter_ns, port_settings
from topo.plan import OVERHEAD_BYTES, Links, Plan
from topo.planfile import (
    PLANS_DIR,
    PlanError,
    load_plan,
    parse_document,
    parse_plan,
    plan_document,
    shipped_plans,
    switch_of_environment,
)
from topo.profile import nic_profile
from topo.show import show_plan

MINIMAL = 'name = "x"\n[fabric]\nplanes = 2\nleaves = 2\nspines = 2\nhosts_per_leaf = 2\n'


def test_shipped_plans_have_the_promised_shapes_and_lab_spells_out_the_defaults():
    shapes = {name: load_plan(name) for name in shipped_plans()}
    with pytest.raises(PlanError, match="no plan 'huge': shipped are lab, paper, pods, rack, tiny, wide"):
        load_plan("huge")
    assert {n: (p.planes, p.leaves, p.spines, p.hosts_per_leaf) for n, p in shapes.items()} == {
        "tiny": (2, 2, 2, 2), "lab": (4, 4, 4, 2), "rack": (4, 4, 4, 4), "wide": (8, 4, 32, 2),
        "paper": (8, 512, 256, 256), "pods": (2, 4, 4, 2),
    }  # fmt: skip
    lab = load_plan("lab")
    short = parse_plan(MINIMAL)
    for section in ("links", "packets", "queues", "trimming", "dscp", "usid_block", "switch", "encapsulation"):
        assert getattr(lab, section) == getattr(short, section), section


HARDWARE = {
    "links.host_rate_bps": "100_000_000_000", "links.fabric_rate_bps": "100_000_000_000", "links.host_delay_ns": "500",
    "links.fabric_delay_ns": "500",
}  # fmt: skip


def test_a_wires_overhead_and_a_nics_latency_lengthen_the_round_trip():
    """By hand: 4352 + 24 bytes take 350.08 ns at 100 Gb/s, 154 + 24 take 14.24; a NIC's 800 ns count four times."""
    assert parse_plan(MINIMAL, overrides=HARDWARE).base_rtt_ns == 4 * (360 + 1000)
    around = parse_plan(MINIMAL, overrides={**HARDWARE, "links.wire_overhead_bytes": "24"})
    assert around.base_rtt_ns == 4 * (364 + 1000)
    both = replace(around, links=replace(around.links, nic_latency_ns=800))
    assert both.base_rtt_ns == 4 * (364 + 1000) + 4 * 800
    assert both.path_rtt_ns(1) == 2 * (364 + 1000) + 4 * 800
    assert both.plane_bdp_bytes == 12_500 * both.base_rtt_ns // 1000
    assert both.single_plane().links.nic_latency_ns == 800
    faster = both.at_rate(400_000_000_000)
    assert (faster.links.nic_latency_ns, faster.links.wire_overhead_bytes) == (200, 24)


def test_a_plan_is_found_by_its_path_and_a_complaint_about_the_file_names_it(tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text(MINIMAL)
    assert load_plan(file).name == "x"
    assert load_plan(str(PLANS_DIR / "tiny.toml")).name == "tiny"
    file.write_text('name = "mine"\n[fabric]\nplanes = 0\nleaves = 2\nspines = 2\nhosts_per_leaf = 2\n')
    with pytest.raises(PlanError, match=rf"^{file}: fabric.planes is 0"):
        load_plan(file, {"trimming.enabled": "false"})
    with pytest.raises(PlanError, match=r"^--set foo=1: foo is no key"):
        load_plan(file, {"foo": "1", "fabric.planes": "2"})


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (MINIMAL.replace("planes = 2", "planes = 9"), ["fabric.planes", "from 1 to 8", "9"]),
        (MINIMAL.replace("planes = 2", "planes = true"), ["fabric.planes", "integer"]),
        (MINIMAL.replace("leaves = 2\n", ""), ["fabric.leaves is missing", "1 to 512"]),
        (MINIMAL.replace("spines", "spine"), ["fabric.spine is no key", "spines"]),
        (MINIMAL + "[links]\nhost_rate_bps = 12.5\n", ["links.host_rate_bps", "an integer", "12.5"]),
        (MINIMAL + "[queues]\ndepth = 1.2\n", ["queues.depth must exceed queues.trim_lasthop", "1.2", "1.5"]),
        (MINIMAL + "[queues]\necn_min = 0.9\n", ["queues.ecn_min", "queues.ecn_max", "0.9"]),
        (MINIMAL + "[dscp]\ntrimmed = 10\n", ["dscp.trimmed must differ from dscp.trimmable", "10"]),
        (MINIMAL + "[dscp]\ntrimmed = 64\n", ["dscp.trimmed", "0 to 63", "64"]),
        (MINIMAL + "[trimming]\nsize_bytes = 121\n", ["trimming.size_bytes", "122", "121"]),
        (MINIMAL + "[trimming]\nenabled = 1\n", ["trimming.enabled is 1; it must be true or false"]),
        (MINIMAL + '[srv6]\nusid_block = "fcbb::/16"\n', ["srv6.usid_block", "32 bits"]),
        (MINIMAL + '[srv6]\nusid_block = "fd00::/32"\n', ["srv6.usid_block", "fd00::/16"]),
        (MINIMAL + "[srv6]\nusid_block = 7\n", ["srv6.usid_block"]),
        (MINIMAL + '[switches]\np9l0 = "linux"\n', ["switches.p9l0", "p0l0 to p1l1"]),
        (MINIMAL + '[switches]\np0l0 = "cisco"\n', ["switches.p0l0", "'embedded', 'bmv2', 'linux'", "cisco"]),
        ('switch = "ovs"\n' + MINIMAL, ["switch is 'ovs'; it must be one of"]),
        ('encapsulation = "none"\n' + MINIMAL, ["encapsulation", "planes"]),
        ("[fabric", ["must be TOML"]),
        (MINIMAL + "[link]\n", ["link is no key", "links"]),
        ("links = 3\n" + MINIMAL, ["links is 3; it must be", "table"]),
    ],
)
def test_a_bad_plan_is_refused_with_the_key_the_rule_and_the_range(text, words):
    with pytest.raises(PlanError) as caught:
        parse_plan(text, source="mine.toml")
    message = str(caught.value)
    assert message.startswith("mine.toml: ")
    for word in words:
        assert word in message


@pytest.mark.parametrize("name", ["lab", "paper"])
def test_a_plan_survives_being_written_and_read(name):
    plan = replace(load_plan(name), switch_overrides={"p0s1": "linux"})
    for each in (plan, plan.single_plane(), load_plan(name).single_plane().with_pfc()):
        assert parse_document(json.loads(json.dumps(plan_document(each)))) == each


scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.just("fcbb::/32")
values = st.recursive(scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner))


@st.composite
def spoiled_documents(draw):
    """The lab plan with a few keys, at the top or in a section, replaced by anything at all."""
    document = plan_document(load_plan("lab"))
    for _ in range(draw(st.integers(1, 3))):
        section = draw(st.sampled_from(["", *(k for k, v in document.items() if isinstance(v, dict))]))
        table = document[section] if section and isinstance(document[section], dict) else document
        key = draw(st.sampled_from(sorted(table)) | st.text(max_size=6)) if table else "x"
        table[key] = draw(values)
    return document


@given(spoiled_documents())
@settings(max_examples=400)
def test_any_document_is_a_plan_or_is_refused_in_words(document):
    try:
        plan = parse_document(document)
    except PlanError:
        return  # anything else fails the test
    assert parse_document(plan_document(plan)) == plan
    assert plan.depth_packets > plan.threshold_packets(plan.queues.trim_lasthop)


@given(st.text(max_size=60))
def test_any_text_is_refused_in_words(text):
    with pytest.raises(PlanError, match=r"^plan: "):
        parse_plan(text)


def test_an_mtu_too_small_is_refused_with_the_arithmetic():
    need = 4096 + sum(OVERHEAD_BYTES.values())
    with pytest.raises(PlanError, match=rf"outer IPv6 40 \+ inner IPv6 40 .* = {need}, but it is {need - 1}"):
        parse_plan(MINIMAL + f"[links]\nmtu_bytes = {need - 1}\n")
    assert parse_plan(MINIMAL + f"[links]\nmtu_bytes = {need}\n").links.mtu_bytes == need


def test_queues_have_room_for_16_trimmed_packets_and_retransmissions_one_of_their_own_only_where_asked():
    assert load_plan("tiny", {"queues.control_depth": "0.01"}).control_depth_packets == 16
    assert load_plan("tiny").control_depth_packets == 68_024 // 128
    both = [(0, load_plan("tiny").depth_packets), (7, load_plan("tiny").control_depth_packets)]
    found = {}
    for priority in (0, 1, 6):
        plan = load_plan("tiny", {"queues.retransmit_priority": str(priority)})
        found[priority] = [(queue.priority, queue.depth_packets) for queue in port_queues(plan)]
        assert ("retransmissions in a queue of priority" in show_plan(plan)) is (priority > 0)
    assert found == {0: both, 1: [both[0], (1, both[0][1]), both[1]], 6: [both[0], (6, both[0][1]), both[1]]}


def test_lab_thresholds_leave_room_for_a_scheduler_hiccup():
    """Three milliseconds of a stalled process must not look like congestion: ECN begins above three packets' time."""
    plan = load_plan("lab")
    packet_ns = plan.frame_bytes_max * 8 * 10**9 // plan.links.fabric_rate_bps
    assert plan.threshold_packets(plan.queues.ecn_min) * packet_ns > 3 * 3_000_000
    order = [plan.queues.ecn_min, plan.queues.ecn_max, plan.queues.trim, plan.queues.trim_lasthop, plan.queues.depth]
    packets = [plan.threshold_packets(multiple) for multiple in order]
    assert packets == sorted(set(packets))


def test_the_single_plane_has_the_summed_rate_and_scaling_keeps_the_bandwidth_delay_product():
    plan = load_plan("lab")
    single = plan.single_plane()
    assert (single.planes, single.leaves, single.spines, single.host_count) == (1, 4, 4, 8)
    assert single.links.host_rate_bps == 4 * plan.links.host_rate_bps
    assert single.links.fabric_rate_bps == 4 * plan.links.fabric_rate_bps
    assert single.encapsulation == "none"
    assert single.time_scale == plan.time_scale
    fast = plan.at_rate(40_000_000)
    assert fast.base_rtt_ns == pytest.approx(plan.base_rtt_ns / 4, rel=1e-6)
    assert fast.plane_bdp_bytes == pytest.approx(plan.plane_bdp_bytes, abs=2)
    assert fast.depth_packets == plan.depth_packets
    assert fast.time_scale == plan.time_scale / 4


def test_names_of_nodes_are_checked_against_the_plan():
    plan = load_plan("tiny")
    assert plan.node("h3").name == "h3"
    for name, words in [("h4", "h0 to h3"), ("p0l2", "p0l0 to p1l1"), ("p2s0", "p0s0 to p1s1"), ("x", "no node")]:
        with pytest.raises(ValueError, match=words):
            plan.node(name)
    uneven = Plan("uneven", planes=1, leaves=3, spines=2, hosts_per_leaf=1)
    assert uneven.node("p0l2").name == "p0l2"
    with pytest.raises(ValueError, match="p0s0 to p0s1"):
        uneven.node("p0s2")
    with pytest.raises(ValueError, match="is a switch"):
        plan.host("p0l0")
    with pytest.raises(ValueError, match="is a host"):
        plan.switch_node("h0")


def test_single_keys_can_be_overridden_in_toml_or_as_bare_words():
    plan = load_plan("lab", {"trimming.enabled": "false", "links.host_rate_bps": "20_000_000", "switch": "bmv2"})
    assert (plan.trimming.enabled, plan.links.host_rate_bps, plan.switch) == (False, 20_000_000, "bmv2")


NONE = "--set encapsulation=none"
LOSSLESS = {"pfc.enabled": "true", "encapsulation": "none", "fabric.planes": "1", "queues.retransmit_priority": "3"}


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ({"trimming.enable": "false"}, "^--set trimming.enable=false: trimming.enable is no key here; valid: enabled"),
        ({"fabric.planes": "99"}, "^--set fabric.planes=99: fabric.planes is 99; it must be an integer from 1 to 8"),
        ({"trimming.enabled": "maybe"}, "trimming.enabled is 'maybe'; it must be true or false"),
        ({"name.x": "1"}, "name is no section of a plan"),
        ({"foo": "1", "trimming.enabled": "false"}, "^--set foo=1: foo is no key here"),
        ({"switch": "bmv2", "encapsulation": "none", "fabric.planes": "2"}, f"^{NONE}: encapsulation:"),
        ({"encapsulation": "none", "fabric.planes": "3"}, f"^{NONE} --set fabric.planes=3: encapsulation:"),
        ({"links.wire_overhead_bytes": "-1"}, r"links\.wire_overhead_bytes .*0 to"),
        ({"links.wire_overhead_bytes": "300"}, r"links\.wire_overhead_bytes .*0 to"),
        ({"links.nic_latency_ns": "-5"}, r"links\.nic_latency_ns .*0 to"),
        ({"queues.retransmit_priority": "7"}, "retransmit_priority is 7; it must be .*from 0 to 6"),
        ({"queues.retransmit_priority": "1.5"}, "retransmit_priority is 1.5; it must be an integer from 0 to 6"),
        (LOSSLESS, "retransmit_priority must not be 3, the lossless one, with pfc.enabled"),
    ],
)
def test_a_complaint_names_the_overrides_that_cause_it_and_the_rule(overrides, message):
    with pytest.raises(PlanError, match=message):
        load_plan("tiny", overrides)


def test_an_unknown_kind_of_switch_in_the_environment_is_named(monkeypatch):
    monkeypatch.setenv("MRCLAB_SWITCH", "tofino")
    with pytest.raises(PlanError, match=r"MRCLAB_SWITCH must be one of embedded, bmv2, linux \(got 'tofino'\)"):
        switch_of_environment()


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


def test_only_the_baselines_data_is_lossless_where_asked_for_and_real_ports_have_room_for_late_processes() -> None:
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
    (device,) = serve_config(PLAN, [leaf(0, 0)], SOCKETS)["devices"]
    (lossy,) = serve_config(LOSSY, [leaf(0, 0)], SOCKETS)["devices"]
    assert {key: value for key, value in device["ports"][0].items() if key.startswith("pfc_")} == port_settings(
        PLAN, TO_HOST, late_ns=2 * jitter_ns(PLAN)
    )
    assert not any(key.startswith("pfc_") for key in lossy["ports"][0])


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"encapsulation": "srv6"}, "MRC runs without it: set encapsulation = 'none' and fabric.planes = 1"),
        ({"switch": "bmv2"}, "bmv2 switches have no priority-based flow control .* valid is switch = 'embedded'"),
        ({"switch": "linux"}, "linux switches have no priority-based flow control"),
        ({"pfc": {"enabled": True, "xon": 3.0}}, "pfc.xon must not exceed pfc.xoff: 3.0 > 2.0"),
        ({"pfc": {"enabled": True, "quanta": 65_536}}, "pfc.quanta"),
        ({"pfc": {"enabled": True, "xoff": -1.0}}, "pfc.xoff"),
        ({"pfc": {"enabled": True, "xon": -1.0}}, "pfc.xon is -1.0; it must be a number from 0.0"),
    ],
)
def test_a_plan_that_cannot_be_lossless_is_refused(changes: dict[str, object], says: str) -> None:
    with pytest.raises(PlanError, match=says):
        parse_document({**plan_document(PLAN), **changes})


LEAF_SPINE = """# 4 to 1
Nodes 32
Tiers 2
Podsize 32

Tier 0
Downlink_speed_Gbps 100
Radix_Down 8
Radix_Up 2
Downlink_Latency_ns 1000
Switch_Latency_ns 300
Oversubscribed 4

Tier 1
Downlink_speed_Gbps 100
Radix_Down 4
Downlink_Latency_ns 600
Switch_Latency_ns 500
"""


def write(folder: Path, text: str) -> Path:
    file = folder / "fabric.topo"
    file.write_text(text)
    return file


def test_a_leaf_spine_fabric_is_a_plan_of_one_plane_with_the_files_latency_and_keys_that_can_be_changed(tmp_path: Path):
    plan = load_plan(write(tmp_path, LEAF_SPINE))
    assert (plan.name, plan.planes, plan.leaves, plan.spines, plan.hosts_per_leaf) == ("fabric", 1, 4, 2, 8)
    assert plan.links.host_rate_bps == plan.links.fabric_rate_bps == plan.links.hardware_rate_bps == 100_000_000_000
    assert parse_document(plan_document(plan)) == plan
    links = load_plan(write(tmp_path, LEAF_SPINE)).links
    over_a_spine_ns = 2 * links.host_delay_ns + 2 * links.fabric_delay_ns
    under_a_leaf_ns = 2 * links.host_delay_ns
    assert over_a_spine_ns == 2 * 1000 + 2 * 600 + 2 * 300 + 500
    assert under_a_leaf_ns == 2 * 1000 + 300
    plan = load_plan(write(tmp_path, LEAF_SPINE), {"trimming.enabled": "false", "fabric.spines": "4"})
    assert not plan.trimming.enabled
    assert plan.spines == 4


def fat_tree(nodes: int, pod: int, radices: tuple[int, int, int, int, int], gbps: int = 100) -> str:
    """As htsim's own files: `radices` are those down and up of tiers 0 and 1, and down of tier 2."""
    leaf_down, leaf_up, spine_down, spine_up, core_down = radices
    same = f"Downlink_speed_Gbps {gbps}\nDownlink_Latency_ns 1000\n"
    tiers = [f"Radix_Down {leaf_down}\nRadix_Up {leaf_up}", f"Radix_Down {spine_down}\nRadix_Up {spine_up}"]
    tiers.append(f"Radix_Down {core_down}\nBundle 1")
    told = "".join(f"Tier {number}\n{same}{radix}\n" for number, radix in enumerate(tiers))
    return f"Nodes {nodes}\nTiers 3\nPodsize {pod}\n{told}"


@pytest.mark.parametrize(
    ("nodes", "pod", "radices", "switches"),
    [
        (128, 16, (4, 4, 4, 4, 8), (32, 32, 16)),  # fat_tree_128_1os.topo
        (128, 16, (4, 4, 4, 1, 8), (32, 32, 4)),  # _4os
        (128, 16, (4, 1, 4, 2, 8), (32, 8, 2)),  # _8os
        (1024, 64, (8, 8, 8, 8, 16), (128, 128, 64)),  # fat_tree_1024.topo
        (1024, 64, (8, 2, 8, 4, 16), (128, 32, 8)),  # _8os
        (8192, 256, (16, 16, 16, 16, 32), (512, 512, 256)),  # fat_tree_8192_1os.topo
        (8192, 256, (16, 4, 16, 8, 32), (512, 128, 32)),  # _8os
    ],
)
def test_htsims_fat_trees_have_its_numbers_of_switches(tmp_path, nodes, pod, radices, switches) -> None:
    """NTOR, NAGG and NCORE as `fat_tree_topology.cpp` computes them: uplinks over the radix of the tier above."""
    tor = nodes // radices[0]
    agg = tor * radices[1] // radices[2]
    core = agg * radices[3] // radices[4]
    plan = load_plan(write(tmp_path, fat_tree(nodes, pod, radices)))
    cores = sum(switch.role == "core" for switch in plan.switches())
    assert (plan.leaves, plan.spines, cores) == (tor, agg, core) == switches
    assert plan.host_count == nodes
    assert len({switch_usid(switch) for switch in plan.switches()}) == sum(switches)
    assert plan.base_rtt_ns >= 12 * 1000  # six links there and back


def test_a_port_of_8_tbps_is_read_and_more_is_refused_with_its_line(tmp_path: Path) -> None:
    """`leaf_spine_tiny.topo` of atlahs has ports of 8,000 Gb/s."""
    assert load_plan(write(tmp_path, LEAF_SPINE.replace("Gbps 100", "Gbps 8000"))).links.host_rate_bps == 8 * 10**12
    file = write(tmp_path, LEAF_SPINE.replace("Gbps 100", "Gbps 9000"))
    with pytest.raises(PlanError) as refused:
        load_plan(file)
    assert str(refused.value).startswith(f"{file}:7: links.host_rate_bps is 9000000000000; it must be")


def other(line: str, new: str, text: str = LEAF_SPINE) -> str:
    assert line + "\n" in text
    return text.replace(line + "\n", new + "\n", 1)


FAT = fat_tree(128, 16, (4, 4, 4, 4, 8))
TIER_2 = "Tier 2\nDownlink_speed_Gbps"
LATENCY = "Latency_ns {}\nRadix_Down 8"

BAD = [
    (other("Tiers 2", "Tiers 4"), 3, "Tiers must be 2 or 3 (got 4)"),
    (other("Tiers 2", "Tiers 3"), 18, "the file must describe each tier (got 2 of 3)"),
    (other("Podsize 32", "Podsize 16"), 4, "must be one pod of all 32 nodes (got 16)"),
    (other("Radix_Down 8", "Radix_Down 7"), 8, "Radix_Down must divide Nodes, 32 (got 7)"),
    (other("Radix_Down 4", "Radix_Down 5"), 16, "a spine must reach all 4 leaves of 8 nodes (got 5)"),
    (other("Oversubscribed 4", "Oversubscribed 2"), 12, "Oversubscribed must be a switch's rate down over its rate up"),
    (other("Oversubscribed 4", "Bundle 2"), 12, "Bundle must be 1"),
    (other("Oversubscribed 4", "Queue_up 64"), 12, "Queue_up must be left out"),
    (other("Radix_Up 2", "Radix_Sideways 2"), 9, "the name must be one of tier, downlink_speed_gbps"),
    (other("Radix_Up 2", "Radix_Up two"), 9, "Radix_Up must be a whole number"),
    (other("Radix_Up 2", "Radix_Up"), 9, "a line must be NAME NUMBER (got 'Radix_Up')"),
    (other("Switch_Latency_ns 300", "Radix_Down 8"), 11, "Radix_Down must be given once; line 8 has it already"),
    (other("Tier 1", "Tier 2"), 14, "tiers must be numbered from 0 in order (got 2)"),
    (LEAF_SPINE.replace("Radix_Up 2\n", ""), 6, "tier 0 must have radix_up"),
    (LEAF_SPINE.replace("Nodes 32\n", ""), 17, "the file must have Nodes"),
    ("", 0, "the file must have Nodes"),
    (LEAF_SPINE + "Radix_Up 2\n", 19, "the upper tier must have no Radix_Up"),
    (other("Podsize 16", "Podsize 24", FAT), 3, "Podsize must divide Nodes, 128 (got 24)"),
    (other("Radix_Down 8", "Radix_Down 4", FAT), 17, "a core must reach all 8 pods (got 4)"),
    (other("Bundle 1", "Bundle 2", FAT), 18, "Bundle must be 1"),
    (other(f"{TIER_2} 100", f"{TIER_2} 50", FAT), 15, "must be tier 1's, 100 (got 50)"),
    (other(LATENCY.format(1000), LATENCY.format(900), FAT), 16, "must take 1000 ns"),
    (other("Radix_Up 4\nTier 2", "Tier 2", FAT), 9, "tier 1 must have radix_up"),
]


@pytest.mark.parametrize(("text", "line", "rule"), BAD)
def test_the_line_that_no_plan_can_be_is_named(tmp_path: Path, text, line, rule):
    file = write(tmp_path, text)
    with pytest.raises(PlanError) as refused:
        load_plan(file)
    assert str(refused.value).startswith(f"{file}:{line}: " if line else f"{file}: ")
    assert rule in str(refused.value)


def test_rules_of_plans_hold_for_topology_files_too(tmp_path: Path):
    too_large = LEAF_SPINE.replace("32", "2048").replace("Radix_Down 8", "Radix_Down 512")
    too_large = too_large.replace("Radix_Up 2", "Radix_Up 128")
    with pytest.raises(PlanError, match=r"fabric\.hosts_per_leaf"):
        load_plan(write(tmp_path, too_large))


def test_a_topology_file_that_is_no_text_is_not_called_toml(tmp_path):
    (tmp_path / "b.topo").write_bytes(b"Nodes \x80")
    with pytest.raises(PlanError, match=r"b\.topo must be a topology file \(byte \d+ is not UTF-8"):
        load_plan(tmp_path / "b.topo")
