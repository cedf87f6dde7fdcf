"""The wall clock is set forward or back under a lab: its age, and the order of its traffic, stay true."""

import time

import pytest

from topo.emulation import state
from topo.planfile import load_plan

STEPS_S = (30, -30)


@pytest.mark.parametrize("step_s", STEPS_S)
def test_the_age_of_a_lab_does_not_follow_the_wall_clock(monkeypatch: pytest.MonkeyPatch, step_s: int) -> None:
    true = time.time_ns
    record = state.new_record(load_plan("tiny"), "token")
    monkeypatch.setattr(time, "time_ns", lambda: true() + step_s * 1_000_000_000)
    assert 0 <= record.age_s < 20
    assert "brought up 0." in record.describe()
