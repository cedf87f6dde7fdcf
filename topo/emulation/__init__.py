"""The emulated world: namespaces, links, switches and hosts of a plan on this machine. Needs root and Linux."""

from typing import TYPE_CHECKING

from common.door import lazy

if TYPE_CHECKING:
    from topo.emulation.doctor import Prerequisite, examine
    from topo.emulation.embedded import serve_config
    from topo.emulation.faults import LabFabric, tell_of_dead
    from topo.emulation.lab import DRIVERS, Lab, down, there_already
    from topo.emulation.state import LabError, LabRunningError, NoLabError
else:
    __getattr__ = lazy(__name__, __file__)

__all__ = [
    "DRIVERS", "Lab", "LabError", "LabFabric", "LabRunningError", "NoLabError", "Prerequisite", "down", "examine",
    "front_end", "labname", "namespace", "network", "process", "serve_config", "state", "tell_of_dead",
    "there_already",
]  # fmt: skip
