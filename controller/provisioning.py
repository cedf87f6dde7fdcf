"""The running lab as the controller sees it: which switches there are to program, and where."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Protocol

from common.terminal.counted import counted
from controller.client import Address
from controller.items import encode
from controller.pipelines import Pipelines, compiled_pipelines
from controller.push import Progress, Report, push
from controller.tables import tables
from switch.p4rt import P4RuntimeError
from topo import Plan, Switch

DIFFERENCES_SHOWN_MAX = 10


class ProvisionedFabric(Protocol):
    """The part of `topo.emulation.lab.Lab` that is used here."""

    @property
    def plan(self) -> Plan: ...
    @property
    def controller_journal(self) -> Path | None: ...
    def p4runtime(self, switch: Switch) -> tuple[str, int] | None: ...


class ProvisionError(RuntimeError):
    """Switches are not as planned after a push; the message lists the first differences."""


def addresses(fabric: ProvisionedFabric, switches: Iterable[Switch]) -> dict[str, Address]:
    """By name; switches without P4Runtime (kind linux) are left out."""
    return {switch.name: Address(*where) for switch in switches if (where := fabric.p4runtime(switch)) is not None}


def check(plan: Plan) -> None:
    """Check, once and without a switch, that the programs compile and have every table that the controller fills.

    Raises CompileError, or ProvisionError with the name that a program lacks.
    """
    if all(plan.kind_of(switch) == "linux" for switch in plan.switches()):
        return
    pipelines = compiled_pipelines()
    first = {switch.program: switch for switch in reversed(list(plan.switches()))}
    for program, switch in first.items():
        try:
            for entity in tables(plan, switch):
                encode(pipelines[program].p4info, entity)
        except P4RuntimeError as error:
            raise ProvisionError(f"p4/{program}.p4 lacks what the controller fills: {error.message}") from None


def provision(
    fabric: ProvisionedFabric,
    switches: Sequence[Switch],
    *,
    pipelines: Pipelines | None = None,
    progress: Progress | None = None,
) -> Report:
    """Push to these switches and check: what `Lab.up` and a reboot call. Raises ProvisionError."""
    where, journal = addresses(fabric, switches), fabric.controller_journal
    report = push(fabric.plan, where, pipelines=pipelines, journal=journal, progress=progress)
    if not report.ok:
        shown = "\n".join(str(difference) for difference in report.differences[:DIFFERENCES_SHOWN_MAX])
        raise ProvisionError(f"{counted(len(report.differences), 'difference')} after the push:\n{shown}")
    return report
