"""Looking at a lab: one face of labs on real links and in virtual time, and the answers that every tool gives."""

from typing import TYPE_CHECKING

from common.door import lazy

if TYPE_CHECKING:
    from running.view.answers import (
        chosen_path,
        chosen_ports,
        described,
        journey_json,
        links_json,
        near_end,
        packets_json,
        programs,
        rows_of,
    )
    from running.view.entries import entry_rows
    from running.view.keeper import Keeper, keep
    from running.view.kept import KeeperGoneError
    from running.view.lab_view import Crossing, LabView, Managers
    from running.view.real import RealLab
    from running.view.remote import RemoteHost, RemoteLab, attached, find, up, up_here
    from running.view.virtual import VirtualLab
else:
    __getattr__ = lazy(__name__, __file__)

__all__ = [
    "Crossing", "Keeper", "KeeperGoneError", "LabView", "Managers", "RealLab", "RemoteHost", "RemoteLab", "VirtualLab",
    "attached", "chosen_path", "chosen_ports", "described", "entry_rows", "find", "journey_json", "keep", "kept",
    "links_json", "near_end", "packets_json", "port_rows", "programs", "rows_of", "up", "up_here",
]  # fmt: skip
