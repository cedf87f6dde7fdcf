"""The interface of a kind of switch: `embedded`, `bmv2` and `linux` have a class each, for all switches of the kind."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from topo.emulation.labname import DEFAULT_LAB, LabName
from topo.fault import CarrierChange, PortState, SwitchState
from topo.graph import PortRef
from topo.node import Node, Switch
from topo.plan import Plan

Progress = Callable[[str, int, int], None]  # what, done, of how many


@dataclass(frozen=True, slots=True)
class LabSite:
    """The lab that a driver works in."""

    plan: Plan
    root: Path
    token: str
    details: dict[str, Any]  # kept in the lab's record: how other processes reach the switches
    journals: Path | None = None
    name: LabName = DEFAULT_LAB
    bound: bool = False
    """This process runs a scenario in the lab, and what it starts there ends with it, however it ends."""

    def netns(self, node: Node) -> str:
        """The name of a node's network namespace."""
        return self.name.netns(node)


class SwitchDriver(ABC):
    """The driver of a kind of switch, which by default has no P4Runtime, forgets nothing and refuses nothing."""

    switch_bytes: ClassVar[int]
    """Memory of one switch of this kind, measured and rounded up: `running.estimate` adds them up."""

    def __init__(self, site: LabSite) -> None:
        self.site = site

    @abstractmethod
    def start(self, switches: Sequence[Switch], progress: Progress) -> None:
        """Start these switches, whose namespaces have their links, without P4 tables. Blocks until they answer."""

    def p4runtime(self, switch: Switch) -> tuple[str, int] | None:
        """gRPC target and device id; None when the kind has no P4Runtime."""
        return None

    @abstractmethod
    def set_port(self, ref: PortRef, state: PortState, before: PortState) -> None:
        """Set the transmit side of a port; the caller has already set its carrier."""

    def carrier_restored(self, ref: PortRef, state: SwitchState) -> None:  # noqa: B027
        """A port that was down is up again: put back what the kernel forgot, unless the switch has crashed."""

    def refusal(self, change: CarrierChange) -> str | None:
        """Why this machine cannot switch a port off as the kind otherwise can; None when it can."""
        return None

    @abstractmethod
    def set_switch(self, switch: Switch, state: SwitchState, before: SwitchState) -> None:
        """Stop a switch, crash it, or let it run again, after a crash without P4 tables."""

    @abstractmethod
    def alive(self, switches: Sequence[Switch]) -> list[str]:
        """Names of the switches that do not answer."""
