"""Time in figures: the paper's seconds, compressed, or round trips; both become the lab seconds of a scenario."""

from __future__ import annotations

from dataclasses import dataclass

from judging import SECOND_NS, Run
from scenarios import SAMPLE_S, Phase, TimedFault
from topo import Plan

__all__ = ["Clock"]

LEAD_ROUND_TRIPS = 60  # before a figure's time begins: congestion windows settle
SHORT_LEAD_ROUND_TRIPS = 6  # in a short form, of which no number counts
LEAD, SHOWN = "warmup", "faults"


@dataclass(frozen=True, slots=True)
class Clock:
    """A figure's time: `unit_ns` nanoseconds of the run are one unit of its axis, which begins after a lead-in."""

    plan: Plan
    unit_ns: float
    lead: int = LEAD_ROUND_TRIPS

    @classmethod
    def compressed(cls, plan: Plan, factor: float) -> Clock:
        """The axis shows the paper's seconds; each is shortened by the factor."""
        return cls(plan, SECOND_NS / factor)

    @classmethod
    def round_trips(cls, plan: Plan, count: float = 1, short: bool = False) -> Clock:
        """The axis shows so many base round trips as one unit."""
        return cls(plan, plan.base_rtt_ns * count, SHORT_LEAD_ROUND_TRIPS if short else LEAD_ROUND_TRIPS)

    def lab_s(self, units: float) -> float:
        """Lab time, in which phases and timelines are written."""
        return units * self.unit_ns / SECOND_NS / self.plan.pace

    def phases(self, length: float) -> tuple[Phase, Phase]:
        """The lead-in, in which workloads begin, and so many units that the figure shows."""
        lead_s = self.lead * self.plan.base_rtt_ns / SECOND_NS / self.plan.pace
        return Phase(LEAD, lead_s), Phase(SHOWN, self.lab_s(length))

    def fault(self, at: float, verb: str, target: str, until: float | None = None, **more: float) -> TimedFault:
        """A fault between two instants of the figure; without `until` it stays. `more` is its number, `value`."""
        for_s = None if until is None else self.lab_s(until - at)
        return TimedFault(self.lab_s(at), verb, target, for_s, more.get("value"), phase=SHOWN)

    def run_ns(self, run: Run, units: float) -> int:
        """The instant in the journal."""
        return run.phases[SHOWN].start_ns + round(units * self.unit_ns)

    def units(self, run: Run, t_ns: float) -> float:
        """The inverse of `run_ns`."""
        return (t_ns - run.phases[SHOWN].start_ns) / self.unit_ns

    @property
    def sample(self) -> float:
        """How far two samples of the agents' counters are apart, in units."""
        return SAMPLE_S * self.plan.pace * SECOND_NS / self.unit_ns
