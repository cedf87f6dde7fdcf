"""Flaps at the published rate: the draws have the rate, its spread, and no link is hit while it is down."""

from random import Random
from statistics import fmean, pvariance

import pytest

from scenarios import library
from scenarios.flap_trace import LASTS_S, MINUTE_S, drawn
from scenarios.scenario import Setting, TimedFault
from topo.planfile import load_plan

LINKS = [f"link{number}" for number in range(64)]
HOURS_S = 250 * MINUTE_S


def per_minute(faults: list[TimedFault], seconds: float) -> list[int]:
    """How many begin in each whole minute: the trace of the paper's figure 5."""
    counts = [0] * int(seconds // MINUTE_S)
    for fault in faults:
        counts[int(fault.at_s // MINUTE_S)] += 1
    return counts


def test_250_minutes_look_like_the_papers_trace() -> None:
    """Figure 5: mean 4.2, lowest 1, highest 13. Over 40 seeds the mean is known to within 0.02 or so."""
    counts = [per_minute(drawn(LINKS, HOURS_S, Random(seed)), HOURS_S) for seed in range(40)]
    assert {len(one) for one in counts} == {250}
    minutes = [count for one in counts for count in one]
    assert fmean(minutes) == pytest.approx(4.2, rel=0.02)
    assert pvariance(minutes) == pytest.approx(4.2, rel=0.06), "a Poisson process has the variance of its mean"
    assert 10 <= fmean(max(one) for one in counts) <= 13
    assert fmean(min(one) for one in counts) <= 1


def test_no_link_is_hit_while_it_is_down_and_all_are_up_in_the_end() -> None:
    for seed in range(20):
        until: dict[str, float] = {}
        for fault in drawn(LINKS[:3], 1200.0, Random(seed)):
            assert fault.for_s is not None
            assert until.get(fault.target, -1.0) < fault.at_s
            until[fault.target] = fault.at_s + fault.for_s
            assert until[fault.target] <= 1200.0
            assert fault.for_s <= LASTS_S[1]


def test_a_seed_repeats_its_schedule_and_another_differs() -> None:
    one, again, other = (drawn(LINKS, 600.0, Random(seed)) for seed in (5, 5, 6))
    assert one == again != other


def test_nothing_to_draw_from_is_refused() -> None:
    with pytest.raises(ValueError, match="link-down needs at least one target"):
        drawn([], 60.0, Random(1))


def test_the_scenario_grows_with_its_phase_and_uses_every_plane() -> None:
    scenario = library.find("flap-trace@hours")
    plan = load_plan(scenario.plan)
    setting = Setting(plan, "mrc", 1, {phase.name: phase.seconds for phase in scenario.phases})
    flaps = scenario.timeline(setting)
    assert len(flaps) == pytest.approx(4.2 * 250, rel=0.1)
    assert {flap.target[1] for flap in flaps} == {str(plane) for plane in range(plan.planes)}
