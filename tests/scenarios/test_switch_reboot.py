"""The forms of switch-reboot: switches of one tier, on every fabric that has the tier."""

import pytest

from running.options import Choices
from running.spec import RunSpec
from running.timeline import rehearse
from running.transport_choice import transport
from scenarios import library
from scenarios.scenario import Scenario, Setting
from topo.node import ROLES
from topo.plan import Plan
from topo.planfile import load_plan


def setting(scenario: Scenario, plan: Plan, seed: int) -> Setting:
    return Setting(plan, "mrc", seed, {phase.name: phase.seconds for phase in scenario.phases})


@pytest.mark.parametrize("short", [False, True])
@pytest.mark.parametrize("role", ROLES)
def test_a_form_crashes_switches_of_its_tier_one_after_another(role: str, short: bool) -> None:
    scenario = library.find(f"switch-reboot@{role}")
    scenario = scenario.shortened() if short else scenario
    plan = load_plan("pods")
    drawn = set()
    for seed in range(40):
        own = setting(scenario, plan, seed)
        faults = scenario.timeline(own)
        switches = [plan.switch_node(fault.target) for fault in faults]
        assert {switch.role for switch in switches} == {role}
        assert len(set(switches)) == len(switches) == (2 if short else 4)
        ends = [fault.at_s + (fault.for_s or 0.0) for fault in faults]
        assert all(end < later.at_s for end, later in zip(ends, faults[1:], strict=False))
        assert ends[-1] < own.phases["faults"]
        rehearse(RunSpec(scenario, Choices(transport("mrc"), plan, seed=seed)))
        drawn.update(switches)
    assert drawn == {switch for switch in plan.switches() if switch.role == role}


def test_the_usual_form_draws_as_before() -> None:
    """Runs of earlier versions repeat to the byte: what seed 3 drew on both plans when the forms were added."""
    scenario = library.find("switch-reboot")
    for plan, targets in (("lab", "p1s3 p2s1 p2s0 p0s2 p2l3"), ("pods", "p0s2 p1s3 p0c3 p1c0 p1l0")):
        own = setting(scenario, load_plan(plan), 3)
        assert [fault.target for fault in scenario.timeline(own)] == targets.split()


def test_a_tier_that_the_plan_lacks_is_refused_with_the_forms_that_it_has() -> None:
    scenario = library.find("switch-reboot@core")
    valid = "use switch-reboot@leaf or switch-reboot@spine"
    with pytest.raises(ValueError, match=f"crashes cores, and plan 'lab' has none: {valid}"):
        rehearse(RunSpec(scenario, Choices(transport("mrc"), load_plan("lab"), seed=1)))


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("switch-reboot@pod", "no form 'pod': valid are switch-reboot@leaf, switch-reboot@spine, switch-reboot@core"),
        ("link-flap@core", "link-flap has no form 'core': valid are link-flap alone"),
        ("nope@core", "no scenario 'nope@core': valid are smoke, link-flap"),
    ],
)
def test_a_form_that_there_is_not_is_refused_with_the_choices(name: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        library.find(name)
