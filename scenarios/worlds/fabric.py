"""All switches of the simulated world. A world needs no more of them than `SwitchFabric`, however they are run."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from random import Random
from typing import Any, Protocol

from controller import compiled_pipelines
from scenarios.worlds.events import Events
from scenarios.worlds.switch import Deliver, SimulatedSwitch
from topo.fault import PortState, SwitchState
from topo.graph import PortRef
from topo.node import Switch
from topo.plan import Plan


class SwitchFabric(Protocol):
    """Every switch of a plan and the cables between them, up and provisioned."""

    def receive(self, ref: PortRef, frame: bytes) -> None:
        """A frame reaches this port of a switch now."""

    def set_port(self, ref: PortRef, state: PortState) -> None:
        """A port's carrier and transmit side."""

    def set_switch(self, switch: Switch, state: SwitchState) -> None:
        """Stop, crash, or run again; after a crash without tables."""

    def provision(self, switch: Switch) -> None:
        """Program and static tables."""

    def reconverge(self, dead_links: Collection[tuple[str, str]]) -> None:
        """The tables that a routing protocol would have without these links."""

    def differences(self) -> int:
        """How many entries of all switches are not the plan's."""

    def counters(self) -> Iterator[tuple[Switch, list[dict[str, Any]]]]:
        """Every switch with its ports' totals, as in a `sample` line."""


class EngineFabric:
    """A native engine a switch. `deliver` is called when a frame reaches the other end of a cable."""

    def __init__(self, plan: Plan, seed: int, events: Events, deliver: Deliver) -> None:
        seeds = Random(seed)
        pipelines = compiled_pipelines()
        self.switches = {
            node: SimulatedSwitch(plan, node, pipelines, seeds.getrandbits(64), events, deliver)
            for node in plan.switches()
        }

    def receive(self, ref: PortRef, frame: bytes) -> None:
        self._of(ref).receive(ref.port, frame)

    def set_port(self, ref: PortRef, state: PortState) -> None:
        self._of(ref).set_port(ref.port, state)

    def set_switch(self, switch: Switch, state: SwitchState) -> None:
        self.switches[switch].set_state(state)

    def provision(self, switch: Switch) -> None:
        self.switches[switch].provision()

    def reconverge(self, dead_links: Collection[tuple[str, str]]) -> None:
        for switch in self.switches.values():
            switch.reconverge(dead_links)

    def differences(self) -> int:
        return sum(switch.differences() for switch in self.switches.values())

    def counters(self) -> Iterator[tuple[Switch, list[dict[str, Any]]]]:
        for node, switch in self.switches.items():
            yield node, switch.counters()

    def _of(self, ref: PortRef) -> SimulatedSwitch:
        assert isinstance(ref.node, Switch)
        return self.switches[ref.node]
