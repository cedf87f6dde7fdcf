"""The scenario of a PyTorch script: what it runs and when, without PyTorch, namespaces or processes."""

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace

import pytest

from scenarios import ddp
from scenarios.scenario import Scenario, Setting
from tests.helpers.pytorch.world import ROOT, require_torch
from topo.planfile import load_plan

PLAN = load_plan("lab")


def setting_of(scenario: Scenario) -> Setting:
    return Setting(PLAN, "mrc", 3, {phase.name: phase.seconds for phase in scenario.phases})


SETTING = setting_of(ddp.SCENARIO)
SHORT = setting_of(ddp.SCENARIO.shortened())
STEP_S = (0.44, 0.6)
"""Of one step with eight ranks, as measured: on a sound fabric, and at most on average under faults."""


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
    assert ddp.steps(SETTING) >= 40


@pytest.mark.parametrize("setting", [SETTING, SHORT], ids=["full", "short"])
def test_both_jobs_fit_into_their_phases(setting: Setting) -> None:
    for phase, step_s in zip(("reference", "faults"), STEP_S, strict=True):
        assert ddp.start_s(setting) + ddp.steps(setting) * step_s <= setting.phases[phase]


@pytest.mark.parametrize("seed", range(1, 6))
@pytest.mark.parametrize("setting", [SETTING, SHORT], ids=["full", "short"])
def test_every_kind_of_fault_begins_while_the_ranks_train_and_is_undone_within_the_phase(setting, seed) -> None:
    timeline = ddp.timeline(replace(setting, seed=seed))
    assert {fault.verb for fault in timeline} == {"link-down", "switch-crash", "port-down"}
    start_s = ddp.start_s(setting)
    for fault in timeline:
        assert start_s <= fault.at_s <= start_s + ddp.steps(setting) * STEP_S[0]
        assert fault.for_s is not None
        assert fault.at_s + fault.for_s <= setting.phases["faults"]


def test_one_seed_gives_the_same_run_to_the_byte(tmp_path) -> None:
    """Four processes of PyTorch in virtual time: their lines, losses and weights, and all packets."""
    require_torch()
    words = ["run", "ddp", "--short", "--world", "simulated", "--seed", "5", "--plan", "tiny", "--plain", "--runs"]
    told = []
    for name in ("first", "second"):
        subprocess.run([sys.executable, "-m", "cli", *words, str(tmp_path / name)], cwd=ROOT, check=True)
        lines = (tmp_path / name / "latest" / "journal.jsonl").read_text().splitlines()
        told.append([line for line in lines if '"node":"runner","kind":"process"' not in line])  # it says the date
    assert len(told[0]) > 1000
    assert told[0] == told[1]


def test_without_pytorch_the_message_says_how_to_get_it(monkeypatch) -> None:
    monkeypatch.setenv(ddp.INTERPRETER, "/bin/false")
    with pytest.raises(ddp.NoTorchError, match=r"got none from MRCLAB_TORCH_PYTHON=/bin/false.*apt-get install"):
        ddp.torch_python()
