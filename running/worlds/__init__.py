"""The worlds that a run may happen in."""

from typing import TYPE_CHECKING

from common.door import lazy

if TYPE_CHECKING:
    from running.worlds.agents import running_agents, start_agents
    from running.worlds.emulated import EmulatedWorld
    from running.worlds.simulated import SimulatedWorld
    from running.worlds.virtual_time import Resident
    from running.worlds.world import World
else:
    __getattr__ = lazy(__name__, __file__)

__all__ = [
    "EmulatedWorld", "Resident", "SimulatedWorld", "World", "running_agents", "start_agents",
]  # fmt: skip
