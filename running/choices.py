"""The choices of a run: everything that a user can decide about it, printed first and stored with it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from common.seeds import check_seed
from running.transport_choice import TransportChoice
from scenarios import TimedFault
from topo import Plan

WORLDS = ("emulated", "simulated")
TIME_MAX = 100
SECONDS_MAX = 1_000_000
"""The longest time of an option in seconds, over eleven days. The system calls that wait take no more than 24 days."""
RECONVERGENCE_MAX_S = 60
RECONVERGENCE_S = 0.1
"""As deployed: in a Clos of eBGP a switch sees in milliseconds that its link is down, and all others have taken the
withdrawal in well under a second (RFC 7938, section 7)."""
AS_DEPLOYED_S = -1.0
NEVER = "never"


@dataclass(frozen=True, slots=True)
class Choices:
    """Values for everything that a user can choose; what is left out takes the usual value.

    ValueError for values that no run can have, in the words of the command line.
    """

    transport: TransportChoice
    plan: Plan
    seed: int
    world: str = WORLDS[0]
    time_factor: float = 1.0  # of every phase's length, and so of every instant of the timeline
    short: bool = False  # the scenario's short phases
    record_packets_s: tuple[float, float] | None = None  # lab time in which packets are recorded, in virtual time
    until_s: float | None = None  # lab time at which the run is broken off, in virtual time
    reconvergence_s: float | None = AS_DEPLOYED_S  # baseline: until no switch routes over a dead link; None: never
    overrides: Mapping[str, str] = field(default_factory=dict)
    setting_changes: Mapping[str, Any] = field(default_factory=dict)  # the transport's, as --setting gave them
    added_faults: tuple[TimedFault, ...] = ()  # beside the scenario's own, at the usual lengths of its phases
    calibration: Mapping[str, Any] = field(default_factory=dict)
    source: str = ""  # what the user called the scenario: a name or the path of a file; "" for one made in code
    plan_source: str = ""  # the same for the plan

    def __post_init__(self) -> None:
        check_seed(self.seed)
        if self.world not in WORLDS:
            raise ValueError(f"--world must be one of {', '.join(WORLDS)} (got {self.world!r})")
        if not 0 < self.time_factor <= TIME_MAX:
            raise ValueError(f"--time must be a factor above 0 and up to {TIME_MAX} (got {self.time_factor:.15g})")
        virtual, until = self.world == "simulated", self.until_s
        if self.transport.counted and not virtual:
            raise ValueError("--payload counted: only with --world simulated; real links carry every byte")
        if until is not None and not virtual:
            raise ValueError("--until: only with --world simulated; end a run on real links with Ctrl-C")
        if until is not None and not 0 < until <= SECONDS_MAX:
            raise ValueError(f"--until must be above 0 and at most {SECONDS_MAX} s (got {until:.15g})")
        most, single = RECONVERGENCE_MAX_S, self.transport.single_plane
        if self.reconvergence_s == AS_DEPLOYED_S:
            object.__setattr__(self, "reconvergence_s", RECONVERGENCE_S if single else None)
        if self.reconvergence_s is not None and not (single and 0 <= self.reconvergence_s <= most):
            raise ValueError(
                f"--reconvergence: 0 to {most} s, and only with a RoCE transport: MRC's tables never change"
            )

    @property
    def running_plan(self) -> Plan:
        """The plan that is built: for the baseline, the single-plane equivalent."""
        return self.transport.fabric(self.plan)

    @property
    def never_rerouted(self) -> bool:
        """Whether this is a baseline whose switches keep to their tables, as MRC's always do."""
        return self.transport.single_plane and self.reconvergence_s is None

    @property
    def pace(self) -> float:
        """Seconds of the run to a second of lab time: every length keeps its number of round trips."""
        return self.plan.pace
