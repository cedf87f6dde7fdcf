"""The controller's two moments in a run: tables are installed once, and read back at the end."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

import controller
from controller import addresses
from topo import Switch
from topo.emulation import Lab

__all__ = ["install"]


def journal_file(lab: Lab) -> Path | None:
    return None if lab.site.journals is None else lab.site.journals / "controller.jsonl"


def install(lab: Lab, switches: Sequence[Switch]) -> None:
    """Push pipelines and static tables, and verify them. Raises ProvisionError with what differs."""
    controller.provision(lab, switches, journal=journal_file(lab))


def reconverge(lab: Lab, dead_links: Collection[tuple[str, str]]) -> None:
    """Write plain routes and ECMP groups of all switches without the dead links; without dead links, all return.

    A crashed switch cannot be reached; it is provisioned when it comes back.
    """
    places = addresses(lab, lab.plan.switches())
    controller.reconverge(
        lab.plan, places, dead_links, pipelines=controller.compiled_pipelines(), journal=journal_file(lab)
    )


def differences(lab: Lab) -> int:
    """How many entries of all switches differ from the plan's now."""
    places = addresses(lab, lab.plan.switches())
    report = controller.verify(lab.plan, places, pipelines=controller.compiled_pipelines(), journal=journal_file(lab))
    return len(report.differences)
