"""A run gone through on paper: its mistakes are told before anything is built or written."""

from __future__ import annotations

from collections.abc import Sequence

from endpoint import factory, profile
from endpoint.workloads import KINDS
from running.choices import Choices
from running.spec import RunSpec
from running.timeline import check_times, moments, rehearsed
from scenarios import Program, Workload
from topo import Plan
from topo.profile import nic_profile


def rehearse(spec: RunSpec) -> None:
    """Makes every fault, workload, check and setting of a run. ValueError says which is wrong, and what is valid."""
    plan, starts_s, faults = spec.plan, spec.starts_s, spec.faults()
    check_times(faults, spec.lengths_s)
    rehearsed(plan, moments(faults, starts_s))
    check_workloads(spec.workloads(), plan, list(starts_s))
    for program in spec.programs():
        check_place("program", program, plan, list(starts_s))
    spec.checks()
    check_settings(spec.choices, plan)


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
