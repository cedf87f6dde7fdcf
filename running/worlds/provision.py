"""The controller's first moment in a run: tables are installed once. A world reads them back at the end."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import controller
from topo import Switch
from topo.emulation import Lab

__all__ = ["install"]


def journal_file(lab: Lab) -> Path | None:
    return None if lab.site.journals is None else lab.site.journals / "controller.jsonl"


def install(lab: Lab, switches: Sequence[Switch]) -> None:
    """Push pipelines and static tables, and verify them. Raises ProvisionError with what differs."""
    controller.provision(lab, switches, journal=journal_file(lab))
