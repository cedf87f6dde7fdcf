"""The choices of a run: everything that a user can decide about it, printed first and stored with it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from running.transport_choice import TransportChoice
from scenarios.scenario import TimedFault
from topo.plan import Plan


@dataclass(frozen=True, slots=True)
class Choices:
    """Values for everything that a user can choose; what is left out takes the usual value."""

    transport: TransportChoice
    plan: Plan
    seed: int
    world: str = "emulated"
    time_factor: float = 1.0  # of every phase's length, and so of every instant of the timeline
    short: bool = False  # the scenario's short phases
    record_s: tuple[float, float] | None = None  # lab time from when to when packets are recorded, in virtual time
    until_s: float | None = None  # lab time at which the run is broken off, in virtual time
    reconvergence_s: float | None = None  # baseline: the time that routing needs to find its way around a dead link
    overrides: Mapping[str, str] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)  # the transport's, as --setting gave them
    added: tuple[TimedFault, ...] = ()  # faults beside the scenario's own, at the usual lengths of its phases
    calibration: Mapping[str, Any] = field(default_factory=dict)
    source: str = ""  # what the user called the scenario: a name or the path of a file
    plan_source: str = ""  # the same for the plan

    @property
    def running_plan(self) -> Plan:
        """The plan that is built: for the baseline, the single-plane equivalent."""
        return self.transport.fabric(self.plan)

    @property
    def pace(self) -> float:
        """Seconds of the run to a second of lab time: every length keeps its number of round trips."""
        return self.plan.pace
