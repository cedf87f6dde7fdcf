"""Names from elsewhere (`[names]` of a plan): taken wherever a node is named; refused where they confuse."""

import pytest

from topo import PlanError, plan_document
from topo.fault import make_fault
from topo.node import is_node_name, parse_node
from topo.planfile import load_plan, parse_document, parse_plan

TEXT = """\
name = "named"
[fabric]
planes = 2
leaves = 2
spines = 2
hosts_per_leaf = 2
[names]
p0l1 = "p0-leaf01"
p0l0 = "p0-leaf0"
p1s1 = "dc1.spine-9"
h3 = "gpu03"
"""


def test_a_node_has_both_names_and_the_plan_is_stored_with_them():
    plan = parse_plan(TEXT)
    assert [plan.node(name).name for name in ("p0-leaf01", "p0l1", "gpu03", "dc1.spine-9")] == [
        "p0l1",
        "p0l1",
        "h3",
        "p1s1",
    ]
    assert parse_document(plan_document(plan)) == plan
    assert "names" not in plan_document(load_plan("tiny"))
    assert dict(plan.single_plane().names) == {"p0l1": "p0-leaf01", "p0l0": "p0-leaf0", "h3": "gpu03"}


@pytest.mark.parametrize(
    ("verb", "target", "own"),
    [
        ("link-down", "p0-leaf01-p0s1", "p0l1-p0s1"),
        ("link-down", "p0-leaf0-p0s1", "p0l0-p0s1"),
        ("blackhole", "p1l0>dc1.spine-9", "p1l0>p1s1"),
        ("port-down", "gpu03.p1", "h3.p1"),
        ("switch-reboot", "dc1.spine-9", "p1s1"),
        ("optics-down", "gpu03", "h3"),
    ],
)
def test_faults_take_either_name(verb: str, target: str, own: str):
    assert make_fault(parse_plan(TEXT), verb, target).target == own


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ('p0l7 = "x"', "names.p0l7: plan 'named' has no p0l7"),
        ('p0s0 = "p0l1"', "names.p0s0 must be letters"),
        ('p0s0 = "a b"', "names.p0s0 must be letters"),
        ('p0s0 = "gpu03"', "names.p0s0 must differ from names.h3: both are 'gpu03'"),
        ("p0s0 = 3", "names.p0s0"),
    ],
)
def test_names_that_confuse_are_refused(line: str, why: str):
    with pytest.raises(PlanError, match=why):
        parse_plan(TEXT + line + "\n")


@pytest.mark.parametrize("name", ["h\u0663", "p\u0660l0", "p0s\u0661", "h01", "p0l00"])
def test_numbers_of_nodes_are_ascii_digits_without_zeros_in_front(name: str) -> None:
    with pytest.raises(ValueError, match="is no node"):
        parse_node(name)
    assert not is_node_name(name)
