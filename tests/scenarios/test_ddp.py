"""The scenario of a PyTorch script: what it runs and when, without PyTorch, namespaces or processes."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest

from scenarios import ddp, job
from scenarios.scenario import Setting
from topo.planfile import load_plan

PLAN = load_plan("lab")
SETTING = Setting(PLAN, "mrc", 3, {phase.name: phase.seconds for phase in ddp.SCENARIO.phases})


@pytest.fixture(autouse=True)
def _asked_anew() -> Iterator[None]:
    ddp.torch_python.cache_clear()
    yield
    ddp.torch_python.cache_clear()


def test_both_jobs_are_the_same_but_for_name_and_phase_and_fit_into_their_phases(monkeypatch) -> None:
    monkeypatch.setattr(ddp, "torch_python", lambda: sys.executable)
    clean, faulty = ddp.programs(SETTING)
    assert [clean.phase, faulty.phase] == ["reference", "faults"]
    assert [word.replace("clean", "faulty") for word in clean.argv] == list(faulty.argv)
    needed_s = ddp.START_S + ddp.steps(SETTING) * job.step_seconds(SETTING)
    assert needed_s <= min(SETTING.phases["reference"], SETTING.phases["faults"])
    assert ddp.steps(SETTING) >= 30


def test_nothing_breaks_before_the_ranks_meet_and_all_is_undone_within_the_phase() -> None:
    timeline = ddp.timeline(SETTING)
    assert {fault.verb for fault in timeline} == {"link-down", "switch-crash", "port-down"}
    for fault in timeline:
        assert fault.at_s >= ddp.START_S
        assert fault.for_s is not None
        assert fault.at_s + fault.for_s <= SETTING.phases["faults"]


def test_without_pytorch_the_message_says_how_to_get_it(monkeypatch) -> None:
    monkeypatch.setenv(ddp.INTERPRETER, "/bin/false")
    with pytest.raises(ddp.NoTorchError, match=r"got none from MRCLAB_TORCH_PYTHON=/bin/false.*apt-get install"):
        ddp.torch_python()
