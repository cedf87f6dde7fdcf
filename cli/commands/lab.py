"""`mrclab up`, `down`, `status`, `doctor`, `shell`, `fault`, `undo`: the fabric's own words, with P4 tables."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence

import topo.emulation.cli
from cli.options import seed_of
from cli.ownership import hand_over
from cli.root import need_root
from common.client import ControlError
from running import view
from running.view import RemoteLab
from topo import Plan, Switch
from topo.emulation import Lab, LabError, Prerequisite, labname
from topo.emulation.labname import LabName


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    topo.emulation.cli.register(subparsers, install, check, endpoint_form, Virtual())


class Virtual(topo.emulation.cli.VirtualLabs):
    """Labs that processes of their own keep."""

    def up(self, plan: Plan, seed: int | None, transport: str | None) -> RemoteLab:
        lab = view.up(plan, seed_of(1 if seed is None else seed), transport)
        hand_over(lab.root)
        return lab

    def find(self) -> RemoteLab | None:
        return view.find()

    def down_all(self) -> Iterator[tuple[str, str]]:
        for lab in view.up_here():
            try:
                lab.end()
            except (ControlError, LabError) as error:
                yield LabName(lab.name).words(), str(error)
            else:
                yield LabName(lab.name).words(), ""
        if labname.named():
            need_root("down removes network namespaces")


def install(lab: Lab, switches: Sequence[Switch]) -> None:
    """Static tables over P4Runtime. gRPC is imported only where there are tables to install."""
    from running.worlds import provision

    provision.install(lab, switches)


def check(plan: Plan) -> None:
    """Whether the P4 programs compile and have the plan's tables, before anything is built."""
    import controller

    controller.check(plan)


def endpoint_form() -> list[Prerequisite]:
    """Whether the endpoint runs compiled; if not, why, and whether this machine could compile it."""
    from common.compiled import build, finder
    from endpoint import compiled

    form, why, remedy = compiled.FORM, compiled.FORM.why, finder.REMEDY
    if not form.compiled:
        try:
            build.compilers()
        except build.ExtensionBuildError as error:
            why, remedy = f"{why}; {error}", f"then {remedy}"
    cost = f"virtual time and agents take longer, nothing else ({why})"
    return [Prerequisite("endpoint compiled", form.compiled, "useful", cost, remedy, form.why if form.compiled else "")]
