"""Topology files of htsim: which become plans, and which line keeps the others from it."""

from pathlib import Path

import pytest

from topo.planfile import PlanError, load_plan, parse_document, plan_document

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


def test_a_leaf_spine_fabric_is_a_plan_of_one_plane(tmp_path: Path):
    plan = load_plan(write(tmp_path, LEAF_SPINE))
    assert (plan.name, plan.planes, plan.leaves, plan.spines, plan.hosts_per_leaf) == ("fabric", 1, 4, 2, 8)
    assert plan.links.host_rate_bps == plan.links.fabric_rate_bps == plan.links.hardware_rate_bps == 100_000_000_000
    assert parse_document(plan_document(plan)) == plan


def test_every_path_has_the_latency_of_the_file(tmp_path: Path):
    links = load_plan(write(tmp_path, LEAF_SPINE)).links
    over_a_spine_ns = 2 * links.host_delay_ns + 2 * links.fabric_delay_ns
    under_a_leaf_ns = 2 * links.host_delay_ns
    assert over_a_spine_ns == 2 * 1000 + 2 * 600 + 2 * 300 + 500
    assert under_a_leaf_ns == 2 * 1000 + 300


def test_keys_of_the_plan_can_be_changed(tmp_path: Path):
    plan = load_plan(write(tmp_path, LEAF_SPINE), {"trimming.enabled": "false", "fabric.spines": "4"})
    assert not plan.trimming.enabled
    assert plan.spines == 4


def without(line: str) -> str:
    assert line + "\n" in LEAF_SPINE
    return LEAF_SPINE.replace(line + "\n", "")


def other(line: str, new: str) -> str:
    assert line + "\n" in LEAF_SPINE
    return LEAF_SPINE.replace(line + "\n", new + "\n", 1)


BAD = [
    (other("Tiers 2", "Tiers 3"), 3, "a plan must have 2 tiers, leaves and spines (got 3)"),
    (other("Podsize 32", "Podsize 16"), 4, "must be one pod of all 32 nodes (got 16)"),
    (other("Radix_Down 8", "Radix_Down 7"), 8, "Radix_Down must divide Nodes, 32 (got 7)"),
    (other("Radix_Down 4", "Radix_Down 5"), 16, "a spine must reach all 4 leaves of 8 nodes (got 5)"),
    (other("Oversubscribed 4", "Oversubscribed 2"), 12, "Oversubscribed must be a leaf's rate down over its rate up"),
    (other("Oversubscribed 4", "Bundle 2"), 12, "Bundle must be 1"),
    (other("Oversubscribed 4", "Queue_up 64"), 12, "Queue_up must be left out"),
    (other("Radix_Up 2", "Radix_Sideways 2"), 9, "the name must be one of tier, downlink_speed_gbps"),
    (other("Radix_Up 2", "Radix_Up two"), 9, "Radix_Up must be a whole number"),
    (other("Radix_Up 2", "Radix_Up"), 9, "a line must be NAME NUMBER (got 'Radix_Up')"),
    (other("Switch_Latency_ns 300", "Radix_Down 8"), 11, "Radix_Down must be given once; line 8 has it already"),
    (other("Tier 1", "Tier 2"), 14, "tiers must be numbered 0, 1 in this order (got 2)"),
    (without("Radix_Up 2"), 6, "tier 0 must have radix_up"),
    (without("Nodes 32"), 17, "the file must have Nodes"),
    ("", 0, "the file must have Nodes"),
    (LEAF_SPINE + "Radix_Up 2\n", 19, "the upper tier must have no Radix_Up"),
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
