"""Scenarios of single sentences of the paper: true as they are, and false without what each of them is about."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from judging.judge import judge
from judging.verdict import Verdict
from running.directory import RunDirectory
from running.options import Choices
from running.runner import Runner
from running.spec import RunSpec
from running.transport_choice import transport
from running.worlds.simulated import SimulatedWorld
from scenarios import flap_trace, library, lossy_port, nic_optics
from scenarios.scenario import Scenario
from topo.planfile import load_plan


def simulate(
    scenario: Scenario,
    folder: Path,
    transport_name: str = "mrc",
    *,
    plan: str = "tiny",
    settings: Mapping[str, Any] | None = None,
    seed: int = 3,
) -> Verdict:
    chosen = transport(transport_name, {**scenario.settings, **(settings or {})})
    choices = Choices(replace(chosen, payload="counted"), load_plan(plan), seed=seed, world="simulated")
    directory = RunDirectory.create(folder, scenario.name, seed)
    runner = Runner(RunSpec(scenario, choices), directory, tell=lambda event: None)
    runner.run(lambda: SimulatedWorld(choices.running_plan, choices.transport, seed, directory, runner.tell))
    return judge(directory.path, runner.spec.checks(), scenario.story)


def wrong(verdict: Verdict) -> dict[str, str]:
    return {finding.check: finding.reason for finding in verdict.findings if finding.holds is not True}


@pytest.mark.slow
def test_a_dark_transceiver_fails_its_queue_pairs_and_the_job_and_nothing_else(tmp_path: Path) -> None:
    assert wrong(simulate(nic_optics.SCENARIO, tmp_path)) == {}


@pytest.mark.slow
def test_where_retries_are_without_end_the_job_waits_for_the_light(tmp_path: Path) -> None:
    """MRC by its sources has the retries of the API's examples, and no queue pair fails."""
    found = wrong(simulate(nic_optics.SCENARIO, tmp_path, "mrc-cx8"))
    assert set(found) == {"queue pairs", "job fails", "next job"}, "the next job shares the links with the first one"
    assert "(failed nowhere)" in found["queue pairs"]
    assert found["job fails"] == "no queue pair failed, and the job went on"


@pytest.mark.slow
def test_half_a_nic_that_is_dark_fails_nothing(tmp_path: Path) -> None:
    """The paper's other optics: two transceivers, each with half of the ports."""

    def one_port(setting: Any) -> list[Any]:
        (dark,) = nic_optics.timeline(setting)
        return [replace(dark, verb="port-down", target=f"{nic_optics.HOST}.p0")]

    found = wrong(simulate(replace(nic_optics.SCENARIO, timeline=one_port), tmp_path))
    assert set(found) == {"queue pairs", "job fails", "next job"}


@pytest.mark.slow
def test_mrc_stays_on_a_lossy_port_until_a_policy_takes_its_plane_out(tmp_path: Path) -> None:
    assert wrong(simulate(lossy_port.SCENARIO, tmp_path)) == {}


@pytest.mark.slow
def test_without_the_policy_the_plane_stays_in_use(tmp_path: Path) -> None:
    def lossy_only(setting: Any) -> list[Any]:
        return [fault for fault in lossy_port.timeline(setting) if fault.verb == "loss"]

    found = wrong(simulate(replace(lossy_port.SCENARIO, timeline=lossy_only), tmp_path))
    assert set(found) == {"faults", "policy leaves", "losses end"}


@pytest.mark.slow
@pytest.mark.parametrize("name", library.OF_THE_PAPER)
def test_they_are_true_on_their_own_plans(name: str, tmp_path: Path) -> None:
    scenario = library.find(name) if name != "flap-trace" else flap_trace.lasting(3)
    assert wrong(simulate(scenario, tmp_path, plan=scenario.plan)) == {}
