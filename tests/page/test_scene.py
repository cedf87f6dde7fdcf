"""What the page starts from: places, cables, uSIDs, and what each kind of switch cannot do."""

from dataclasses import replace

import pytest

from page.scene import all_refusals, looks, refusals, scene, verbs
from topo.fault import VERBS, targets
from topo.graph import links
from topo.plan import SwitchKind
from topo.planfile import load_plan


@pytest.mark.parametrize("name", ["tiny", "lab", "rack", "wide", "pods"])
def test_every_node_has_a_place_of_its_own_and_every_cable_two_ends(name: str) -> None:
    plan = load_plan(name)
    told = scene(plan)
    places = {tuple(row[3:5]) for row in told["nodes"]}
    assert len(places) == len(told["nodes"]) == plan.host_count + plan.switch_count
    names = {row[0] for row in told["nodes"]}
    assert len(told["cables"]) == len(list(links(plan)))
    assert all(a in names and b in names for a, b, *_ in told["cables"])
    assert told == scene(plan)


def test_every_verb_is_told_with_how_it_looks() -> None:
    assert {verb["name"]: verb["looks"] for verb in verbs()} == {
        "link-down": "dead", "blackhole": "dead", "loss": "lossy", "delay": "late", "rate": "slow",
        "port-down": "dead", "optics-down": "dead", "switch-stop": "stopped", "switch-crash": "crashed",
        "switch-reboot": "crashed", "drain": "drained", "drain-port": "drained",
    }  # fmt: skip
    assert all(looks(verb) != "running" for verb in VERBS.values())


@pytest.mark.parametrize("kind", ["embedded", "bmv2", "linux"])
def test_what_a_kind_cannot_do_is_refused_with_the_reason(kind: SwitchKind) -> None:
    plan = replace(load_plan("tiny"), switch=kind)
    told = all_refusals(plan)
    for key, verdicts in told.items():
        for verb, why in verdicts.items():
            spec = VERBS[verb]
            if kind not in spec.kinds:
                assert "cannot" in why, (key, verb)
    assert told[f"switch {kind}"].keys() == {verb.name for verb in VERBS.values() if verb.target == "switch"}


def test_refusals_are_those_of_the_fault_verbs_for_every_target() -> None:
    plan = load_plan("tiny")
    for verb in VERBS.values():
        possible = set(targets(plan, verb.name))
        for target in ("p0l0-p0s1", "h0-p0l0", "p0l1>p0s0", "p0l0>h0", "h0>p0l0", "h1.p1", "h1", "p1s0"):
            verdicts = refusals(plan, target)
            if verb.name in verdicts:
                assert (verdicts[verb.name] == "") == (target in possible), (verb.name, target)
