"""A run gone through on paper: its mistakes are told before anything is built or written."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from endpoint import factory, profile
from endpoint.workloads import KINDS
from running.directory import RunDirectory
from running.runner import Choices, Runner, starts
from running.timeline import check_times, moments, rehearsed
from scenarios.scenario import Program, Scenario, Workload
from topo.plan import Plan
from topo.profile import nic_profile


def rehearse(scenario: Scenario, choices: Choices) -> None:
    """Makes every fault, workload, check and setting of a run. ValueError says which is wrong, and what is valid."""
    runner = Runner(scenario, choices, RunDirectory(Path()), tell=lambda event: None)
    plan = choices.running_plan
    starts_s, _ = starts(runner.phases)
    faults = runner.faults()
    check_times(faults, {phase.name: phase.seconds for phase in runner.phases})
    rehearsed(plan, moments(faults, starts_s))
    check_workloads(list(scenario.workloads(runner.setting)), plan, list(starts_s))
    for program in scenario.programs(runner.setting):
        check_place("program", program, plan, list(starts_s))
    scenario.checks(runner.setting)
    check_settings(choices, plan)


def check_workloads(workloads: Sequence[Workload], plan: Plan, phases: Sequence[str]) -> None:
    """Checks kinds, phases and hosts; the agents check the options."""
    for workload in workloads:
        if workload.kind not in KINDS:
            raise ValueError(f"workload {workload.name}: no kind {workload.kind!r}: valid are {', '.join(KINDS)}")
        check_place("workload", workload, plan, phases)


def check_place(what: str, one: Workload | Program, plan: Plan, phases: Sequence[str]) -> None:
    """Checks phase and hosts."""
    if one.phase not in phases:
        raise ValueError(f"{what} {one.name}: no phase {one.phase!r}: there is {', '.join(phases)}")
    for name in one.ranks or ():
        plan.host(name)


def check_settings(choices: Choices, plan: Plan) -> None:
    """The transport's settings, as the first host's NIC would take them."""
    own = profile.parse(nic_profile(plan, next(iter(plan.hosts()))))
    factory.make(choices.transport.agent, own, choices.seed, choices.transport.settings, 0)
