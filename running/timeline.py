"""A timeline: instants at which to inject a fault or undo one, and what routing notices, gone through on paper."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from scenarios import TimedFault
from topo import Plan
from topo.fault import ActiveFaults, Change, Fault, FaultError, RoutingChange

EXACT_S = 1e-6  # scaling rounds lengths and times; differences below a microsecond do not count


@dataclass(frozen=True, slots=True)
class Moment:
    """At `at_s` seconds into the run, begin or end `fault`."""

    at_s: float
    begin: bool
    fault: TimedFault


def check_times(faults: Sequence[TimedFault], lengths_s: Mapping[str, float]) -> None:
    """ValueError for a fault that begins outside of its phase, lasts no time, or would lengthen the run.

    `lengths_s` are the lengths of the phases, in their order.
    """
    total_s, begins_s = 0.0, {}
    for name, seconds in lengths_s.items():
        begins_s[name] = total_s
        total_s += seconds
    for fault in faults:
        if fault.phase not in lengths_s:
            raise ValueError(f"{fault.verb} {fault.target}: no phase {fault.phase!r}: there is {', '.join(lengths_s)}")
        length_s = lengths_s[fault.phase]
        if not -EXACT_S <= fault.at_s <= length_s + EXACT_S:
            raise ValueError(
                f"{fault.verb} {fault.target} at {fault.at_s:g} s: phase {fault.phase!r} lasts {length_s:g} s, so a"
                f" fault in it begins at 0 to {length_s:g}"
            )
        if fault.for_s is None:
            continue
        left_s = total_s - begins_s[fault.phase] - fault.at_s
        if not 0 < fault.for_s <= left_s + EXACT_S:
            raise ValueError(
                f"{fault.verb} {fault.target} at {fault.at_s:g} s for {fault.for_s:g} s: the run ends {left_s:g} s"
                f" after that, so it may last up to {left_s:g} s; without for_s it stays"
            )


def moments(faults: Sequence[TimedFault], starts_s: dict[str, float]) -> list[Moment]:
    """All beginnings and ends in order of time. `starts_s` is when each phase starts.

    At the same nanosecond ends come first, so that a target is whole before it breaks again.
    """
    result = []
    for fault in faults:
        if fault.phase not in starts_s:
            raise ValueError(f"{fault.verb} {fault.target}: no phase {fault.phase!r}: there is {', '.join(starts_s)}")
        at_s = starts_s[fault.phase] + fault.at_s
        result.append(Moment(round(at_s, 9), True, fault))
        if fault.for_s is not None:
            result.append(Moment(round(at_s + fault.for_s, 9), False, fault))
    return sorted(result, key=lambda moment: (moment.at_s, moment.begin))


class Paper:
    """The fabric of a rehearsal: it only writes down the changes that it is given."""

    def __init__(self) -> None:
        self.noted: list[Change] = []

    def refusal(self, change: Change) -> str | None:
        return None

    def carry_out(self, change: Change) -> None:
        self.noted.append(change)


class Carrier:
    """Carries moments out by the `inject` and `undo` of a world or of active faults."""

    def __init__(self, inject: Callable[[str, str, float | None, int], Fault], undo: Callable[[Fault], None]) -> None:
        self._inject = inject
        self._undo = undo
        self._begun: dict[TimedFault, Fault] = {}

    def carry_out(self, moment: Moment) -> None:
        """Inject or undo the moment's fault."""
        fault = moment.fault
        if moment.begin:
            self._begun[fault] = self._inject(fault.verb, fault.target, fault.value, fault.seed)
        else:
            self._undo(self._begun.pop(fault))


def rehearsed(plan: Plan, timeline: Sequence[Moment]) -> list[tuple[Moment, list[Change]]]:
    """Each moment with its changes, by the rules of every world.

    FaultError says which fault a world would refuse, when, and why, in the world's own words.
    """
    paper = Paper()
    active = ActiveFaults(plan, paper)
    carrier = Carrier(active.inject, active.undo)
    result = []
    for moment in timeline:
        paper.noted = []
        try:
            carrier.carry_out(moment)
        except FaultError as error:
            raise type(error)(f"{error} (timeline at {moment.at_s:g} s)") from None
        result.append((moment, paper.noted))
    return result


def noticed(plan: Plan, timeline: Sequence[Moment]) -> list[float]:
    """The times at which routing has something to notice, in seconds into the run."""
    return [
        moment.at_s
        for moment, changes in rehearsed(plan, timeline)
        if any(isinstance(change, RoutingChange) for change in changes)
    ]
